"""What a worker measures. Its text travels to Redis with a heartbeat; every API process shows it at /metrics.

So a worker opens no port of its own, and one scrape of any API process sees the whole service. What Prometheus gets is
as old as the last heartbeat, about a second; of a worker that has had nothing to do since, `IDLE_S` at most. Its text,
which is long, would otherwise be most of what an idle service writes to its disk.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from gpu_engine.engine import Mode
from service.protocol import Kind, Status
from service.telemetry.buckets import SECONDS

TTL_S: Final = 60
"""How long the text of a worker is kept after its last heartbeat."""

IDLE_S: Final = 15.0
"""How often a worker sends its text if nothing but the metrics of its process has changed."""

COUNTED: Final[Mapping[str, str]] = {
    "commits_shared": "Commits of several updates of one graph at once.",
    "certificate_failures": "Answers whose proof failed and that were therefore not given.",
    "fenced": "Commits refused because another process had written to the graph.",
    "graphs_lost": "Graphs in memory that Redis does not know any more, and no delete of which is recorded.",
    "graphs_handed_back": "Graphs given back to the worker they were taken from.",
    "graphs_restored": "Graphs read back from Redis.",
    "flow_states_reopened": "Flow states solved again after a restart, before anybody asked.",
    "graphs_spilled": "Graphs dropped from memory to make room.",
    "snapshots_broken": "Snapshots that could not be read back.",
    "snapshots_failed": "Snapshots that could not be written.",
    "snapshots_written": "Snapshots written.",
}
"""Counters of `service.worker.graphs.Graphs`: there from the start, so that the first failure is an increase."""


@dataclass(frozen=True, slots=True)
class Residency:
    """What a worker has in memory at present."""

    flow_states: int
    lag_updates: int
    """The most updates that any graph has in its log after its newest snapshot."""
    lag_s: float
    """The longest time that any graph has had such updates."""


class Counts(Collector):
    """`Graphs.counters` as metric families."""

    def __init__(self) -> None:
        self.values: Mapping[str, int] = {}

    def collect(self) -> Iterable[Metric]:
        for name, text in COUNTED.items():
            yield CounterMetricFamily(f"headrace_{name}", text, value=self.values.get(name, 0))


class WorkerMetrics:
    """The metrics of one worker. Safe from any thread. Labels are few: modes, kinds, statuses, the engine's name."""

    def __init__(self) -> None:
        self._has_news = True
        self._held: tuple[Mapping[str, int], int, int] | None = None
        self._told_at = 0.0
        self._registry = registry = CollectorRegistry()
        ProcessCollector(namespace="headrace_worker", registry=registry)
        self._counts = Counts()
        registry.register(self._counts)

        def histogram(name: str, text: str, *labels: str) -> Histogram:
            return Histogram(f"headrace_{name}", text, labels, buckets=SECONDS, registry=registry)

        def gauge(name: str, text: str) -> Gauge:
            return Gauge(f"headrace_{name}", text, registry=registry)

        self._solves = histogram("solve_seconds", "Solves, by how the answer was reached.", "mode", "engine")
        self._proofs = histogram("certificate_seconds", "Proofs of answers.", "engine")
        self._work = Counter(
            "headrace_solver_operations", "Pushes, relabels and the like.", ("operation", "engine"), registry=registry
        )
        self._commands = histogram("command_seconds", "Commands, from their start to their end.", "kind", "status")
        self._queued = histogram("command_queue_seconds", "Commands, from the request to their start.", "kind")
        self._appends = histogram("log_append_seconds", "Commits of updates to the log in Redis.")
        self._moves = histogram("move_pause_seconds", "Moves of graphs to other workers, by how long commands waited.")
        self._redis = histogram("worker_redis_seconds", "One small write to Redis, measured with each text of metrics.")
        self._flow_states = gauge("flow_states", "Flow states kept in memory.")
        self._lag_updates = gauge("log_lag_updates", "Most updates of any graph since its newest snapshot.")
        self._lag_s = gauge("log_lag_seconds", "Longest time any graph has had updates without a snapshot.")

    def engine_is(self, engine: str) -> None:
        """Show the engine's metrics from the start, at zero."""
        for mode in Mode:
            self._solves.labels(mode.value, engine)
        self._proofs.labels(engine)

    def solved(self, mode: Mode, engine: str, solve_ms: float, certificate_ms: float, work: Mapping[str, int]) -> None:
        """Count one solve with its proof; `work` is what the solver did, by operation."""
        self._has_news = True
        self._solves.labels(mode.value, engine).observe(1e-3 * solve_ms)
        self._proofs.labels(engine).observe(1e-3 * certificate_ms)
        for operation, count in work.items():
            self._work.labels(operation, engine).inc(max(0, count))

    def ended(self, kind: Kind, status: Status, queue_s: float, run_s: float) -> None:
        """Count a command that has ended, how long it waited and how long it ran."""
        self._has_news = True
        self._queued.labels(kind.value).observe(max(0.0, queue_s))
        self._commands.labels(kind.value, status.value).observe(max(0.0, run_s))

    def appended(self, seconds: float) -> None:
        self._has_news = True
        self._appends.observe(seconds)

    def moved(self, pause_s: float) -> None:
        self._has_news = True
        self._moves.observe(pause_s)

    def was_not_told(self) -> None:
        """Note that the latest text has not reached Redis."""
        self._has_news = True

    def redis_answered(self, seconds: float) -> None:
        self._redis.observe(seconds)

    def news(self, counters: Mapping[str, int], residency: Residency) -> str | None:
        """All metrics in the Prometheus text format, in about a millisecond; None if they were told lately, and only
        those of the process itself have changed since."""
        now, holds = time.monotonic(), (dict(counters), residency.flow_states, residency.lag_updates)
        if not self._has_news and holds == self._held and now < self._told_at + IDLE_S:
            return None
        self._has_news, self._held, self._told_at = False, holds, now
        self._counts.values = counters
        self._flow_states.set(residency.flow_states)
        self._lag_updates.set(residency.lag_updates)
        self._lag_s.set(residency.lag_s)
        return generate_latest(self._registry).decode()
