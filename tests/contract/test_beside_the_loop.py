"""What takes long is not made in the event loop while others wait: the OpenAPI document, a scrape of everything."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from service.api import metrics as api_metrics
from service.api.app import create_app
from service.api.routes import health
from service.settings import Settings
from tests.contract.fakes import Api, Fakes

READERS = 12


async def started() -> bool:
    """Whether the document is there before the first request."""
    app = create_app(Settings(), open_backend=Fakes().open)
    async with app.router.lifespan_context(app):
        return app.openapi_schema is not None


def test_the_document_is_made_at_the_start() -> None:
    assert asyncio.run(started())


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
