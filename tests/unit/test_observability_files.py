"""The profile `observability` of the compose file: its files name one another, the services and the alerts rightly."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.settings import refuse_unknown
from tests.rehearsal.compose import containers, interpreted
from tests.rehearsal.telemetry import OBSERVABILITY, expressions, metrics

DEPLOY = OBSERVABILITY.parent
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
CONFIGS = "prometheus.yml", "prometheus-tls.yml"


def read(*path: str) -> Any:
    return yaml.safe_load(OBSERVABILITY.joinpath(*path).read_text())


def mounts(service: str) -> dict[str, str]:
    """Path in the container -> what is mounted there."""
    pairs = [volume.removesuffix(":ro").rpartition(":") for volume in SERVICES[service]["volumes"]]
    return {target: source for source, _, target in pairs}


@pytest.mark.parametrize("name", CONFIGS)
def test_prometheus_asks_every_api_process(name: str) -> None:
    (scrape,) = read(name)["scrape_configs"]
    (found,) = scrape["dns_sd_configs"]
    assert found["names"] == ["api"]
    assert f":{found['port']}" in SERVICES["front"]["ports"][0]
    assert mounts("prometheus")[scrape["authorization"]["credentials_file"]].startswith("${HEADRACE_METRICS_KEY_FILE:-")
    assert all((OBSERVABILITY / file).is_file() for file in read(name)["rule_files"])


def test_with_tls_it_asks_the_same_over_https() -> None:
    plain, secured = map(read, CONFIGS)
    (scrape,) = secured["scrape_configs"]
    assert scrape.pop("scheme") == "https"
    assert scrape.pop("tls_config") == {"insecure_skip_verify": True}
    assert plain == secured


def test_grafana_has_the_dashboard_and_where_it_asks() -> None:
    (source,) = read("grafana", "datasources", "headrace.yml")["datasources"]
    assert source["url"] == "http://prometheus:9090"
    assert source["isDefault"] is True
    (provider,) = read("grafana", "dashboards", "headrace.yml")["providers"]
    folder = provider["options"]["path"]
    assert mounts("grafana")[f"{folder}/dashboard.json"] == "./observability/dashboard.json"
    assert mounts("grafana")["/etc/grafana/provisioning"] == "./observability/grafana"
    dashboard = json.loads((OBSERVABILITY / "dashboard.json").read_text())
    (variable,) = [one for one in dashboard["templating"]["list"] if one["type"] == "datasource"]
    assert variable["query"] == source["type"]
    asked = expressions()
    assert len(asked) > 20
    assert all(metrics(expression) and "$" not in expression for expression in asked.values())


def test_nobody_can_log_in_to_grafana_with_a_password_that_all_know() -> None:
    environment = SERVICES["grafana"]["environment"]
    assert environment["GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"] == "true"
    assert environment["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"


def test_the_collector_is_where_the_example_says() -> None:
    endpoint = read("otel.yml")["receivers"]["otlp"]["protocols"]["http"]["endpoint"]
    port = endpoint.rpartition(":")[2]
    assert f"OTEL_EXPORTER_OTLP_ENDPOINT=http://otel:{port}" in (DEPLOY / "env.example").read_text()
    for name in ("api", "worker-cpu", "worker-gpu"):
        assert set(SERVICES[name]["networks"]) & set(SERVICES["otel"]["networks"])


@pytest.mark.parametrize("name", ["front", "prometheus", "grafana"])
def test_nothing_is_published_beyond_this_host_by_default(name: str) -> None:
    (published,) = SERVICES[name]["ports"]
    assert ":-127.0.0.1:" in published


def test_the_example_of_an_env_file_is_read_as_it_says(tmp_path: Path) -> None:
    """With every line of it in force: names that something reads, and values that reach where they are for."""
    lines = (DEPLOY / "env.example").read_text().splitlines()
    pairs = [line.removeprefix("# ").split("=", 1) for line in lines if "=" in line and ": " not in line]
    variables = dict(pairs)
    refuse_unknown(variables)
    assert {"HEADRACE_TLS_CERT", "HEADRACE_CUDA_VERSION", "HEADRACE_GPUS"} <= variables.keys()
    document = interpreted(DEPLOY / "compose.yaml", variables, variables)
    assert document["services"]["worker-gpu"]["build"]["args"]["CUDA_VERSION"] == variables["HEADRACE_CUDA_VERSION"]
    found = {one.name: one for one in containers(document, {"gpu", "observability"})}
    assert {"api-1", "api-2", "front-1", "worker-gpu-1", "otel-1"} <= found.keys()
    assert "worker-cpu-1" not in found
    assert f"--config.file=/etc/prometheus/{variables['HEADRACE_PROMETHEUS_CONFIG']}" in found["prometheus-1"].command
    for name in ("api-1", "worker-gpu-1"):
        assert found[name].environment["HEADRACE_TLS_CERT"] == variables["HEADRACE_TLS_CERT"]
        assert found[name].environment["HEADRACE_REDIS_URL"] == "redis://valkey:6379/0"
