"""When a worker tells its metrics: with each heartbeat if there is something new, else now and then."""

import pytest

from gpu_engine.engine import Mode
from service.protocol import Kind, Status
from service.worker import metrics as metrics_module
from service.worker.metrics import Residency, WorkerMetrics

NOTHING = Residency(flow_states=0, lag_updates=0, lag_s=0.0)


def test_an_idle_worker_tells_its_metrics_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics, counters = WorkerMetrics(), {"fenced": 0}
    assert metrics.news(counters, NOTHING) is not None
    assert metrics.news(counters, NOTHING) is None
    assert metrics.news(counters, Residency(flow_states=0, lag_updates=0, lag_s=9.0)) is None
    monkeypatch.setattr(metrics_module, "IDLE_S", 0.0)
    text = metrics.news(counters, Residency(flow_states=0, lag_updates=0, lag_s=9.0))
    assert text is not None
    assert "headrace_log_lag_seconds 9.0" in text


def test_what_is_new_is_told_with_the_next_heartbeat() -> None:
    metrics, counters = WorkerMetrics(), {"fenced": 0}
    metrics.news(counters, NOTHING)
    for happens in (
        lambda: metrics.ended(Kind.PATCH, Status.SUCCEEDED, 0.0, 0.1),
        lambda: metrics.solved(Mode.COLD, "cpu", 1.0, 1.0, {"pushes": 1}),
        lambda: metrics.appended(0.1),
        lambda: metrics.moved(0.1),
        metrics.was_not_told,
        lambda: counters.update(fenced=1),
    ):
        happens()
        assert metrics.news(counters, NOTHING) is not None
        assert metrics.news(counters, NOTHING) is None
    text = metrics.news(counters, Residency(flow_states=1, lag_updates=0, lag_s=0.0))
    assert text is not None
    assert "headrace_fenced_total 1.0" in text
    assert "headrace_flow_states 1.0" in text
    assert metrics.news(counters, Residency(flow_states=1, lag_updates=2, lag_s=0.0)) is not None
