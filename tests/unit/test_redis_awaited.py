"""A worker whose Redis is not there, or goes away, says so once, and once that it is back: else its log is silent while
nothing becomes ready, or full of the same line."""

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import redis
from structlog.testing import capture_logs

from service.worker.process import Worker
from service.worker.running.consumer import Consumer
from tests.service_fixtures import Caller, StartWorker


@pytest.mark.parametrize(("refusals", "told"), [(3, 0), (30, 1)], ids=["a start", "an absence"])
def test_it_is_told_once(refusals: int, told: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    answers: Iterator[redis.ConnectionError | str] = iter([*[redis.ConnectionError("refused")] * refusals, "there"])

    def ask() -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    worker: Any = SimpleNamespace(name="w", _consumer=SimpleNamespace(stopping=False))
    with capture_logs() as lines:
        assert Worker._ask_redis(worker, ask) == "there"
    expected = {"event": "redis_awaited", "worker": "w", "error": "refused", "log_level": "warning"}
    assert lines == [expected] * told


@pytest.mark.parametrize(
    ("error", "away_s", "told"),
    [
        (redis.ConnectionError("gone"), 0.3, 0),
        (redis.ConnectionError("gone"), 2.0, 1),
        (redis.ResponseError("MISCONF no space left"), 2.0, 1),
    ],
    ids=["a cut connection", "an absence", "a full disk"],
)
def test_an_absence_is_told_of_once_and_its_end(
    error: redis.RedisError,
    away_s: float,
    told: int,
    caller: Caller,
    start_worker: StartWorker,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read, until = Consumer._read, [0.0]

    def refused(consumer: Consumer, last: bytes | None) -> bytes | None:
        if time.monotonic() < until[0]:
            raise error
        return read(consumer, last)

    monkeypatch.setattr(Consumer, "_read", refused)
    start_worker()
    caller.wait_ready()
    with capture_logs() as lines:
        until[0] = time.monotonic() + 1.0 + away_s  # the read at hand may take a second
        time.sleep(1.0 + away_s + 3.0)
    events = [(line["event"], line["log_level"]) for line in lines if line["event"].startswith("redis_")]
    assert events == [("redis_away", "warning"), ("redis_back", "info")] * told
    assert not any(line["event"] == "cannot_read" for line in lines)
