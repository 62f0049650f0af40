"""What an API process measures of itself, and one scrape of everything."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from types import MappingProxyType
from typing import Final, Protocol

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample
from starlette.types import Scope

from service.protocol import Kind
from service.queue.models import FORGOTTEN_AFTER_S, RedisInfo, WorkerInfo
from service.store.hooks.record import Standing
from service.telemetry.buckets import SECONDS

KEPT_S = 1.0
"""All callers within this time get the same scrape, which costs tens of milliseconds of a core."""

METHODS: Final = frozenset({"GET", "HEAD", "QUERY", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""Methods that are counted by name; others share one label. A route refuses other methods, but its path is known
then."""

OTHER: Final = "other"

log = structlog.get_logger("headrace.api")


class Held(Protocol):
    """A budget or a cache that counts the bytes it holds."""

    @property
    def used_bytes(self) -> int: ...


class Metrics:
    """The metrics of one API process. They are bounded: routes are templates, and other methods share one label."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)

        def histogram(name: str, text: str, *labels: str) -> Histogram:
            return Histogram(f"headrace_{name}", text, labels, buckets=SECONDS, registry=self.registry)

        self.in_flight = Gauge("headrace_http_requests_in_flight", "Requests now.", registry=self.registry)
        self.sending_bytes = Gauge(
            "headrace_http_sending_bytes", "Of long answers on their way to readers.", registry=self.registry
        )
        self._requests = histogram("http_request_seconds", "Requests answered.", "method", "route", "status")
        self._submits = histogram("queue_submit_seconds", "Commands put into Redis.", "kind")
        self._repeated = Counter(
            "headrace_answers_repeated", "Answers given again by this process.", ("kind",), registry=self.registry
        )
        self._pings = histogram("redis_ping_seconds", "PING of Redis, measured at each scrape and at /status.")
        build = Gauge("headrace_build_info", "Always 1.", ("version",), registry=self.registry)
        build.labels(version("headrace-server")).set(1)

    def show_bytes(self, **kinds: Held) -> None:
        """Show what each of these holds by its name, as in ``headrace_api_bytes{kind="bodies"}``."""
        gauge = Gauge(
            "headrace_api_bytes",
            "Memory held for bodies and for replies.",
            ("kind",),
            registry=self.registry,
        )
        for kind, held in kinds.items():
            gauge.labels(kind).set_function(partial(getattr, held, "used_bytes"))

    def observe(self, scope: Scope, status: int, elapsed_s: float) -> None:
        """Count one request by its route and status, and its duration."""
        route = getattr(scope.get("route"), "path", "none")
        method = scope["method"] if scope["method"] in METHODS else OTHER  # callers can invent any number of methods
        if route == "none":
            method = "none"
        self._requests.labels(method, route, str(status)).observe(elapsed_s)

    def submitted(self, kind: Kind, seconds: float) -> None:
        self._submits.labels(kind.value).observe(seconds)

    def repeated(self, kind: Kind) -> None:
        self._repeated.labels(kind.value).inc()

    def redis_answered(self, seconds: float) -> None:
        self._pings.observe(seconds)


class Scrapes:
    """The latest scrape. One is made at a time; who asks meanwhile waits for it."""

    def __init__(self) -> None:
        self._making = asyncio.Lock()
        self._text = b""
        self._made_at = float("-inf")

    async def text(self, make: Callable[[], Awaitable[bytes]]) -> bytes:
        """The latest scrape, if it is fresh enough, else what `make` gives."""
        async with self._making:
            if time.monotonic() - self._made_at >= KEPT_S:
                self._text = await make()
                self._made_at = time.monotonic()
            return self._text

    def forget(self) -> None:
        self._made_at = float("-inf")


def scrape(
    metrics: Metrics,
    redis: RedisInfo | None,
    workers: Sequence[WorkerInfo],
    texts: Mapping[str, bytes],
    siblings: Mapping[str, Sequence[Metric]] = MappingProxyType({}),
    webhooks: Sequence[Standing] = (),
) -> bytes:
    """The Prometheus text of this process, of Redis (None: away), of all workers and webhooks; `texts` are what workers
    sent.

    Where several API processes share a port, `siblings` has the families of each, this one's too, by its number.
    May run in any thread. It takes tens of milliseconds: what the workers sent is parsed.
    """
    shown = [worker for worker in workers if worker.alive or worker.heartbeat_age_s < FORGOTTEN_AFTER_S]
    own = _merged("process", siblings) if siblings else metrics.registry.collect()
    families = [*own, *_redis(redis), *_workers(shown), *_webhooks(webhooks), *_merged("worker", _parsed(texts))]
    return generate_latest(_Collected(families))


class _Collected(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        """The families without the times of creation, which would be as many series more, and which nobody asks for."""
        for family in self._families:
            family.samples = [sample for sample in family.samples if not sample.name.endswith("_created")]
            if family.samples or not family.name.endswith("_created"):
                yield family


def _redis(info: RedisInfo | None) -> Iterable[Metric]:
    yield GaugeMetricFamily("headrace_redis_up", "Whether Redis answers.", info is not None)
    if info is None:
        return
    yield GaugeMetricFamily("headrace_redis_used_memory_bytes", "Memory of Redis.", info.used_memory_bytes)
    yield GaugeMetricFamily("headrace_redis_maxmemory_bytes", "Its limit; 0: none.", info.maxmemory_bytes)
    durable = info.appendonly is not False  # a server that hides its settings counts as one that has the file
    yield GaugeMetricFamily("headrace_redis_appendonly", "Whether Redis keeps an append-only file.", durable)


def _workers(workers: Sequence[WorkerInfo]) -> Iterable[Metric]:
    """What workers are and have. One that is away has nothing: its last report tells of graphs that others may serve by
    now, and whoever adds up would count them twice."""
    gauge = partial(_gauge, "worker", [worker.name for worker in workers])
    yield gauge("worker_up", "Whether its lease is held.", (w.alive for w in workers))
    yield gauge("worker_ready", "Whether it takes commands.", (w.alive and w.ready for w in workers))
    yield gauge("worker_heartbeat_age_seconds", "Since its last heartbeat.", (w.heartbeat_age_s for w in workers))
    there = [worker for worker in workers if worker.alive]
    held = partial(_gauge, "worker", [worker.name for worker in there])
    yield held("worker_graphs", "Graphs in its memory.", (w.graphs for w in there))
    yield held("worker_bytes", "Host memory of its graphs and flow states.", (w.bytes for w in there))
    yield held("worker_budget_bytes", "What it may use of it.", (w.budget_bytes for w in there))
    yield held("worker_device_bytes", "Device memory of the same.", (w.device_bytes for w in there))
    yield held("worker_device_budget_bytes", "What it may use of it.", (w.device_budget_bytes for w in there))
    devices = GaugeMetricFamily("headrace_worker_device_info", "Always 1.", labels=("worker", "device"))
    for worker in workers:
        if worker.device:
            devices.add_metric((worker.name, worker.device), 1)
    yield devices
    yield gauge("queue_commands", "Commands not yet done.", (w.waiting for w in workers))
    yield gauge("queue_age_seconds", "Age of the oldest of them.", (w.oldest_s for w in workers))


def _webhooks(webhooks: Sequence[Standing]) -> Iterable[Metric]:
    gauge = partial(_gauge, "webhook", [one.webhook for one in webhooks])
    yield gauge("webhook_pending", "Deliveries that wait for a try.", (one.pending for one in webhooks))
    yield gauge("webhook_failing", "Of these: tried in vain.", (one.failing for one in webhooks))
    yield gauge("webhook_dead", "Deliveries that were given up and are kept.", (one.dead for one in webhooks))
    yield gauge("webhook_late_seconds", "Since the next try was due.", (one.late_s for one in webhooks))


def _gauge(label: str, names: Sequence[str], name: str, text: str, values: Iterable[float]) -> Metric:
    """One value for each of `names`, under the label."""
    family = GaugeMetricFamily(f"headrace_{name}", text, labels=(label,))
    for whose, value in zip(names, values, strict=True):
        family.add_metric((whose,), value)
    return family


def _parsed(texts: Mapping[str, bytes]) -> dict[str, Sequence[Metric]]:
    """The workers' own metrics; what is no metrics text is left out."""
    families: dict[str, Sequence[Metric]] = {}
    for worker, text in sorted(texts.items()):
        try:
            families[worker] = list(text_string_to_metric_families(text.decode()))
        except ValueError as error:
            log.warning("unreadable_metrics", worker=worker, error=str(error))
    return families


def _merged(label: str, families: Mapping[str, Sequence[Metric]]) -> Iterable[Metric]:
    """Each metric family once, with the samples of all processes that have it; the label names the process of each
    sample."""
    merged: dict[str, Metric] = {}
    for name, own in sorted(families.items()):
        for family in own:
            whole = merged.setdefault(family.name, Metric(family.name, family.documentation, family.type))
            whole.samples += [_labelled(sample, label, name) for sample in family.samples]
    return merged.values()


def _labelled(sample: Sample, label: str, name: str) -> Sample:
    return sample._replace(labels={label: name} | sample.labels)
