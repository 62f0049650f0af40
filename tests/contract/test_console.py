"""The console's pages without a browser: who gets them, what they may do, and that nothing of a caller is markup."""

import re
from collections.abc import Iterator
from urllib.parse import urljoin

import pytest

from service.api.guards.access import PAGES
from service.console import pages
from service.console.files import assets
from service.store.api_keys import Scope
from tests.contract.fakes import Api
from tests.contract.test_access import make_key, no_keys_left
from tests.contract.test_codes import check_problem
from tests.contract.test_login import HTML, SENT, TYPED, log_in

__all__ = ["no_keys_left"]


@pytest.fixture(autouse=True)
def no_cookies_left(api: Api) -> Iterator[None]:
    """The browser of each test is a new one, and so is that of whoever comes next."""
    api.http.cookies.clear()
    yield
    api.http.cookies.clear()


def test_whoever_opens_the_bare_address_sees_the_console(api: Api) -> None:
    page = api.http.get("/", headers=HTML | TYPED, follow_redirects=True)
    assert (page.status_code, page.url.path) == (200, "/console")
    assert "no keys: open to this machine" in page.text


def test_with_keys_it_asks_for_one_and_shows_whose_it_is(api: Api) -> None:
    key = make_key(api, Scope.UPDATE, "city")
    for _, path in PAGES:
        url = path.format(name="city", file="console.css")
        form = api.http.get(url, headers=HTML | TYPED)
        assert (form.status_code, 'name="key"' in form.text) == (401, True), path
        check_problem(api.http.get(url), "unauthorised")
    assert log_in(api, key, next="/console/graphs/city").headers["location"] == "./console/graphs/city"
    page = api.http.get("/console/graphs/city", headers=HTML | SENT)
    (key_id,) = api.fakes.api_keys.keys
    assert (page.status_code, key_id in page.text, 'data-scope="update"' in page.text) == (200, True, True)
    assert 'action="../../logout"' in page.text
    other = api.http.get("/console/graphs/town", headers=HTML | SENT)
    assert (other.status_code, "The key is good for graphs named city..." in other.text) == (403, True)


@pytest.mark.parametrize(
    ("path", "code", "said", "home"),
    [
        ("/console/nope", "not_found", "There is no /console/nope; the console is at /console.", "../console"),
        ("/console/graphs", "not_found", "There is no /console/graphs; ", "../console"),
        ("/console/", "not_found", "There is no /console/; ", "../console"),
        ("/console/graphs/a/b", "not_found", "There is no /console/graphs/a/b; ", "../../../console"),
        ("/console/assets/none.js", "not_found", "The console has no such file.", "../../console"),
        ("/nope", "not_found", "There is no /nope; ", "./console"),
        ("/status/x", "not_found", "There is no /status/x; ", "../console"),
        ("/docs/x", "not_found", "There is no /docs/x; ", "../console"),
        ("/console/graphs/<i>", "invalid_request", "&#x27;&lt;i&gt;&#x27; is no graph name", "../../console"),
    ],
)
def test_a_page_that_there_is_not_is_refused_by_a_page(api: Api, path: str, code: str, said: str, home: str) -> None:
    """To a browser; with a way back, at whatever address a proxy has put the service."""
    page = api.http.get(path, headers=HTML | TYPED)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "script" not in page.text
    assert f'<a href="{home}">' in page.text
    assert said in page.text
    problem = api.http.get(path, headers={"Accept": "*/*"})
    check_problem(problem, code)
    assert page.status_code == problem.status_code
    assert "Accept" in page.headers["vary"]
    assert api.http.post(path, headers=HTML | TYPED).headers["content-type"] == "application/problem+json"


def test_what_programs_ask_for_is_refused_as_a_problem_to_a_browser_too(api: Api) -> None:
    for path in ("/v1/nothing", "/v1/graphs/nowhere", "/v1", "/health/x", "/openapi.json/x"):
        check_problem(api.http.get(path, headers=HTML | TYPED), api.http.get(path).json()["code"])


def test_a_page_runs_no_script_but_those_of_the_console(api: Api) -> None:
    for path in ("/console", "/console/graphs/city"):
        page = api.http.get(path)
        policy = page.headers["content-security-policy"]
        for rule in (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "require-trusted-types-for 'script'",
        ):
            assert f"{rule};" in policy
        assert "unsafe" not in policy
        assert page.headers["cache-control"] == "no-store"
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=|https?:|//", page.text)
        for script in re.findall(r"<script[^>]*>([^<]*)", page.text):
            assert script == ""
        links = re.findall(r'(?:src|href)="([^"#]*assets/[^"]*)"', page.text)
        assert len(links) == 4
        for link in links:
            assert api.http.get(urljoin(path, link)).status_code == 200, link


def test_no_script_makes_markup_of_text() -> None:
    """Names, labels and error texts are written by strangers: elements are made of text alone."""
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|https?://(?!www\.w3\.org/2000/svg\")"
    for name, asset in assets().items():
        found = re.search(forbidden, asset.content.decode())
        assert found is None, (name, found)


def test_files_are_those_of_the_package_and_no_others(api: Api) -> None:
    for name, asset in assets().items():
        got = api.http.get(f"/console/assets/{name}")
        assert (got.content, got.headers["content-type"]) == (asset.content, asset.media_type)
        assert got.headers["cache-control"] == "no-cache"
        again = api.http.get(f"/console/assets/{name}", headers={"If-None-Match": got.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
    for name in ("..%2fpages.py", "%2e%2e/pages.py", "__init__.py", "nothing.js", "a" * 2000):
        check_problem(api.http.get(f"/console/assets/{name}"), "not_found")
    assert {name.rpartition(".")[2] for name in assets()} == {"js", "css", "svg"}


def test_what_stands_in_a_frame_is_text() -> None:
    page = pages.graph('"><script>x</script>', "<b>", "read", by_session=True)
    assert "<script>x" not in page
    assert "<b>" not in page
    assert "&lt;b&gt;" in page


def test_a_name_that_is_none_is_refused(api: Api) -> None:
    for name in ("%3Cscript%3E", "a%20b", ".hidden"):
        check_problem(api.http.get(f"/console/graphs/{name}"), "invalid_request")
