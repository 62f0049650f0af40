"""Questions, pages of capacities and snapshots: what is answered when all is well."""

from typing import Any

import pyarrow as pa
import pytest

from gpu_engine import formats
from gpu_engine.types import INFINITE
from service.protocol import Kind
from tests.contract.bodies import ARROW, arrow_stream
from tests.contract.fakes import CITY, Api


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


def test_capacities_as_json_and_arrow(api: Api) -> None:
    page = {
        "version": 7,
        "edge_ids": ["a", "b"],
        "tail": [0, 1],
        "head": [1, 2],
        "capacity": [2.5, "inf"],
        "closed": [False, True],
    }
    api.fakes.dispatcher.answer = lambda _: page
    assert api.http.get("/v1/graphs/city/capacities?offset=2&limit=2").json() == page
    assert api.fakes.dispatcher.sent[0].args.model_dump() == {"offset": 2, "limit": 2}
    response = api.http.get("/v1/graphs/city/capacities", headers={"Accept": ARROW})
    assert (response.headers["content-type"], response.headers["etag"]) == (ARROW, '"7"')
    table = pa.ipc.open_stream(response.content).read_all()
    assert table.column("capacity").to_pylist() == [25, 0]
    assert table.column("unlimited").to_pylist() == [False, True]
    assert table.schema.metadata[b"decimals"] == b"1"
    assert formats.read(arrow_stream(table.drop_columns(["closed"])), ARROW).capacity.tolist() == [25, INFINITE]


@pytest.mark.parametrize(
    ("capacity", "stated", "units", "decimals"),
    [
        ([2.5, 0.25], 0, [250, 25], b"2"),
        ([2.5, "inf"], 2, [250, None], b"2"),
        ([2**61, 1], 9, [2**61, 1], b"0"),
        ([2**61, "inf"], 9, [2**61, None], b"0"),
        ([], 3, [], b"3"),
    ],
)
def test_a_page_of_a_graph_that_was_replaced_meanwhile_is_exact_as_arrow(
    api: Api, capacity: list[Any], stated: int, units: list[int | None], decimals: bytes
) -> None:
    """The catalogue then has the decimals of another graph."""
    ends = list(range(len(capacity)))
    page = {"version": 7, "edge_ids": ends, "tail": ends, "head": ends, "closed": len(ends) * [False]}
    api.fakes.dispatcher.answer = lambda _: page | {"capacity": capacity}
    api.fakes.catalogue.graphs["city"] = CITY.model_copy(update={"decimals": stated})
    response = api.http.get("/v1/graphs/city/capacities", headers={"Accept": ARROW})
    table = pa.ipc.open_stream(response.content).read_all()
    read = zip(table.column("capacity").to_pylist(), table.column("unlimited").to_pylist(), strict=True)
    assert [None if unlimited else amount for amount, unlimited in read] == units
    assert table.schema.metadata[b"decimals"] == decimals


def test_snapshots(api: Api) -> None:
    assert api.http.get("/v1/graphs/city/snapshots").json() == {"snapshots": []}
    assert api.http.post("/v1/graphs/city/snapshots").status_code == 200
    assert api.fakes.dispatcher.sent[0].kind is Kind.SNAPSHOT
