"""What a route does not read, and its caller could believe it did, is refused; what nobody means anything by passes."""

from typing import Any

import pytest

from tests.contract.fakes import Api

CHANGE: dict[str, Any] = {"json": {"edges": [0], "set": [4]}}
LONG_AGO = "Wed, 21 Oct 2015 07:28:00 GMT"
CSV = {"Content-Type": "text/csv"}
HOOK = {"url": "https://a.example/x", "graphs": ["city"]}
REFUSED: list[tuple[str, str, dict[str, Any], str, str]] = [
    ("POST", "max-flow", {"json": {}, "headers": {"If-Match": '"7"'}}, "invalid_request", "If-Match is not held"),
    ("POST", "what-if", {"json": {"scenarios": []}, "headers": {"If-Match": "*"}}, "invalid_request", "If-Match"),
    ("PUT", "watches/w", {"headers": {"If-Match": '"7"'}}, "invalid_request", "If-Match is not held"),
    ("PUT", "watches/w", {"headers": {"If-None-Match": "*"}}, "invalid_request", "If-None-Match is not held"),
    ("PUT", "/v1/webhooks/w", {"json": HOOK, "headers": {"If-Match": '"7"'}}, "invalid_request", "If-Match"),
    ("PUT", "/v1/webhooks/w", {"json": HOOK, "headers": {"If-None-Match": "*"}}, "invalid_request", "If-None-Match"),
    ("POST", ":restore", {"json": {"version": 1}, "headers": {"If-None-Match": "*"}}, "invalid_request", "If-None"),
    ("POST", ":copy", {"json": {"to": "g"}, "headers": {"If-None-Match": "*"}}, "invalid_request", "If-None-Match"),
    *(
        (method, path, more | {"headers": {"If-Unmodified-Since": LONG_AGO}}, "invalid_request", "If-Unmodified-Since")
        for method, path, more in (
            ("PUT", "", {"json": {"tail": [], "head": [], "capacity": []}}),
            ("PATCH", "capacities", CHANGE),
            ("DELETE", "", {}),
            ("POST", ":restore", {"json": {"version": 1}}),
            ("PUT", "watches/w", {}),
        )
    ),
    ("DELETE", "/v1/jobs/job-0", {"headers": {"If-Match": '"7"'}}, "invalid_request", "If-Match is not held"),
    ("GET", "/v1/graphs", {"headers": {"If-Match": '"7"'}}, "invalid_request", "If-Match is not held"),
    *(
        ("POST", "max-flow", {"json": {}, "headers": {name: "PATCH"}}, "invalid_request", "'PATCH' itself")
        for name in ("X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override")
    ),
    (
        "PUT",
        "",
        {"content": b"tail,head,capacity\n0,1,2\n", "headers": CSV | {"Content-Range": "bytes 0-24/9000"}},
        "invalid_request",
        "Content-Range is not read",
    ),
    ("GET", "", {"json": {"version": 3}}, "invalid_body", "takes no body"),
    ("GET", "capacities", {"content": iter([b'{"edges": [0]}'])}, "invalid_body", "takes no body"),
    ("DELETE", "", {"json": {"edges": [0]}}, "invalid_body", "takes no body"),
    ("DELETE", "watches/w", {"json": {"if_version": 3}}, "invalid_body", "takes no body"),
    *(
        ("POST", "max-flow", {"json": {}, "headers": {"Prefer": f"wait={value}"}}, "invalid_request", "whole seconds")
        for value in ("5s", "soon", "-1", "0.5", "", "1e3")
    ),
    ("PATCH", "capacities", CHANGE | {"headers": {"Prefer": "handling=strict, wait"}}, "invalid_request", "whole sec"),
]
PASSED: list[tuple[str, str, dict[str, Any]]] = [
    ("GET", "", {"headers": {"If-None-Match": '"7"', "If-Modified-Since": "Tue, 24 Nov 2026 02:00:00 GMT"}}),
    ("GET", "", {"headers": {"Content-Length": "0", "Cookie": "a=b", "Content-Type": "application/json"}}),
    ("GET", "", {"content": iter([b""])}),
    ("GET", "", {"content": b"{}"}),
    ("GET", "", {"headers": {"Prefer": "return=minimal, wait=5, handling=lenient"}}),
    ("GET", "/v1/graphs", {"headers": {"Prefer": "wait=5s"}}),
    ("DELETE", "", {"content": b""}),
    ("PATCH", "capacities", CHANGE | {"headers": {"X-HTTP-Method-Override": "patch", "If-Match": '"7"'}}),
    ("QUERY", "max-flow", {"json": {}, "headers": {"X-HTTP-Method-Override": "QUERY"}}),
    ("POST", "max-flow", {"json": {}, "headers": {"X-HTTP-Method-Override": "query", "X-HTTP-Method": ""}}),
    ("POST", "max-flow", {"json": {}, "headers": {"If-None-Match": '"7"', "Prefer": "respond-async=1"}}),
    ("POST", "max-flow", {"json": {}, "headers": {"If-Unmodified-Since": LONG_AGO}}),
    ("GET", "", {"headers": {"If-Unmodified-Since": LONG_AGO}}),
    ("GET", "/livez", {"json": {}, "headers": {"If-Match": '"7"'}}),
]


UNSHOWN: list[tuple[str, dict[str, Any], str]] = [
    ("max-flow", {"fields": ["value"], "cut": {"near": "sinks"}}, "/cut/near"),
    ("max-flow", {"fields": ["cut"], "flow": {"zeros": True}}, "/flow/zeros"),
    ("max-flow", {"bottlenecks": {"up_to": 3}}, "/bottlenecks/up_to"),
    ("min-cut", {"fields": ["value"], "cut": {"near": "sinks"}}, "/cut/near"),
    ("pairs", {"among": [0, 1], "cut": {"near": "sinks"}}, "/cut/near"),
    ("max-flow", {"cut": {"sides": False}}, "/cut/sides"),
    ("max-flow", {"flow": {"acyclic": False}}, "/flow/acyclic"),
    ("min-cut", {"fields": ["cut", "bottlenecks"], "flow": {"acyclic": False}}, "/flow/acyclic"),
    ("what-if", {"scenarios": [], "flow": {"acyclic": False}}, "/flow/acyclic"),
    ("pairs", {"among": [0, 1], "flow": {"acyclic": False}}, "/flow/acyclic"),
    ("circulation", {"flow": {"zeros": True}}, "/flow/zeros"),
]
SHOWN: list[tuple[str, dict[str, Any]]] = [
    ("max-flow", {"paths": {"top": 100}, "cut": {"near": "sources"}, "bottlenecks": {"up_to": 0}}),  # as it is anyway
    ("max-flow", {"fields": ["flow", "paths"], "flow": {"zeros": True}, "paths": {"top": 10}}),
    ("max-flow", {"fields": ["flow"], "flow": {"acyclic": False}}),
    ("max-flow", {"fields": ["terminals"], "flow": {"acyclic": False}}),
    ("max-flow", {"paths": {"top": 1}}),  # as older shells do
    ("min-cut", {"cut": {"near": "sinks"}}),
    ("pairs", {"among": [0, 1], "fields": ["cut"], "cut": {"near": "sinks"}}),
    ("pairs", {"among": [0, 1], "fields": ["value", "cut", "flow", "terminals", "paths", "bottlenecks"]}),
    ("min-cost-flow", {"fields": ["flow"], "flow": {"zeros": True}}),
]


@pytest.mark.parametrize(("question", "body", "field"), UNSHOWN)
def test_how_a_field_is_shown_that_is_not_asked_for_is_refused(
    api: Api, question: str, body: dict[str, Any], field: str
) -> None:
    answer = send(api, "POST", question, {"json": body})
    told = answer.json()
    assert (answer.status_code, told["code"], told["field"]) == (422, "invalid_body", field)
    assert not api.fakes.dispatcher.sent


@pytest.mark.parametrize(("question", "body"), SHOWN)
def test_how_a_field_is_shown_that_is_asked_for_counts(api: Api, question: str, body: dict[str, Any]) -> None:
    assert send(api, "POST", question, {"json": body}).status_code == 200


def send(api: Api, method: str, path: str, more: dict[str, Any]) -> Any:
    whole = f"/v1/graphs/city{path}" if path.startswith(":") else f"/v1/graphs/city/{path}".rstrip("/")
    url = path if path.startswith("/") else whole
    return api.http.request(method, url, **more)


@pytest.mark.parametrize(("method", "path", "more", "code", "told"), REFUSED)
def test_what_would_not_be_read_is_refused(
    api: Api, method: str, path: str, more: dict[str, Any], code: str, told: str
) -> None:
    answer = send(api, method, path, more)
    assert (answer.status_code, answer.json()["code"]) == (400 if code == "invalid_request" else 422, code)
    assert told in answer.json()["detail"]
    assert not api.fakes.dispatcher.sent, "nothing was begun"


@pytest.mark.parametrize(("method", "path", "more"), PASSED)
def test_what_callers_send_of_themselves_passes(api: Api, method: str, path: str, more: dict[str, Any]) -> None:
    assert send(api, method, path, more).status_code < 300
