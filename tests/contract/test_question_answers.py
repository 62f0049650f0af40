"""Questions, pages of capacities and snapshots: what is answered when all is well."""

from service.protocol import Kind
from tests.contract.bodies import ARROW
from tests.contract.fakes import Api


def test_questions(api: Api) -> None:
    api.fakes.dispatcher.answer = lambda _: {"graph": "city", "version": 7, "value": 6}
    response = api.http.post("/v1/graphs/city/max-flow")
    assert (response.json()["value"], response.headers["etag"]) == (6, '"7"')
    api.http.post("/v1/graphs/city/min-cut", json={"sources": ["A"], "sinks": ["B"], "supply": [2.5]})
    first, second = (sent.args for sent in api.fakes.dispatcher.sent)
    assert (first.fields, first.sources) == ({"value"}, None)
    assert (second.fields, second.sources, second.supply) == ({"value", "cut"}, ["A"], ["2.5"])


def test_numbers_of_the_worker_pass_unchanged(api: Api) -> None:
    text = '{"version": 7, "value": 1152921504606846975.000000001}'
    api.fakes.dispatcher.answer = lambda _: text
    assert api.http.post("/v1/graphs/city/max-flow").text == text
    assert f'"result":{text}' in api.http.get("/v1/jobs/job-0").text


def test_a_page_is_asked_for_in_the_form_that_is_accepted(api: Api) -> None:
    page = {"version": 7, "edge_ids": ["a"], "tail": [0], "head": [1], "capacity": [2.5], "closed": [False]}
    api.fakes.dispatcher.answer = lambda _: page
    response = api.http.get("/v1/graphs/city/capacities?offset=2&limit=2")
    assert (response.json(), response.headers["vary"]) == (page, "Accept")
    for accepted in (ARROW, "application/x-npz", "application/json"):
        api.http.get("/v1/graphs/city/capacities?offset=2&limit=2", headers={"Accept": accepted})
    asked = [sent.args.model_dump() for sent in api.fakes.dispatcher.sent]
    page = {"offset": 2, "limit": 2, "if_match": None}
    assert asked == [page | {"encoding": form} for form in ("json", "arrow", "npz", "json")]


def test_snapshots(api: Api) -> None:
    assert api.http.get("/v1/graphs/city/snapshots").json() == {"snapshots": []}
    assert api.http.post("/v1/graphs/city/snapshots").status_code == 200
    assert api.fakes.dispatcher.sent[0].kind is Kind.SNAPSHOT
