"""The short way to a route answers whatever the framework's own way answers, and takes the requests it is for."""

from typing import Any

import pytest
from fastapi import FastAPI

from service.api import direct
from service.api.app import create_app
from service.api.guards.access import authorise
from service.api.guards.parameters import refuse_unknown_parameters
from service.api.guards.unread import refuse_unread
from service.settings import Settings
from tests.contract.conftest import running
from tests.contract.fakes import MAX_BODY_BYTES

PATCH: dict[str, Any] = {"json": {"edges": [0], "set": [4]}}
REQUESTS: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "/v1/graphs/city/max-flow", {"json": {}}),
    ("POST", "/v1/graphs/city/max-flow", {}),
    ("POST", "/v1/graphs/city/max-flow", {"content": b"[1"}),
    ("POST", "/v1/graphs/city/max-flow", {"content": b"{}", "headers": {"Content-Type": "text/plain"}}),
    ("POST", "/v1/graphs/city/max-flow", {"json": {"sources": []}}),
    ("POST", "/v1/graphs/city/max-flow", {"json": {}, "headers": {"Accept": "image/png"}}),
    ("POST", "/v1/graphs/city/max-flow", {"json": {}, "headers": {"Origin": "https://elsewhere.example"}}),
    ("POST", "/v1/graphs/city/max-flow", {"json": {}, "headers": {"Host": "elsewhere.example"}}),
    ("POST", "/v1/graphs/city/max-flow?a=1", {"json": {}}),
    ("POST", "/v1/graphs/ci%20ty/max-flow", {"json": {}}),
    ("POST", "/v1/graphs/city%0A/max-flow", {"json": {}}),
    ("POST", "/v1/graphs/city/max-flow/", {"json": {}}),
    ("POST", "/v1/graphs//max-flow", {"json": {}}),
    ("POST", "/v1/graphs/city/min-cut", {"json": {}}),
    ("GET", "/v1/graphs/city/max-flow", {}),
    ("PATCH", "/v1/graphs/city/capacities", PATCH),
    ("PATCH", "/v1/graphs/city/capacities?solve=none", PATCH),
    ("PATCH", "/v1/graphs/city/capacities?solve=some", PATCH),
    ("PATCH", "/v1/graphs/city/capacities", PATCH | {"headers": {"If-None-Match": "*"}}),
    ("GET", "/v1/graphs/city", {}),
    ("POST", "/v1/graphs/city/max-flow", {"json": {}, "headers": {"If-Match": '"7"'}}),
    ("POST", "/v1/graphs/city/max-flow", {"json": {}, "headers": {"Prefer": "wait=5s"}}),
    ("POST", "/v1/graphs/city/max-flow", {"json": {}, "headers": {"X-HTTP-Method-Override": "PATCH"}}),
    ("GET", "/v1/graphs/city", {"json": {"version": 3}}),
    ("HEAD", "/v1/graphs/city", {}),
    ("GET", "/v1/graphs/nowhere", {}),
    ("GET", "/v1/graphs/city/capacities", {}),
    ("GET", "/v1/graphs/city/nothing", {}),
]


@pytest.fixture
def settings() -> Settings:
    return Settings(max_body_bytes=MAX_BODY_BYTES, max_patch_rows=100, default_wait_s=5, max_wait_s=60)


def answers(settings: Settings) -> list[tuple[int, dict[str, str], bytes]]:
    """What each request is answered with, but for when it was."""
    found = []
    with running(settings) as api:
        for method, path, more in REQUESTS:
            headers = {"X-Request-Id": "one"} | more.get("headers", {})
            answer = api.http.request(method, path, **(more | {"headers": headers}))
            said = {name: value for name, value in answer.headers.items() if name != "date"}
            found.append((answer.status_code, said, answer.content))
    return found


def test_both_ways_answer_alike(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    short = answers(settings)
    monkeypatch.setattr(direct, "ways", lambda routes: {})
    for request, one, other in zip(REQUESTS, short, answers(settings), strict=True):
        assert one == other, request
    assert {status for status, _, _ in short} >= {200, 400, 403, 404, 405, 406, 415}


def test_which_requests_take_it(settings: Settings) -> None:
    app: FastAPI = create_app(settings)
    assert [each.dependency for each in app.router.dependencies] == [
        authorise,
        refuse_unknown_parameters,
        refuse_unread,
    ]
    (layer,) = [layer for layer in app.user_middleware if layer.cls is direct.Direct]
    found = direct.ways(layer.kwargs["routes"])
    assert {("POST", "/max-flow"), ("POST", "/min-cut"), ("PATCH", "/capacities"), ("GET", "")} <= found.keys()
    assert ("GET", "/events") not in found  # it has a dependency of its own
    assert not any("{" in rest or ":" in rest for _, rest in found)
