"""Logging in with a browser: when the cookie counts, what the pages offer, and that other pages get nothing done."""

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from html import unescape
from typing import Any
from urllib.parse import urljoin

import httpx
import pytest
from starlette.datastructures import Headers

from service.api.guards.access import NEEDED, OF_ALL_GRAPHS, OPEN
from service.api.guards.cookie import NAME, SECURE_NAME, is_secure, session_of
from service.api.guards.wrong_keys import AT_ONCE, PER_S, WrongKeys
from service.api.http.cookies import ours
from service.api.replies.login_page import local_path
from service.errors import ServiceError
from service.store.api_keys import Scope
from service.store.sessions import SESSION_S
from tests.contract.fakes import Api, filled
from tests.contract.test_access import forget, make_key, no_keys_left
from tests.contract.test_codes import check_problem

__all__ = ["no_keys_left"]

HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
TYPED = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
SENT = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
LINK = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
TOKEN = f"hs_{12 * '0'}_{12 * '1'}_{43 * 'S'}"


def origin(api: Api) -> dict[str, str]:
    """What a browser says of a form on our own page."""
    return SENT | {"Origin": f"http://127.0.0.1:{api.address[1]}"}


def token_of(key: dict[str, str]) -> str:
    return key["Authorization"].removeprefix("Bearer ")


def log_in(api: Api, key: dict[str, str], **form: str) -> httpx.Response:
    return api.http.post("/login", data={"key": token_of(key)} | form, headers=HTML | origin(api))


@pytest.fixture(autouse=True)
def no_cookies_left(api: Api) -> Iterator[None]:
    """The browser of each test is a new one, and so is that of whoever comes next."""
    api.http.cookies.clear()
    yield
    api.http.cookies.clear()


def test_a_person_types_the_key_once(api: Api) -> None:
    """At the address they wanted; then they see it, until they log out."""
    key = make_key(api, Scope.READ)
    wanted = "/status?all=1&x=%22"
    form = api.http.get(wanted, headers=HTML | TYPED)
    assert (form.status_code, form.headers["www-authenticate"]) == (401, "Bearer")
    action, to = re.search(r'action="([^"]+)".*name="next" value="([^"]+)"', form.text).groups()  # type: ignore[union-attr]  # there is a form
    assert (action, unescape(to)) == ("./login", wanted)
    assert f"logged in for {SESSION_S // 3600} hours" in form.text
    assert '<input name="username" value="API key" autocomplete="username" hidden>' in form.text  # password managers
    sent = log_in(api, key, next=unescape(to))
    assert (sent.status_code, sent.headers["location"]) == (303, f".{wanted}")
    page = api.http.get(wanted, headers=HTML | SENT)
    assert (page.status_code, "Workers" in page.text) == (200, True)
    (key_id,) = api.fakes.api_keys.keys
    assert f"Logged in with the key {key_id}." in page.text
    assert key_id in api.http.get("/login", headers=HTML | TYPED).text
    (session,) = api.fakes.sessions.tokens
    out = api.http.post("/logout", headers=HTML | origin(api))
    assert (out.status_code, out.headers["location"], api.fakes.sessions.tokens) == (303, "./login", [])
    assert not api.http.cookies
    shown = api.http.get("/status", headers=HTML | TYPED | {"Cookie": f"{NAME}={session}"})
    assert (shown.status_code, "API key" in shown.text) == (401, True)


def test_a_person_logs_in_under_a_path(api: Api) -> None:
    """A proxy has the service under https://example.org/headrace/ and takes that off. All links led out of it."""
    prefix = "https://example.org/headrace"
    key = make_key(api, Scope.READ)
    browser = {"Host": "example.org", "Origin": "https://example.org"}
    for wanted in ("/status?all=1", "/console/graphs/city", "/v1/graphs/city/capacities"):
        form = api.http.get(wanted, headers=HTML | LINK | {"Host": "example.org"})
        found = {*re.findall(r' (?:href|action)="([^"]+)"', form.text)}
        led_to = {urljoin(prefix + wanted, unescape(link)) for link in found}
        assert led_to == {prefix + path for path in (wanted, "/login", "/docs")}
        to = unescape(re.search(r'name="next" value="([^"]+)"', form.text)[1])  # type: ignore[index]  # there is one
        sent = api.http.post("/login", data={"key": token_of(key), "next": to}, headers=HTML | SENT | browser)
        assert urljoin(f"{prefix}/login", sent.headers["location"]) == prefix + wanted
    log_in(api, key)
    for page in ("/login", "/status"):
        shown = api.http.get(page, headers=HTML | TYPED).text
        action = re.search(r'action="([^"]+)"', shown)[1]  # type: ignore[index]  # to log out
        assert urljoin(prefix + page, action) == f"{prefix}/logout"
    assert urljoin(prefix + "/logout", api.http.post("/logout", headers=SENT | browser).headers["location"]) == (
        f"{prefix}/login"
    )


def test_the_cookie_is_out_of_reach(api: Api) -> None:
    answer = log_in(api, make_key(api))
    (cookie,) = answer.headers.get_list("set-cookie")
    name, *attributes = cookie.split("; ")
    assert name.startswith("headrace=hs_")
    assert set(map(str.lower, attributes)) == {"httponly", "path=/", "samesite=strict", f"max-age={SESSION_S}"}
    assert SESSION_S <= 24 * 3600
    headers = {"Origin": "https://dispatch.example", "Host": "dispatch.example"}
    proxied = api.http.post("/login", data={"key": token_of(make_key(api))}, headers=headers)
    (cookie,) = proxied.headers.get_list("set-cookie")
    assert cookie.startswith("__Host-headrace=hs_")
    assert "; secure" in cookie.lower()
    assert "domain" not in cookie.lower()


def test_every_page_that_wants_a_key_offers_the_form(api: Api) -> None:
    """To a browser; programs get the problem they know, and so does a browser that showed a key."""
    make_key(api)
    for method, path in NEEDED:
        url = filled(path)
        if method == "GET":
            form = api.http.get(url, headers=HTML | TYPED)
            assert (form.status_code, 'name="key"' in form.text) == (401, True), path
        check_problem(api.http.request(method, url), "unauthorised")
    check_problem(api.http.post("/v1/graphs/city/max-flow", headers=HTML), "unauthorised")
    assert 'href="login"' in api.http.get("/docs").text


@pytest.mark.parametrize("accept", [HTML["Accept"], "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2"])
def test_a_program_that_takes_html_gets_the_problem(api: Api, accept: str) -> None:
    """The second is what Java's own client sends; what a browser loads for a page of its own is no page either."""
    make_key(api)
    for method, path in NEEDED:
        if method == "GET" and path not in ("/status", "/console", "/console/graphs/{name}"):
            for headers in ({}, {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}):
                check_problem(api.http.get(filled(path), headers=headers | {"Accept": accept}), "unauthorised")
    for page in ("/status", "/console", "/console/graphs/city"):
        form = api.http.get(page, headers={"Accept": accept})
        assert (form.status_code, 'name="key"' in form.text) == (401, True), page


def test_the_form_s_page_is_as_closed_as_the_others(api: Api) -> None:
    """It sends forms here alone, with their origin: a browser that is told no referrer says `Origin: null`."""
    make_key(api)
    for page in (api.http.get("/login"), api.http.get("/status", headers=HTML)):
        policy = page.headers["content-security-policy"]
        for rule in ("default-src 'none'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"):
            assert rule in policy
        assert (page.headers["referrer-policy"], page.headers["cache-control"]) == ("same-origin", "no-store")
        assert not re.search(r"<script|<link|<img|<iframe|@import|url\(|\son[a-z]+=|https?:", page.text)
    log_in(api, make_key(api))
    page = api.http.get("/status", headers=HTML | TYPED)
    assert page.headers["referrer-policy"] == "same-origin"
    assert "form-action 'self'" in page.headers["content-security-policy"]


@pytest.mark.parametrize("scope", list(Scope))
def test_a_session_has_the_rights_of_its_key_and_no_more(api: Api, scope: Scope) -> None:
    log_in(api, make_key(api, scope, "city"))
    for (method, path), needed in NEEDED.items():
        url = filled(path)
        may = scope.covers(needed) and (method, path) not in OF_ALL_GRAPHS
        answer = api.http.request(method, url, headers=origin(api) | {"Sec-Fetch-Mode": "cors"})
        refused = answer.status_code == 403
        assert answer.status_code != 401
        assert refused is not may, (method, path, answer.text)
    check_problem(api.http.get("/v1/graphs/town", headers=SENT), "forbidden")


@pytest.mark.parametrize(("method", "path"), [route for route in NEEDED if route[0] != "GET"])
def test_nothing_is_done_for_who_does_not_say_where_it_comes_from(api: Api, method: str, path: str) -> None:
    """The cookie of an admin is sent along by a browser that knows of no SameSite: it has to say that our page asks."""
    log_in(api, make_key(api))
    url = filled(path)
    for headers, code in (
        ({}, "unauthorised"),
        ({"Sec-Fetch-Site": "none"}, "unauthorised"),
        ({"Sec-Fetch-Site": "same-origin, cross-site"}, "forbidden"),
        ({"Sec-Fetch-Site": "same-site"}, "forbidden"),
        ({"Sec-Fetch-Site": "cross-site"}, "forbidden"),
        ({"Origin": "null"}, "forbidden"),
        ({"Origin": "http://evil.example"}, "forbidden"),
        (LINK, "forbidden"),
    ):
        check_problem(api.http.request(method, url, headers=headers), code)
    assert not api.fakes.dispatcher.sent


def test_another_page_logs_nobody_in_or_out(api: Api) -> None:
    key = make_key(api)
    log_in(api, key)
    for headers in (LINK, {"Origin": "null"}, {"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "same-site"}):
        for path in ("/login", "/logout"):
            answer = api.http.post(path, data={"key": token_of(key)}, headers=headers)
            check_problem(answer, "forbidden")
            assert "set-cookie" not in answer.headers
    assert len(api.fakes.sessions.tokens) == 1


def test_who_follows_a_link_is_told_how_to_go_on(api: Api) -> None:
    """A strict cookie is held back then; if it were not, it would not count."""
    log_in(api, make_key(api))
    for site in ("cross-site", "same-site"):
        page = api.http.get("/status", headers=HTML | LINK | {"Sec-Fetch-Site": site})
        assert (page.status_code, '<a href="./status">go on</a>' in page.text) == (401, True)
    assert api.http.get("/status", headers=HTML | SENT).status_code == 200


def test_it_ends_with_its_key(api: Api) -> None:
    log_in(api, make_key(api))
    assert api.http.get("/v1/graphs", headers=SENT).status_code == 200
    (key_id,) = api.fakes.api_keys.keys
    revoked = api.fakes.api_keys.keys[key_id].model_copy(update={"revoked_at": datetime.now(UTC)})
    api.fakes.api_keys.keys[key_id] = revoked
    forget(api)
    check_problem(api.http.get("/v1/graphs", headers=SENT), "unauthorised")
    over = "This session is over: log in again."
    assert over in api.http.get("/status", headers=HTML | SENT).text
    assert over not in httpx.get(f"{api.http.base_url}/status", headers=HTML | TYPED, trust_env=False).text
    del api.fakes.api_keys.keys[key_id]
    make_key(api)
    check_problem(api.http.get("/v1/graphs", headers=SENT), "unauthorised")
    api.fakes.api_keys.keys.clear()
    forget(api)
    check_problem(api.http.get("/v1/graphs", headers=SENT), "worker_unavailable")


def test_a_key_counts_for_more_than_a_cookie(api: Api) -> None:
    """Who shows a wrong one is refused, whoever is logged in."""
    log_in(api, make_key(api))
    check_problem(api.http.get("/v1/graphs", headers=SENT | {"X-API-Key": "hr_wrong"}), "unauthorised")
    town = make_key(api, Scope.READ, "town")
    check_problem(api.http.get("/v1/graphs/city", headers=SENT | town), "forbidden")


def test_what_a_browser_shows_to_a_proxy_is_no_key(api: Api) -> None:
    """A browser that a proxy has asked for a password sends it with each request, and the proxy passes it on."""
    key, asked = make_key(api), SENT | {"Authorization": "Basic YWRtaW46YWRtaW4="}
    check_problem(api.http.get("/v1/graphs", headers=asked), "unauthorised")
    log_in(api, key)
    assert api.http.get("/v1/graphs", headers=asked).status_code == 200


def test_while_redis_is_away_no_session_counts(api: Api) -> None:
    log_in(api, make_key(api))
    api.fakes.sessions.away = True
    check_problem(api.http.get("/v1/graphs", headers=SENT), "worker_unavailable")


def test_without_keys_nothing_changes(api: Api) -> None:
    """A cookie of another service on this host neither helps nor hurts."""
    for headers in ({}, {"Cookie": f"{NAME}={TOKEN}"}):
        assert api.http.get("/status", headers=HTML | headers).status_code == 200
        assert api.http.get("/v1/graphs", headers=headers).status_code == 200
    assert "asks for no API keys" in api.http.get("/login").text
    sent = api.http.post("/login", data={"key": "anything"})
    assert (sent.status_code, "set-cookie" in sent.headers) == (303, False)
    check_problem(api.http.get("/status", headers={"Host": "evil.example", "Cookie": f"{NAME}={TOKEN}"}), "forbidden")


def test_wrong_keys_are_refused_and_counted(api: Api) -> None:
    """Beyond some, more slowly; and a right one is let in all the while."""
    key = make_key(api)
    codes = [
        api.http.post("/login", data={"key": wrong}, headers=origin(api)).status_code
        for wrong in ["", "hr_", token_of(key)[:-1], *(AT_ONCE + 20) * ["x"]]
    ]
    assert codes[:AT_ONCE] == AT_ONCE * [401]
    assert codes[-1] == 429
    refused = api.http.post("/login", data={"key": "x"}, headers=origin(api))
    assert int(refused.headers["retry-after"]) >= 1
    assert api.fakes.sessions.tokens == []
    assert log_in(api, key).status_code == 303


def test_how_many_wrong_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    wrong = WrongKeys()

    def counted() -> int:
        """How many are let through before one is refused."""
        for done in range(1000):
            try:
                wrong.count()
            except ServiceError:
                return done
        return 1000

    assert counted() == AT_ONCE
    now[0] += 5 / PER_S
    assert counted() == 5
    now[0] += 3600
    assert counted() == AT_ONCE


@pytest.mark.parametrize(
    ("content", "kind", "code"),
    [
        (b'{"key": "x"}', "application/json", "unsupported_media_type"),
        (b"key=\xff", "application/x-www-form-urlencoded", "invalid_body"),
        (b"&".join(b"a%d=1" % i for i in range(9)), "application/x-www-form-urlencoded", "invalid_body"),
        (b"key=" + 5000 * b"x", "application/x-www-form-urlencoded", "too_large"),
    ],
)
def test_what_is_no_form(api: Api, content: bytes, kind: str, code: str) -> None:
    make_key(api)
    check_problem(api.http.post("/login", content=content, headers={"Content-Type": kind}), code)


@pytest.mark.parametrize(
    "wanted",
    ["//evil.example", "/\\evil.example", "https://evil.example", "javascript:x", "", "/a\r\nX: y", "/" + 2000 * "a"],
)
def test_it_leads_nowhere_else(api: Api, wanted: str) -> None:
    assert local_path(wanted) == "/console"
    assert log_in(api, make_key(api), next=wanted).headers["location"] == "./console"
    assert "evil" not in api.http.get("/login", params={"next": wanted}, headers=HTML).text


def test_where_it_leads() -> None:
    for path in ("/", "/docs", "/v1/graphs/city/capacities?limit=5"):
        assert local_path(path) == path


@pytest.mark.parametrize(
    ("cookie", "secure", "found"),
    [
        (f"{NAME}={TOKEN}", False, True),
        (f"a=1; {NAME}={TOKEN}; b=2", False, True),
        (f"{SECURE_NAME}={TOKEN}", True, True),
        (f"{SECURE_NAME}={TOKEN}; {NAME}={TOKEN[:-1]}T", False, True),
        (f"{NAME}={TOKEN}", True, False),
        (f"{NAME}={TOKEN}; {NAME}={TOKEN}", False, False),
        (f"x{NAME}={TOKEN}", False, False),
        (f"{NAME}={TOKEN}x", False, False),
        (f"a={NAME}={TOKEN}", False, False),
        (f"{NAME}=hr_{12 * '0'}_{43 * 'S'}", False, False),
        ("", False, False),
        (32_000 * "; ", False, False),
    ],
)
def test_which_cookie_is_read(cookie: str, secure: bool, found: bool) -> None:
    scope: Any = {"type": "http", "method": "GET", "scheme": "https" if secure else "http"}
    assert session_of(scope, Headers({"cookie": cookie})) == (TOKEN if found else None)


@pytest.mark.parametrize(
    ("sent", "heard"),
    [
        (b"a=1; headrace=hs_x; b=2", b"headrace=hs_x"),
        (b"headrace=a;__Host-headrace=b", b"headrace=a; __Host-headrace=b"),
        (b'headrace="a"; headrace=a b; headrace=; xheadrace=a; a="; headrace=b"', b""),
        (b"headrace=" + 200 * b"a", b""),
        (9 * b"headrace=a; ", b"; ".join(4 * [b"headrace=a"])),
        (b"", b""),
    ],
)
def test_no_other_cookie_is_heard(sent: bytes, heard: bytes) -> None:
    assert ours(sent) == heard


def test_who_speaks_tls() -> None:
    """This process, or a proxy before it: the page of the form came over it then."""
    for scheme, origin, expected in (("https", "", True), ("http", "https://a", True), ("http", "http://a", False)):
        scope: Any = {"type": "http", "scheme": scheme}
        assert is_secure(scope, Headers({"origin": origin})) is expected


def test_open_pages_stay_open(api: Api) -> None:
    make_key(api)
    assert {api.http.get(path, headers=HTML).status_code for path in OPEN} <= {200, 307}
