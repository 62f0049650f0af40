"""From a worker's counters to one scrape of the whole service."""

from types import SimpleNamespace

from prometheus_client.parser import text_string_to_metric_families

from gpu_engine.engine import Mode
from service.api.metrics import Metrics, scrape
from service.protocol import Kind, Status
from service.queue.models import FORGOTTEN_AFTER_S, RedisInfo, WorkerInfo
from service.store.hooks.record import Standing
from service.worker.metrics import Residency, WorkerMetrics

REDIS = RedisInfo(version="7.2.4", appendonly=None, fsync=None, used_memory_bytes=5, maxmemory_bytes=10)
IDLE = Residency(flow_states=0, lag_updates=0, lag_s=0.0)
Figures = dict[tuple[str, frozenset[tuple[str, str]]], float]


def worker(name: str, **changes: float) -> WorkerInfo:
    plain = {"heartbeat_age_s": 0.5, "waiting": 3, "oldest_s": 1.5, "graphs": 2, "bytes": 100, "beat_at": 0}
    figures = plain | changes
    return WorkerInfo.model_validate({"name": name, "pid": 1, "ready": True, "engine": "cpu", "alive": True} | figures)


def read(text: bytes) -> Figures:
    families = text_string_to_metric_families(text.decode())
    return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


def figure(figures: Figures, name: str, **labels: str) -> float | None:
    return figures.get((name, frozenset(labels.items())))


def sent(solves: int, failures: int = 0) -> bytes:
    metrics = WorkerMetrics()
    for _ in range(solves):
        metrics.solved(Mode.WARM, "cpu", 2.0, 1.0, {"pushes": 10, "relabels": 0})
    metrics.ended(Kind.PATCH, Status.FAILED, queue_s=-0.001, run_s=0.5)  # clocks of two machines
    text = metrics.news({"certificate_failures": failures, "commands_patch": 1}, IDLE)
    assert text is not None
    return text.encode()


def test_one_scrape_has_every_worker_under_its_label() -> None:
    figures = read(scrape(Metrics(), REDIS, [worker("a"), worker("b")], {"a": sent(2), "b": sent(3, failures=1)}))
    warm = {"mode": "warm", "engine": "cpu"}
    assert figure(figures, "headrace_solve_seconds_count", worker="a", **warm) == 2
    assert figure(figures, "headrace_solve_seconds_count", worker="b", **warm) == 3
    assert figure(figures, "headrace_solve_seconds_bucket", worker="b", le="0.001", **warm) == 0
    assert figure(figures, "headrace_solve_seconds_bucket", worker="b", le="0.0025", **warm) == 3
    assert figure(figures, "headrace_solver_operations_total", worker="b", operation="pushes", engine="cpu") == 30
    assert figure(figures, "headrace_certificate_failures_total", worker="a") == 0
    assert figure(figures, "headrace_certificate_failures_total", worker="b") == 1
    assert figure(figures, "headrace_command_queue_seconds_sum", worker="a", kind="patch") == 0
    assert figure(figures, "headrace_queue_commands", worker="a") == 3
    assert figure(figures, "headrace_queue_age_seconds", worker="a") == 1.5
    assert figure(figures, "headrace_redis_maxmemory_bytes") == 10
    assert figure(figures, "headrace_redis_appendonly") == 1


def test_each_family_is_announced_once() -> None:
    text = scrape(Metrics(), REDIS, [worker("a"), worker("b")], {"a": sent(1), "b": sent(1)}).decode()
    announced = [line for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(announced) == len(set(announced)) > 30
    assert "_created" not in text


def test_what_is_no_metrics_text_is_left_out() -> None:
    figures = read(scrape(Metrics(), REDIS, [worker("a")], {"a": b"\xff{", "b": b'x{y="1', "c": sent(1)}))
    assert figure(figures, "headrace_flow_states", worker="c") == 0
    assert figure(figures, "headrace_worker_up", worker="a") == 1


def test_without_redis_the_process_still_tells_of_itself() -> None:
    metrics = Metrics()
    metrics.redis_answered(0.002)
    figures = read(scrape(metrics, None, [], {}))
    assert figure(figures, "headrace_redis_up") == 0
    assert figure(figures, "headrace_redis_ping_seconds_count") == 1
    assert figure(figures, "headrace_redis_used_memory_bytes") is None


def test_a_worker_silent_for_a_day_is_forgotten() -> None:
    workers = [worker("old", alive=False, heartbeat_age_s=FORGOTTEN_AFTER_S + 1), worker("new", heartbeat_age_s=60)]
    figures = read(scrape(Metrics(), REDIS, workers, {}))
    assert figure(figures, "headrace_worker_up", worker="new") == 1
    assert figure(figures, "headrace_worker_up", worker="old") is None


def test_a_worker_whose_clock_is_a_day_behind_is_not() -> None:
    """It has its lease, and HeadraceNoWorkerReady fired."""
    figures = read(scrape(Metrics(), REDIS, [worker("slow", heartbeat_age_s=FORGOTTEN_AFTER_S + 1)], {}))
    assert figure(figures, "headrace_worker_ready", worker="slow") == 1


def test_graphs_of_a_worker_that_is_away_are_not_counted() -> None:
    """Another one has taken them over: the dashboard adds them up, and showed them twice for a day."""
    figures = read(scrape(Metrics(), REDIS, [worker("dead", alive=False), worker("heir", graphs=4)], {}))
    assert figure(figures, "headrace_worker_up", worker="dead") == 0
    assert figure(figures, "headrace_worker_heartbeat_age_seconds", worker="dead") == 0.5
    for name in ("graphs", "bytes", "budget_bytes", "device_bytes", "device_budget_bytes"):
        assert figure(figures, f"headrace_worker_{name}", worker="dead") is None
    assert figure(figures, "headrace_worker_graphs", worker="heir") == 4


def test_methods_that_callers_invent_share_one_label() -> None:
    """A route whose path fits is known, and answers 405."""
    metrics = Metrics()
    for method in ("GET", "PATCH", "PROPFIND", "FOO1", "FOO2", "get"):
        metrics.observe({"method": method, "route": SimpleNamespace(path="/v1/graphs")}, 405, 0.1)
        metrics.observe({"method": method}, 404, 0.1)
    figures = read(scrape(metrics, None, [], {}))
    of_routes = {
        (labels["method"], labels["route"]): count
        for (name, items), count in figures.items()
        if name == "headrace_http_request_seconds_count" and (labels := dict(items))
    }
    listed = "/v1/graphs"
    assert of_routes == {("GET", listed): 1, ("PATCH", listed): 1, ("other", listed): 4, ("none", "none"): 6}


def test_one_scrape_has_every_webhook_under_its_label() -> None:
    standings = [Standing("pager", 7, 5, 2, 0.0), Standing("ledger", 1, 0, 0, 12.5)]
    figures = read(scrape(Metrics(), REDIS, [], {}, webhooks=standings))
    assert figure(figures, "headrace_webhook_pending", webhook="pager") == 7
    assert figure(figures, "headrace_webhook_failing", webhook="pager") == 5
    assert figure(figures, "headrace_webhook_dead", webhook="pager") == 2
    assert figure(figures, "headrace_webhook_late_seconds", webhook="ledger") == 12.5
