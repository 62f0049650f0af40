"""A worker whose Redis is not there, or goes away, says so once, and once that it is back: else its log is silent while
nothing becomes ready, or full of the same line."""

import threading
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


@pytest.mark.parametrize(("refusals", "told"), [(3, False), (30, True)], ids=["a start", "an absence"])
def test_it_is_told_once(refusals: int, told: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    monkeypatch.setattr("time.sleep", lambda seconds: clock.append(clock.pop() + seconds))
    answers: Iterator[redis.ConnectionError | str] = iter([*[redis.ConnectionError("refused")] * refusals, "there"])

    def ask() -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    worker: Any = SimpleNamespace(name="w", _consumer=SimpleNamespace(stopping=False))
    with capture_logs() as lines:
        assert Worker._ask_redis(worker, ask) == "there"
    away = {"event": "redis_away", "worker": "w", "error": "refused", "log_level": "warning"}
    back = {"event": "redis_back", "worker": "w", "away_s": 13, "log_level": "info"}
    assert lines == ([away, back] if told else [])


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
    read, may_begin, until = Consumer._read, threading.Event(), list[float]()

    def refused(consumer: Consumer, last: bytes | None) -> bytes | None:
        if may_begin.is_set() and not until:
            until.append(time.monotonic() + away_s)
        if until and time.monotonic() < until[0]:
            raise error
        return read(consumer, last)

    monkeypatch.setattr(Consumer, "_read", refused)
    start_worker()
    caller.wait_ready()
    with capture_logs() as lines:
        may_begin.set()
        time.sleep(1.0 + away_s + 3.0)  # the reads before and after may take a second
    events = [(line["event"], line["log_level"]) for line in lines if line["event"].startswith("redis_")]
    assert events == [("redis_away", "warning"), ("redis_back", "info")] * told
    assert not any(line["event"] == "cannot_read" for line in lines)
