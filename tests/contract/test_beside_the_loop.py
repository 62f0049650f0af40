"""What takes long is not made in the event loop while others wait: the OpenAPI document, a scrape of everything."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pydantic.json_schema import models_json_schema

from service.api import metrics as api_metrics
from service.api import openapi
from service.api.app import create_app
from service.api.bodies.parsing import HERE_BYTES
from service.api.replies import answers
from service.api.routes import health
from service.settings import Settings
from tests.contract.conftest import running
from tests.contract.fakes import Api

READERS = 12


def test_the_document_is_made_once_when_it_is_asked_for_and_nobody_waits_for_it(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[bool] = []
    go_on = threading.Event()

    def slow(*arguments: Any, **options: Any) -> Any:
        made.append(go_on.wait(20))
        return models_json_schema(*arguments, **options)

    monkeypatch.setattr(openapi, "models_json_schema", slow)
    with running(settings) as api, ThreadPoolExecutor(READERS) as readers:
        assert api.http.get("/v1/nothing").status_code == 404
        assert api.http.get("/v1/graphs", params={"limt": 5}).status_code == 400
        paths = ["/openapi.json", "/docs", "/openapi.json"]
        answers = [readers.submit(api.http.get, path) for path in paths]
        assert api.http.get("/livez").status_code == 200  # the loop turns
        go_on.set()
        document, page, again = [answer.result() for answer in answers]
        assert (document.status_code, page.status_code) == (200, 200)
        assert document.json() == again.json() == create_app(settings).openapi()
        assert api.http.head("/openapi.json").status_code == 200
    assert made == [True, True], "once for the service, and once for the application that this test has made"


class Slow:
    """In place of `scrape`: holds each up until it is let go."""

    def __init__(self) -> None:
        self.threads: list[int] = []
        self.go_on = threading.Event()

    def __call__(self, *arguments: Any) -> bytes:
        self.threads.append(threading.get_ident())
        assert self.go_on.wait(20)
        return b"scrape %d" % len(self.threads)


def test_any_number_of_scrapes_cost_one_and_nobody_waits_for_it(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow()
    monkeypatch.setattr(health, "scrape", slow)
    monkeypatch.setattr(api_metrics, "KEPT_S", 60.0)
    with ThreadPoolExecutor(READERS) as readers:
        texts = [readers.submit(lambda: api.http.get("/metrics").text) for _ in range(READERS)]
        deadline = time.monotonic() + 20
        while not slow.threads and time.monotonic() < deadline:
            time.sleep(0.01)
        assert api.http.get("/livez").status_code == 200  # the loop turns
        slow.go_on.set()
        assert {text.result() for text in texts} == {"scrape 1"}
    assert api.http.get("/metrics").text == "scrape 1"
    monkeypatch.setattr(api_metrics, "KEPT_S", 0.0)
    assert api.http.get("/metrics").text == "scrape 2"


def test_a_scrape_that_fails_is_made_again(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> bytes:
        raise RuntimeError("broken")

    with monkeypatch.context() as breaking:
        breaking.setattr(health, "scrape", broken)
        assert api.http.get("/metrics").status_code == 500
    assert "headrace_redis_up 1" in api.http.get("/metrics").text


def test_long_arguments_are_not_hashed_where_others_wait(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the Idempotency-Key of an update, and to know a question again."""
    hash_them, held_up = answers.digest, []

    def hashed(*parts: Any) -> str:
        held_up.append(asyncio._get_running_loop() is not None)
        return hash_them(*parts)

    monkeypatch.setattr(answers, "digest", hashed)
    names = [f"{row:0100}" for row in range(HERE_BYTES // 100)]
    update, key = {"edges": names, "set": [1] * len(names)}, {"Idempotency-Key": "long"}
    assert api.http.patch("/v1/graphs/city/capacities", json=update, headers=key).status_code == 200
    question = {"sources": names, "sinks": ["t"]}
    assert api.http.post("/v1/graphs/city/max-flow", json=question).status_code == 200
    assert held_up == [False, False]
