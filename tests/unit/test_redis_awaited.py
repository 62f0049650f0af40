"""A worker whose Redis is not there says so, once: else its log is silent while nothing becomes ready."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import redis
from structlog.testing import capture_logs

from service.worker.process import Worker


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
