"""Files of whole graphs on their way out, and copies: what the API process does with what the worker has written."""

from typing import Any

import httpx
import pytest

from service.api.routes.export import FILES, Format
from service.errors import ServiceError
from service.protocol import Kind, Status
from tests.contract.fakes import Api, Sent
from tests.contract.test_codes import check_problem

FILE = 30 * b"0123456789"
EXPORT, COPY = "/v1/graphs/city/export", "/v1/graphs/city:copy"


@pytest.fixture
def written(api: Api) -> Api:
    """A worker that has written the file, and loads what is packed."""
    api.fakes.blobs.stored["file"] = FILE
    api.fakes.dispatcher.answer = answer
    return api


def answer(sent: Sent) -> dict[str, Any]:
    if sent.kind is Kind.LOAD:
        return {"name": sent.graph, "version": 1, "replaced": False}
    return {"graph": sent.graph, "version": 7, "format": sent.args.format, "bytes": len(FILE), "blob": "file"}


def test_a_file_is_kept_no_longer_than_it_takes_to_send_it(written: Api) -> None:
    response = written.http.get(EXPORT)
    assert (response.status_code, response.content, response.headers["etag"]) == (200, FILE, '"7"')
    assert written.fakes.blobs.deleted == ["file"]


def test_one_that_is_not_what_was_written_is_broken_off(written: Api) -> None:
    written.fakes.blobs.stored["file"] = FILE + b"BROKEN...."
    with pytest.raises(httpx.RemoteProtocolError):
        written.http.get(EXPORT)
    assert written.fakes.blobs.deleted == ["file"]


def test_one_that_takes_too_long_is_not_written_on(written: Api) -> None:
    """Nobody would come for it: there is no 202 whose job has the file."""
    written.fakes.dispatcher.answer = lambda _: Status.RUNNING
    check_problem(written.http.get(EXPORT, headers={"Prefer": "wait=1"}), "timeout")
    (job,) = written.fakes.dispatcher.jobs_by_id.values()
    assert job.status is Status.CANCELLED


@pytest.mark.parametrize(
    ("accept", "query", "format", "mark"),
    [
        ("*/*", "", "npz", ""),
        ("", "", "npz", ""),
        ("application/vnd.apache.arrow.stream", "", "arrow", "arrow."),
        ("application/x-npz;q=0.5, text/x-dimacs", "", "dimacs", "dimacs."),
        ("application/*", "", "npz", ""),
        ("text/html, */*;q=0.8", "", "npz", ""),
        ("application/json", "?format=npz", "npz", ""),
        ("application/x-npz", "?format=arrow", "arrow", ""),
        ("application/x-npz", "?format=dimacs-min", "dimacs-min", ""),
    ],
)
def test_the_form_is_what_accept_prefers_unless_the_query_says_it(
    written: Api, accept: str, query: str, format: Format, mark: str
) -> None:
    for method in ("GET", "HEAD"):
        response = written.http.request(method, EXPORT + query, headers={"Accept": accept})
        assert response.status_code == 200
        assert response.headers["content-type"].partition(";")[0] == FILES[format][0]
        assert response.headers["etag"] == f'"{mark}7"'
        assert response.headers.get("vary") == (None if query else "Accept")
    assert written.fakes.dispatcher.sent[0].args.format == format


@pytest.mark.parametrize("accept", ["application/json", "text/csv", "application/x-npz;q=0"])
def test_a_form_that_no_file_has(written: Api, accept: str) -> None:
    response = written.http.get(EXPORT, headers={"Accept": accept})
    check_problem(response, "not_acceptable")
    assert "application/x-npz, application/vnd.apache.arrow.stream, text/x-dimacs" in response.json()["detail"]
    assert written.fakes.dispatcher.sent == []


def test_a_copy_is_an_export_and_a_load(written: Api) -> None:
    response = written.http.post(COPY, json={"to": "town"}, headers={"Idempotency-Key": "k"})
    assert (response.status_code, response.json()["name"], response.headers["etag"]) == (201, "town", '"1"')
    export, load = written.fakes.dispatcher.sent
    assert (export.kind, export.graph, export.args.format, export.idempotency_key) == (
        Kind.EXPORT,
        "city",
        "packed",
        None,
    )
    assert (load.kind, load.graph, load.args.blob, load.args.if_match) == (Kind.LOAD, "town", "file", "new")
    assert (load.idempotency_key, load.args.n_bytes) == ("k", len(FILE))
    assert written.fakes.blobs.deleted == [], "it is the copy's"


def test_a_copy_that_comes_again_is_not_written_again(written: Api) -> None:
    for _ in range(2):
        assert written.http.post(COPY, json={"to": "town"}, headers={"Idempotency-Key": "k"}).status_code == 201
    assert [sent.kind for sent in written.fakes.dispatcher.sent] == [Kind.EXPORT, Kind.LOAD, Kind.LOAD]
    one, two = (sent.body_digest for sent in written.fakes.dispatcher.sent if sent.kind is Kind.LOAD)
    assert one == two
    written.http.post("/v1/graphs/city:copy", json={"to": "village"}, headers={"Idempotency-Key": "k"})
    assert written.fakes.dispatcher.sent[-1].graph == "village"


@pytest.mark.parametrize(
    ("code", "deleted"),
    [
        ("already_exists", ["file"]),
        ("out_of_memory", ["file"]),
        ("worker_unavailable", []),
    ],
)
def test_a_copy_that_is_refused(written: Api, code: str, deleted: list[str]) -> None:
    """Somebody was faster; there is no room; or it may yet be loaded, and then its edges must be there."""

    def refusing(sent: Sent) -> Any:
        return ServiceError(code, "no") if sent.kind is Kind.LOAD else answer(sent)

    written.fakes.dispatcher.answer = refusing
    check_problem(written.http.post(COPY, json={"to": "town"}), code)
    assert written.fakes.blobs.deleted == deleted


def test_a_copy_is_waited_for_or_followed(written: Api) -> None:
    """The part that writes the edges is waited for in any case: there is no job yet that could be followed."""
    response = written.http.post(COPY, json={"to": "town"}, headers={"Prefer": "respond-async"})
    assert response.status_code == 202
    assert written.fakes.dispatcher.waited_s == [60], "max_wait_s of these settings"
    written.fakes.dispatcher.answer = lambda _: Status.RUNNING
    check_problem(written.http.post(COPY, json={"to": "village"}), "timeout")


def test_a_restore_is_an_update(api: Api) -> None:
    response = api.http.post(
        "/v1/graphs/city:restore?solve=none", json={"version": 3}, headers={"If-Match": '"7"', "Idempotency-Key": "k"}
    )
    assert response.status_code == 200
    (sent,) = api.fakes.dispatcher.sent
    assert (sent.kind, sent.args.version, sent.args.if_match, sent.args.solve) == (Kind.RESTORE, 3, 7, "none")
    assert sent.idempotency_key == "k"
