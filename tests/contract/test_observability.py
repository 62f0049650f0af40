"""What a real service tells of itself: logs, metrics, traces. The dashboard and the alerts ask for what is there."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.collector import Collector, attributes, collecting
from tests.rehearsal.telemetry import OBSERVABILITY, expressions, metrics
from tests.serving import Service, eventually, serving

CITY = {"tail": [0, 0, 1, 2], "head": [1, 2, 3, 3], "capacity": [3, 2.5, 4, 2], "source": 0, "sink": 3}


@dataclass
class Observed:
    service: Service
    log: Path
    collector: Collector

    @property
    def http(self) -> httpx.Client:
        return self.service.http

    def lines(self, **wanted: Any) -> list[dict[str, Any]]:
        """Log lines with these members."""
        written = self.log.read_text()
        lines = [json.loads(line) for line in written[: written.rfind("\n") + 1].splitlines()]
        return [line for line in lines if wanted.items() <= line.items()]

    def line(self, **wanted: Any) -> dict[str, Any]:
        """The one line with these members, as soon as it is written."""
        eventually(lambda: bool(self.lines(**wanted)))
        (line,) = self.lines(**wanted)
        return line


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    folder = tmp_path_factory.mktemp("observed")
    with collecting() as collector:
        environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "100"}
        with serving(folder / "data", folder / "log", environment) as service:
            assert service.http.put("/v1/graphs/city", json=CITY).status_code == 201
            hook = {"url": "https://example.com/", "graphs": ["quiet"]}
            assert service.http.put("/v1/webhooks/pager", json=hook).status_code == 201
            yield Observed(service, folder / "log", collector)


def test_a_request_is_one_line_and_its_command_another(observed: Observed) -> None:
    answer = observed.http.post("/v1/graphs/city/max-flow", headers={"X-Request-Id": "ask-1"})
    asked = observed.line(event="request", request_id="ask-1")
    assert (asked["process"], asked["level"]) == ("api", "info")
    assert (asked["method"], asked["path"], asked["status"]) == ("POST", "/v1/graphs/city/max-flow", 200)
    assert asked["graph"] == "city"
    assert asked["ms"] >= answer.json()["timings_ms"]["solve"]
    run = observed.line(event="command", request_id="ask-1")
    assert (run["process"], run["kind"], run["status"], run["graph"]) == ("cpu-0", "max-flow", "succeeded", "city")
    assert run["job_id"] == asked["job_id"]
    assert {"ms", "queue_ms", "timestamp"} <= run.keys()


def test_a_refusal_is_logged_with_its_code(observed: Observed) -> None:
    observed.http.get("/v1/graphs/none", headers={"X-Request-Id": "ask-2"})
    assert observed.line(event="request", request_id="ask-2")["code"] == "unknown_graph"
    bad = {"edges": [99], "set": [1]}
    observed.http.patch("/v1/graphs/city/capacities", json=bad, headers={"X-Request-Id": "ask-3"})
    assert observed.line(event="request", request_id="ask-3")["code"] == "unknown_edge"
    assert observed.line(event="command", request_id="ask-3")["code"] == "unknown_edge"


def test_probes_that_succeed_are_not_logged(observed: Observed) -> None:
    for path in ("/livez", "/readyz", "/metrics"):
        assert observed.http.get(path, headers={"X-Request-Id": f"probe{path}"}).status_code == 200
    observed.http.get("/status", headers={"X-Request-Id": "after"})
    observed.line(event="request", request_id="after")
    assert [line for line in observed.lines() if str(line.get("request_id")).startswith("probe")] == []


def test_a_trace_runs_from_the_caller_through_api_and_worker(observed: Observed) -> None:
    caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    headers = {"X-Request-Id": "ask-4", "traceparent": caller}
    observed.http.patch("/v1/graphs/city/capacities", json={"edges": [0], "set": [2]}, headers=headers)
    eventually(lambda: len(observed.collector.find("ask-4")) == 2)
    by_kind = {span.kind: span for span in observed.collector.find("ask-4")}
    api, worker = by_kind[2], by_kind[5]  # SERVER, CONSUMER
    assert (api.name, worker.name) == ("PATCH /v1/graphs/{name}/capacities", "patch")
    assert api.trace_id.hex() == worker.trace_id.hex() == caller[3:35]
    assert (api.parent_span_id.hex(), worker.parent_span_id) == (caller[36:52], api.span_id)
    assert attributes(worker)["headrace.job_id"] == attributes(api)["headrace.job_id"]
    assert attributes(worker)["headrace.status"] == "succeeded"
    assert api.start_time_unix_nano <= worker.start_time_unix_nano <= api.end_time_unix_nano


def samples(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def asked_for() -> dict[str, str]:
    """Metric name -> where it is asked for."""
    rules = yaml.safe_load((OBSERVABILITY / "alerts.yml").read_text())["groups"][0]["rules"]
    asked = expressions() | {rule["alert"]: rule["expr"] for rule in rules}
    return {name: where for where, text in asked.items() for name in metrics(text)}


def test_dashboard_and_alerts_ask_for_what_there_is(observed: Observed) -> None:
    observed.http.post("/v1/graphs/city/max-flow")
    observed.http.patch("/v1/graphs/city/capacities", json={"edges": [0], "add": [1]})
    wanted = asked_for()
    assert len(wanted) > 25

    def missing() -> dict[str, str]:
        there = samples(observed.http.get("/metrics").text).keys()
        return {name: where for name, where in wanted.items() if name not in there}

    eventually(lambda: not missing())


def test_metrics_count_what_the_worker_did(observed: Observed) -> None:
    def value(name: str, **labels: str) -> float:
        there = samples(observed.http.get("/metrics").text)[name]
        return sum(figure for found, figure in there if labels.items() <= found.items())

    observed.http.post("/v1/graphs/city/max-flow")
    warm = value("headrace_solve_seconds_count", mode="warm", worker="cpu-0", engine="cpu")
    observed.http.patch("/v1/graphs/city/capacities", json={"edges": [0], "set": [1.5]})
    # What a worker tells is as of its last heartbeat: earlier tests may be counted only now.
    eventually(lambda: value("headrace_solve_seconds_count", mode="warm", worker="cpu-0", engine="cpu") > warm)
    eventually(lambda: value("headrace_log_lag_updates", worker="cpu-0") > 0)
    assert value("headrace_flow_states", worker="cpu-0") == 1
    observed.http.post("/v1/graphs/city/snapshots")
    eventually(lambda: value("headrace_snapshots_written_total") == 1)
    assert value("headrace_log_lag_updates", worker="cpu-0") == 0
    assert value("headrace_certificate_failures_total") == 0
    eventually(lambda: value("headrace_command_seconds_count", kind="patch", status="succeeded") > 0)
    assert value("headrace_http_request_seconds_count", route="/v1/graphs/{name}/capacities", status="200") >= 1
    assert value("headrace_worker_process_start_time_seconds") > 1.6e9
    assert value("headrace_redis_up") == value("headrace_redis_appendonly") == value("headrace_worker_ready") == 1


def test_every_alert_is_in_the_operations_guide() -> None:
    rules = yaml.safe_load((OBSERVABILITY / "alerts.yml").read_text())["groups"][0]["rules"]
    guide = (OBSERVABILITY.parents[1] / "docs" / "operations.md").read_text()
    assert [rule["alert"] for rule in rules if f"### {rule['alert']}\n" not in guide] == []
    assert {rule["labels"]["severity"] for rule in rules} == {"page", "ticket"}


def test_status_is_a_page_for_people(observed: Observed) -> None:
    page = observed.http.get("/status", headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "<td>cpu-0</td>" in page.text
    assert "<td>city</td>" in page.text
    assert "Ready: 1 worker at work." in page.text
    assert "<td>max body</td>" in page.text
    assert observed.http.get("/status").json()["redis"]["ping_ms"] > 0
    front = observed.http.get("/", follow_redirects=False)
    assert (front.status_code, front.headers["location"]) == (307, "console")
