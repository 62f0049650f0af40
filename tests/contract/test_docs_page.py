"""/docs is there without internet and without a key, and says all that the OpenAPI document says."""

import re
from typing import Any

import pytest

from service.api.app import create_app
from service.settings import Settings
from service.store.api_keys import Scope, new_key
from tests.contract.fakes import WORKER, Api
from tests.contract.test_access import no_keys_left
from tests.contract.test_codes import check_problem

__all__ = ["no_keys_left"]


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return create_app(Settings()).openapi()


def test_nothing_is_loaded_from_anywhere(api: Api) -> None:
    page = api.http.get("/docs")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "script" not in page.headers["content-security-policy"]
    assert not re.search(r"<script|<link|<img|<iframe|@import|url\(|\son[a-z]+=|=\s*[\"']?(https?:)?//", page.text)
    check_problem(api.http.get("/redoc"), "not_found")


def test_links_lead_on_under_the_path_that_a_proxy_has_the_service_at(api: Api) -> None:
    for path in ("/docs", "/status"):
        page = api.http.get(path, headers={"Accept": "text/html"}).text
        links = [link for link in re.findall(r'(?:href|action)="([^"]*)"', page) if not link.startswith("#")]
        assert links, path
        assert not [link for link in links if link.startswith("/")], path


def test_every_operation_and_every_schema_has_its_place(api: Api, document: dict[str, Any]) -> None:
    page = api.http.get("/docs").text
    names = re.findall(r'id="([^"]+)"', page)
    assert len(names) == len(set(names))
    for operations in document["paths"].values():
        assert {operation["operationId"] for operation in operations.values()} <= set(names)
    assert {f"schema-{name}" for name in document["components"]["schemas"]} <= set(names)
    assert {link[1:] for link in re.findall(r'href="(#[^"]+)"', page)} <= set(names)


def test_the_page_and_probes_need_no_key(api: Api) -> None:
    key, _ = new_key("x", Scope.READ)
    api.fakes.api_keys.keys = {key.id: key}
    if api.fakes.key_table is not None:
        api.fakes.key_table._read_at = 0.0
    check_problem(api.http.get("/v1/graphs"), "unauthorised")
    for path in ("/docs", "/health"):
        assert api.http.get(path).status_code == 200


def test_health_says_what_both_probes_say(api: Api) -> None:
    assert api.http.get("/health").json() == {"status": "ready", "live": True, "ready": True}
    api.fakes.dispatcher.known_workers = [WORKER.model_copy(update={"ready": False})]
    check_problem(api.http.get("/health"), "worker_unavailable")
    api.fakes.dispatcher.away = True
    check_problem(api.http.get("/health"), "worker_unavailable")


def test_operations_have_names_that_programs_can_have(document: dict[str, Any]) -> None:
    names = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(names) == len(set(names))
    assert not [name for name in names if not re.fullmatch(r"[a-z]+(_[a-z]+){0,2}", name)]
    linked = re.findall(r"'operationId': '(\w+)', 'parameters'", str(document))
    assert linked
    assert set(linked) <= set(names)
