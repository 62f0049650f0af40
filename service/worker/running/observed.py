"""What is logged, counted and traced of each delivery of a command."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from service.protocol import Status
from service.telemetry.tracing import Span, Tracing
from service.worker.metrics import WorkerMetrics
from service.worker.running.costs import Costs
from service.worker.running.task import Task

log = structlog.get_logger(__name__)


class Observer:
    """Logs, traces and times the commands of one worker. Safe from any thread."""

    def __init__(self, metrics: WorkerMetrics, tracing: Tracing, costs: Costs, access_log: bool) -> None:
        self._metrics = metrics
        self._tracing = tracing
        self._costs = costs
        self._access_log = access_log

    @contextmanager
    def observed(self, task: Task, *, only_ended: bool = False) -> Iterator[None]:
        """Around a run of the task: all that is logged meanwhile carries the command's ids. With `only_ended`, one that
        has not ended by then is not told of."""
        command = task.command
        ids = {"job_id": command.id, "graph": command.graph, "request_id": command.request_id}
        with (
            structlog.contextvars.bound_contextvars(**{name: value for name, value in ids.items() if value}),
            self._tracing.span(command.kind.value, "consumer", command.traceparent) as span,
        ):
            yield
            if task.ended or not only_ended:
                self._tell(task, span, ids)

    def _tell(self, task: Task, span: Span, ids: dict[str, str | None]) -> None:
        """Tell metrics, trace, costs and log how the task went. One that leaves its lane goes on."""
        if task.rest is not None and not task.is_beside:
            return
        command, started_at = task.command, task.started_at or task.command.created_at
        queue_s, run_s = started_at - command.created_at, time.time() - started_at
        if task.status is not None:
            self._metrics.ended(command.kind, task.status, queue_s, run_s)
        if task.status is Status.SUCCEEDED and task.rest is None:  # what is beside its lane keeps nobody waiting
            self._costs.took(command, run_s / task.among)
        status = task.status.value if task.status else "left"
        span.note(status=status, code=task.code, queue_ms=1e3 * queue_s, redelivered=task.redelivered, **ids)
        if task.status is Status.FAILED:
            span.failed(task.code or "")
        if self._access_log:
            times = {"ms": round(1e3 * run_s, 2), "queue_ms": round(1e3 * queue_s, 2)}
            code = {"code": task.code} if task.code else {}
            log.info("command", kind=command.kind.value, status=status, **code, **times)
