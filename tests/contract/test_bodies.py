"""What comes in: asked for first, counted as it streams, decoded with bounds, and given back in the end."""

import gzip
import http.client
import json
import os
import socket
import threading
import tracemalloc
from contextlib import closing

import numpy as np
import pyarrow as pa
import pytest
import zstandard

from gpu_engine.formats import FREE_BYTES, write_csv
from gpu_engine.generators import generate
from service.api.bodies.budget import ByteBudget, Hold
from service.api.bodies.encodings import FREE_MEMBERS, MAX_EXPANSION, MEMBER_BYTES, decoded
from service.api.bodies.parsing import HERE_BYTES
from service.api.bodies.receive import INLINE_BYTES, Body
from service.api.bodies.spool import CLOSED_HERE_BYTES, Spool
from service.errors import ServiceError
from service.protocol import Kind, Status
from service.settings import Settings
from service.store.api_keys import Scope
from tests import bombs
from tests.bombs import ARROW, CSV, JSON
from tests.contract.conftest import running
from tests.contract.fakes import Api
from tests.contract.test_access import forget, make_key
from tests.contract.test_codes import check_problem

NEVER_SENT = HERE_BYTES + 1
CAPACITIES = "/v1/graphs/city/capacities"


def head_alone(api: Api, request: str, content_type: str, headers: dict[str, str] | None = None) -> tuple[int, str]:
    """Status and code of the answer to a request whose body never comes."""
    named = {"Host": "localhost", "Content-Type": content_type, "Content-Length": str(NEVER_SENT)} | (headers or {})
    lines = [f"{request} HTTP/1.1", *(f"{name}: {value}" for name, value in named.items()), "", ""]
    with socket.create_connection(api.address, timeout=10) as connection:
        connection.sendall("\r\n".join(lines).encode())
        with closing(http.client.HTTPResponse(connection)) as response:
            response.begin()
            return response.status, json.loads(response.read())["code"]


ROUTES = ["PATCH /v1/graphs/{}/capacities", "POST /v1/graphs/{}/max-flow", "POST /v1/graphs/{}/matching"]


@pytest.mark.parametrize("route", ROUTES)
def test_an_unknown_graph_is_refused_before_its_body(api: Api, route: str) -> None:
    assert head_alone(api, route.format("nowhere"), JSON) == (404, "unknown_graph")


def test_any_arrow_is_refused_before_its_body(api: Api) -> None:
    """However short it is: it may stand for much."""
    route = ROUTES[0].format("nowhere")
    assert head_alone(api, route, ARROW, {"Content-Length": "10"}) == (404, "unknown_graph")
    assert head_alone(api, route, JSON, {"Content-Length": "10", "Content-Encoding": "gzip"}) == (404, "unknown_graph")


def test_what_a_key_does_not_cover_is_refused_before_the_body(api: Api) -> None:
    try:
        key = make_key(api, Scope.READ)
        assert head_alone(api, ROUTES[0].format("city"), JSON, key) == (403, "forbidden")
        assert head_alone(api, ROUTES[0].format("city"), JSON) == (401, "unauthorised")
    finally:
        api.fakes.api_keys.keys.clear()
        forget(api)


@pytest.mark.parametrize("route", ROUTES)
def test_a_graph_without_room_is_refused_before_the_body(api: Api, route: str) -> None:
    api.fakes.dispatcher.answer = lambda _: Status.RUNNING
    patient = {"Prefer": "respond-async"}
    graph = f"full-{ROUTES.index(route)}"  # what others left unfinished is not in its queue
    for _ in range(Settings().graph_queue_limit):
        assert api.http.post(f"/v1/graphs/{graph}/max-flow", headers=patient).status_code == 202
    assert head_alone(api, route.format(graph), JSON) == (429, "rate_limited")
    for act in api.fakes.dispatcher.unfinished:
        act()


def test_a_repeated_key_needs_no_graph(api: Api) -> None:
    """It gets its first answer, whatever has become of the graph."""
    key = {"Idempotency-Key": "again", "Content-Type": JSON}
    body = json.dumps({"edges": [1], "set": [2]}).encode() + NEVER_SENT * b" "
    assert api.http.patch(CAPACITIES, content=body, headers=key).status_code == 200
    del api.fakes.catalogue.graphs["city"]
    assert api.http.patch(CAPACITIES, content=body, headers=key).status_code == 200
    assert api.http.patch(CAPACITIES, content=body, headers={"Content-Type": JSON}).status_code == 404


@pytest.mark.parametrize("media_type", [JSON, ARROW])
def test_long_patches_become_commands(api: Api, media_type: str) -> None:
    edges = [f"edge {k}" for k in range(100)]
    body = bombs.stream({"edge": edges, "set": np.arange(100) / 4})
    if media_type == JSON:
        body = json.dumps({"edges": edges, "set": [k / 4 for k in range(100)]}).encode() + INLINE_BYTES * b" "
    headers = {"Content-Type": media_type, "Idempotency-Key": media_type}
    assert api.http.patch(CAPACITIES, content=body, headers=headers | {"If-Match": '"7"'}).status_code == 200
    (sent,) = api.fakes.dispatcher.sent
    (operation,) = sent.args.batch
    assert (sent.kind, sent.args.if_match, operation.edges) == (Kind.PATCH, 7, edges)
    assert list(map(float, operation.amounts)) == [k / 4 for k in range(100)]
    assert sent.body_digest is not None
    assert api.fakes.budget is not None
    assert api.fakes.budget.used_bytes == 0


def test_a_long_question_becomes_a_command(api: Api) -> None:
    body = json.dumps({"sources": [*range(20_000)], "sinks": [99_999]}).encode()
    assert len(body) > INLINE_BYTES
    for path, sides in (("min-cut", {"value", "cut"}), ("max-flow", {"value"})):
        response = api.http.post(f"/v1/graphs/city/{path}", content=body, headers={"Content-Type": JSON})
        assert response.status_code == 200
        args = api.fakes.dispatcher.sent[-1].args
        assert (args.sources, args.sinks, set(args.fields)) == ([*range(20_000)], [99_999], sides)
    body = json.dumps({"left": [*range(20_000)]}).encode()
    assert api.http.post("/v1/graphs/city/matching", content=body, headers={"Content-Type": JSON}).status_code == 200
    assert api.fakes.dispatcher.sent[-1].args.left == [*range(20_000)]
    check_problem(api.http.post("/v1/graphs/city/matching", content=NEVER_SENT * b" "), "unsupported_media_type")


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        ({"edge": [1, 2], "set": [1.0, float("nan")]}, "invalid_body"),
        ({"edge": [1, 2], "set": [1, None]}, "invalid_body"),
        ({"edge": [1.5, 2], "set": [1, 1]}, "invalid_body"),
        ({"edge": [1, 2], "colour": [1, 1]}, "invalid_body"),
        ({"edge": [1, 2]}, "invalid_body"),
        ({"edge": ["x" * 1025, "y"], "set": [1, 1]}, "too_large"),
        ({"edge": range(101), "set": range(101)}, "too_large"),
        ({"edge": pa.nulls(2), "set": [1, 2]}, "invalid_body"),
    ],
)
def test_bad_arrow_patches(api: Api, columns: dict[str, object], code: str) -> None:
    body = bombs.stream({name: pa.array(column) for name, column in columns.items()})
    check_problem(api.http.patch(CAPACITIES, content=body, headers={"Content-Type": ARROW}), code)
    for cut in (0, 7, len(body) // 2, len(body) - 4):
        response = api.http.patch(CAPACITIES, content=body[:cut], headers={"Content-Type": ARROW})
        assert response.status_code in (413, 422)
    twice = api.http.patch(CAPACITIES, content=body + body, headers={"Content-Type": ARROW})
    assert twice.status_code in (413, 422)
    assert not api.fakes.dispatcher.sent


def test_words_of_a_patch_are_bounded(api: Api) -> None:
    words = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1], pa.int8()), ["a", "b"])
    body = bombs.stream({"edge": words, "set": [1, 2, 3]})
    assert api.http.patch(CAPACITIES, content=body, headers={"Content-Type": ARROW}).status_code == 200
    assert api.fakes.dispatcher.sent[0].args.batch[0].edges == ["b", "a", "b"]
    long = pa.DictionaryArray.from_arrays(pa.array(np.zeros(100, np.int8)), [1_000_000 * "x"])
    body = bombs.stream({"edge": long, "set": range(100)}, "lz4")
    check_problem(api.http.patch(CAPACITIES, content=body, headers={"Content-Type": ARROW}), "too_large")


def test_the_budget_is_for_what_reading_takes(api: Api) -> None:
    """One that there is no room for now is to come back; nothing stays counted of what was refused."""
    body = write_csv(generate("grid", seed=1, rows=30, columns=30))
    budget = api.fakes.budget
    assert budget is not None
    taken = budget.limit_bytes - len(body) - 1000
    budget.take(taken)
    check_problem(api.http.put("/v1/graphs/new", content=body, headers={"Content-Type": CSV}), "rate_limited")
    assert budget.used_bytes == taken
    budget.give_back(taken)
    assert api.http.put("/v1/graphs/new", content=body, headers={"Content-Type": CSV}).status_code == 201
    assert budget.used_bytes == 0


@pytest.mark.parametrize("encoding", ["identity", "gzip", "X-Gzip", "zstd"])
def test_graphs_of_every_length_arrive(api: Api, encoding: str) -> None:
    encode = {"identity": bytes, "zstd": zstandard.compress}.get(encoding, gzip.compress)
    for size in (3, 50):
        edges = generate("grid", seed=1, rows=size, columns=size)
        headers = {"Content-Type": CSV, "Content-Encoding": encoding}
        response = api.http.put("/v1/graphs/new", content=encode(write_csv(edges)), headers=headers)
        assert response.status_code == 201, response.text
        assert len(api.fakes.blobs.blobs[-1]) > 100


def open_body(limit_bytes: int = 1 << 30) -> tuple[ByteBudget, Body]:
    budget = ByteBudget(limit_bytes)
    return budget, Body(Hold(budget))


def test_a_body_is_counted_while_it_is_there() -> None:
    budget, body = open_body()
    for _ in range(10):
        body.write(INLINE_BYTES // 4 * b"x")
        assert budget.used_bytes == body.n_bytes == len(body.view()) == len(body.to_json())
    assert not body.is_short
    assert bytes(body.view()) == b"".join(body.pieces()) == 10 * (INLINE_BYTES // 4) * b"x"
    other = Spool()
    other.write(b"else")
    body.replace(other)
    assert (budget.used_bytes, body.to_json()) == (4, b"else")
    body.close()
    body.close()
    assert budget.used_bytes == 0


def test_a_budget_refuses_what_can_never_be_and_what_cannot_be_now() -> None:
    budget, body = open_body(100)
    with pytest.raises(ServiceError) as refusal:
        body.write(bytes(101))
    assert refusal.value.code == "too_large"
    budget.take(60)
    body.write(bytes(40))
    with pytest.raises(ServiceError) as refusal:
        body.write(b"x")
    assert (refusal.value.code, refusal.value.retry_after_s) == ("rate_limited", 1)
    with pytest.raises(ServiceError) as refusal:
        body.write(bytes(61))
    assert refusal.value.code == "too_large"
    body.close()
    assert budget.used_bytes == 60


def test_spools_are_files_without_names() -> None:
    spool = Spool()
    before = len(os.listdir("/proc/self/fd"))
    assert bytes(spool.view()) == b""
    spool.write(bytes(range(256)))
    spool.write(memoryview(b"more"))
    assert (spool.n_bytes, bytes(spool.view())) == (260, bytes(range(256)) + b"more")
    spool.close()
    assert len(os.listdir("/proc/self/fd")) == before - 1


def sizes(body: bytes, encoding: str) -> int:
    return sum(map(len, decoded(memoryview(body), encoding)))


def test_members_are_as_many_as_they_are_worth() -> None:
    empty, full = gzip.compress(b""), gzip.compress(bytes(MEMBER_BYTES))
    assert sizes(FREE_MEMBERS * empty, "gzip") == 0
    with pytest.raises(ServiceError, match="too many members"):
        sizes((FREE_MEMBERS + 1) * empty, "gzip")
    assert sizes(3 * FREE_MEMBERS * full, "gzip") == 3 * FREE_MEMBERS * MEMBER_BYTES
    frames = FREE_MEMBERS * zstandard.compress(b"x")
    assert sizes(frames, "zstd") == FREE_MEMBERS
    with pytest.raises(ServiceError, match="too many members"):
        sizes(frames + zstandard.compress(b"x"), "zstd")


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_how_much_a_body_may_decode_to(api: Api, encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hundred times its bytes, and eight megabytes in any case."""
    compress = {"gzip": gzip.compress, "zstd": zstandard.compress}[encoding]
    monkeypatch.setattr("service.api.bodies.receive.FREE_BYTES", 10_000)
    headers = {"Content-Type": JSON, "Content-Encoding": encoding}
    text = json.dumps({"edges": [1], "set": [2]}).encode()
    for blanks, status in ((9_000, 200), (100_000, 413)):
        body = compress(text + blanks * b" ")
        assert (len(text) + blanks > MAX_EXPANSION * len(body)) is (status == 413) or blanks < 10_000
        assert api.http.patch(CAPACITIES, content=body, headers=headers).status_code == status
    assert FREE_BYTES == 8 << 20


def test_one_step_of_decoding_takes_little_memory() -> None:
    """64 MiB was seen: the decoder of zstd joins the blocks that it was given at once."""
    packer = zstandard.ZstdCompressor().compressobj()
    blanks = (1 << 20) * b" "
    body = b"".join(packer.compress(blanks) for _ in range(256)) + packer.flush()
    tracemalloc.start()
    try:
        for _ in decoded(memoryview(body), "zstd"):
            pass
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40 << 20


def test_a_long_body_is_freed_beside_the_loop() -> None:
    """500 MB took the kernel 80 ms, in which nobody was answered."""
    spool = Spool()
    for _ in range(CLOSED_HERE_BYTES // (1 << 20) + 1):
        spool.write(bytes(1 << 20))
    descriptor = spool.fileno()
    spool.close()
    for thread in threading.enumerate():
        if thread.name == "spool":
            thread.join()
    with pytest.raises(OSError, match="descriptor"):
        os.fstat(descriptor)


def test_a_body_that_comes_too_slowly_ends_its_connection(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of it is not waited for, and no request can follow it."""
    monkeypatch.setattr("service.api.bodies.receive.GRACE_S", 0.2)
    head = b"PUT /v1/graphs/slow HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\nContent-Length: 9\r\n\r\n"
    with socket.create_connection(api.address, timeout=20) as connection:
        connection.sendall(head + b"tail")
        answer = b"".join(iter(lambda: connection.recv(4096), b""))
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"the body came more slowly than 1024 bytes a second" in answer
    assert b"connection: close" in answer.lower()


@pytest.mark.parametrize(("method", "path"), [("POST", "/v1/graphs/city/snapshots"), ("PUT", "/v1/workers/w/drain")])
def test_options_are_refused_where_there_are_none(api: Api, method: str, path: str) -> None:
    for content in (b'{"wait": 1}', b"not json", b"[]", b" " * 17, b"x" * 100_000):
        check_problem(api.http.request(method, path, content=content), "invalid_body")
    assert not api.fakes.dispatcher.sent
    for content in (b"", b"{}", b" {}\n"):
        assert api.http.post("/v1/graphs/city/snapshots", content=content).status_code == 200


def test_a_process_that_can_start_no_thread_says_so() -> None:
    """What needs none is answered, and all else again as soon as there are some."""
    content = gzip.compress(json.dumps({"tail": [0], "head": [1], "capacity": [1]}).encode())
    headers = {"Content-Type": JSON, "Content-Encoding": "gzip"}
    with running(Settings()) as fresh:  # whose threads have not been started yet
        threading.stack_size(1 << 47)  # more than any machine has addresses for
        try:
            refused = fresh.http.put("/v1/graphs/g", content=content, headers=headers)
            assert fresh.http.get("/livez").status_code == 200
        finally:
            threading.stack_size(0)
        check_problem(refused, "worker_unavailable")
        assert "retry-after" in refused.headers
        assert "can start no thread" in refused.json()["detail"]
        assert fresh.http.put("/v1/graphs/g", content=content, headers=headers).status_code == 201
