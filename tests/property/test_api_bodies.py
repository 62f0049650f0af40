"""Whatever the body: an answer the API documents, never a 500."""

import json
from collections.abc import Iterator
from typing import Any

import anyio
import httpx
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from service.api.app import create_app
from service.errors import STATUS
from service.settings import Settings
from tests.contract.fakes import Fakes

FIELDS = [
    *("edges", "tail", "head", "set", "add", "scale", "op", "batch", "on_missing", "rounding"),
    *("sources", "sinks", "supply", "demand", "fields", "min_version", "flow", "time_limit_s", "left"),
    *("n_vertices", "n_edges", "capacity", "undirected", "edge_ids", "vertex_labels", "source", "sink", "decimals"),
]
PLAIN = [None, True, -1, 0, 1, 2**63, 10**30, 0.5, -0.0, 1e300, "", "a", "inf", "nan", "close", "value", "\ud800", "\0"]
VALUES = st.recursive(
    st.sampled_from(PLAIN) | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from([*FIELDS, "\ud800"]), VALUES, max_size=5)
BODIES = OBJECTS.map(lambda content: json.dumps(content).encode()) | st.binary(max_size=60)
TARGETS = [
    ("PATCH", "/v1/graphs/city/capacities"),
    ("POST", "/v1/graphs/city/max-flow"),
    ("POST", "/v1/graphs/city/min-cut"),
    ("POST", "/v1/graphs/city/matching"),
    ("POST", "/v1/graphs:estimate"),
    ("PUT", "/v1/graphs/city"),
]
MEDIA = [
    *("application/json", "application/vnd.apache.arrow.stream", "application/x-npz", "application/x-npy"),
    *("text/csv", "text/x-dimacs", "text/x-matrix-market", "text/x-adjacency-matrix"),
]


EASY = examples(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no bug


class InProcess:
    """The application without a server: thousands of requests in a test's time."""

    def __init__(self, portal: Any) -> None:
        self._portal = portal
        fakes = Fakes()
        settings = Settings(max_body_bytes=100_000)
        app = create_app(settings, open_backend=fakes.open)
        self._lifespan = portal.wrap_async_context_manager(app.router.lifespan_context(app))
        self._app = app
        self._state: Any = None

    def __enter__(self) -> "InProcess":
        self._state = self._lifespan.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._lifespan.__exit__(*error)

    def request(self, method: str, path: str, content: bytes, headers: dict[str, str]) -> httpx.Response:
        async def ask() -> httpx.Response:
            async with httpx.AsyncClient(transport=httpx.ASGITransport(self._with_state), base_url="http://h") as http:
                return await http.request(method, path, content=content, headers=headers)

        response: httpx.Response = self._portal.call(ask)
        return response

    async def _with_state(self, scope: Any, receive: Any, send: Any) -> None:
        await self._app(scope | {"state": dict(self._state)}, receive, send)


@pytest.fixture(scope="module")
def application() -> Iterator[InProcess]:
    with anyio.from_thread.start_blocking_portal() as portal, InProcess(portal) as running:
        yield running


def check(response: httpx.Response) -> None:
    if response.status_code >= 400:
        problem = response.json()
        assert problem["code"] != "internal_error", problem
        assert response.status_code == STATUS[problem["code"]] < 500


@EASY
@given(target=st.sampled_from(TARGETS), content=BODIES)
def test_any_json(application: InProcess, target: tuple[str, str], content: bytes) -> None:
    check(application.request(*target, content, {"Content-Type": "application/json"}))


@EASY
@given(
    target=st.sampled_from(TARGETS),
    content=BODIES,
    media=st.sampled_from(MEDIA),
    encoding=st.sampled_from(["gzip", "zstd", "identity"]),
)
def test_any_bytes(application: InProcess, target: tuple[str, str], content: bytes, media: str, encoding: str) -> None:
    check(application.request(*target, content, {"Content-Type": media, "Content-Encoding": encoding}))


HEADERS = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=20)


@EASY
@given(prefer=HEADERS, tag=HEADERS, key=HEADERS, last=HEADERS)
def test_any_headers(application: InProcess, prefer: str, tag: str, key: str, last: str) -> None:
    given_headers = {"Prefer": prefer, "If-Match": tag, "Idempotency-Key": key, "Last-Event-ID": last}
    headers: Any = {name: value.encode("latin-1") for name, value in given_headers.items()}
    headers["Content-Type"] = "application/json"
    check(application.request("PATCH", "/v1/graphs/city/capacities", b'{"edges": [0], "set": [1]}', headers))
