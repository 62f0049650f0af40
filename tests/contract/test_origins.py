"""A web page of another origin cannot make a browser do anything here, with keys or without."""

from typing import Any

import httpx
import pytest

from service.api.guards.access import NEEDED, OPEN
from tests.contract.fakes import Api, filled
from tests.contract.test_access import make_key, no_keys_left
from tests.contract.test_codes import check_problem

__all__ = ["no_keys_left"]

CROSS_SITE = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "empty"}
VISIT = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


@pytest.fixture(params=["without keys", "with a key"])
def key(request: pytest.FixtureRequest, api: Api) -> dict[str, str]:
    return make_key(api) if request.param == "with a key" else {}


def ask(api: Api, method: str, path: str, headers: dict[str, str]) -> httpx.Response:
    body: Any = {"tail": [0], "head": [1], "capacity": [3]} if method == "PUT" else None
    return api.http.request(method, filled(path), headers=headers, json=body)


@pytest.mark.parametrize(("method", "path"), NEEDED)
def test_nothing_is_done_for_a_page_from_elsewhere(api: Api, key: dict[str, str], method: str, path: str) -> None:
    """By what the browser says of the page, or by its Origin alone, as older browsers send it."""
    for headers in (CROSS_SITE, {"Sec-Fetch-Site": "same-site"}, {"Origin": "http://evil.example"}):
        check_problem(ask(api, method, path, key | headers), "forbidden")
    assert not api.fakes.dispatcher.sent


@pytest.mark.parametrize(("method", "path"), [("POST", "/v1/graphs/city/snapshots"), ("DELETE", "/v1/graphs/city")])
def test_a_form_that_opens_in_a_window_is_no_visit(api: Api, key: dict[str, str], method: str, path: str) -> None:
    check_problem(ask(api, method, path, key | VISIT), "forbidden")
    assert not api.fakes.dispatcher.sent


@pytest.mark.parametrize("path", ["/status", "/v1/graphs", "/v1/graphs/{name}"])
def test_who_follows_a_link_sees_it(api: Api, key: dict[str, str], path: str) -> None:
    assert ask(api, "GET", path, key | VISIT).status_code == 200
    for other in ({"Sec-Fetch-Dest": "iframe"}, {"Sec-Fetch-Mode": "cors"}, {"Sec-Fetch-Dest": "image"}):
        check_problem(ask(api, "GET", path, key | VISIT | other), "forbidden")


@pytest.mark.parametrize("path", sorted(OPEN))
def test_probes_are_for_all(api: Api, path: str) -> None:
    assert api.http.get(path, headers=CROSS_SITE).status_code < 400


@pytest.mark.parametrize(
    ("host", "headers", "is_ours"),
    [
        ("localhost:8080", {}, True),
        ("localhost:8080", {"Origin": "http://localhost:8080"}, True),
        ("localhost:8080", {"Origin": "https://LOCALHOST:8080", "Sec-Fetch-Site": "same-origin"}, True),
        ("localhost", {"Origin": "http://localhost"}, True),
        ("localhost:80", {"Origin": "http://localhost"}, True),
        ("localhost:443", {"Origin": "https://localhost"}, True),
        ("[::1]:8080", {"Origin": "http://[::1]:8080"}, True),
        ("localhost:8080", {"Sec-Fetch-Site": "none"}, True),
        ("localhost:8080", {"Sec-Fetch-Mode": "cors"}, True),  # of Node's fetch, which has no site
        ("localhost:443", {"Origin": "http://localhost"}, False),
        ("localhost:8080", {"Origin": "http://localhost:3000"}, False),
        ("localhost:8080", {"Origin": "http://localhost"}, False),
        ("localhost:8080", {"Origin": "http://127.0.0.1:8080"}, False),
        ("localhost:8080", {"Origin": "http://localhost:8080.evil.example"}, False),
        ("localhost:8080", {"Origin": "null"}, False),
        ("localhost:8080", {"Origin": ""}, False),
        ("localhost:8080", {"Origin": "localhost:8080"}, False),
        ("localhost:8080", {"Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"}, False),
        ("localhost:8080", {"Origin": "http://localhost:8080", "Sec-Fetch-Site": "cross-site"}, False),
        ("localhost:8080", {"Sec-Fetch-Site": "none, cross-site"}, False),
        ("localhost:8080", {"Sec-Fetch-Site": ""}, False),
    ],
)
def test_which_origins_are_ours(api: Api, host: str, headers: dict[str, str], is_ours: bool) -> None:
    response = api.http.post("/v1/graphs/city/snapshots", headers={"Host": host} | headers)
    if is_ours:
        assert response.status_code == 200
    else:
        check_problem(response, "forbidden")


def test_each_of_several_headers_counts(api: Api) -> None:
    for name, values in (("Origin", ("http://localhost", "http://evil.example")), ("Sec-Fetch-Site", ("none", "x"))):
        headers = [("Host", "localhost"), *((name, value) for value in values)]
        check_problem(api.http.post("/v1/graphs/city/snapshots", headers=headers), "forbidden")
