"""The profile `observability` beside a live service: what Prometheus makes of our files, and where spans arrive."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any, Final

import httpx
import yaml

from tests.rehearsal.contract import eventually
from tests.rehearsal.house import House
from tests.rehearsal.plan import DEPLOY

OBSERVABILITY: Final = DEPLOY / "observability"
VARIABLES: Final = {"$job": ".+", "$__rate_interval": "1m"}
"""What Grafana puts in their places."""


EXPECTED: Final = frozenset({"HeadraceApiRestarts", "HeadraceWorkerRestarts"})
"""Alerts that a rehearsal may well set off."""


def expressions(file: Path = OBSERVABILITY / "dashboard.json") -> dict[str, str]:
    """What the dashboard asks, by panel."""
    found = {}
    for panel in json.loads(file.read_text())["panels"]:
        for target in panel.get("targets", []):
            expression = target["expr"]
            for variable, value in VARIABLES.items():
                expression = expression.replace(variable, value)
            found[f"{panel['title']} {target['refId']}"] = expression
    return found


def metrics(expression: str) -> set[str]:
    """The metrics of ours that an expression names."""
    plain = re.sub(r'"[^"]*"', '""', expression)
    return set(re.findall(r"\b(?:headrace|process)_\w+", plain))


class Prometheus:
    def __init__(self, url: str) -> None:
        self._http = httpx.Client(base_url=url, trust_env=False, timeout=30)

    def get(self, path: str, **parameters: str) -> Any:
        answer = self._http.get(f"/api/v1/{path}", params=parameters).json()
        assert answer["status"] == "success", (path, parameters, answer)
        return answer["data"]

    def names(self) -> set[str]:
        return set(self.get("label/__name__/values"))

    def close(self) -> None:
        self._http.close()


def check_prometheus(house: House, api_processes: int) -> int:
    """It scrapes every API process and evaluates every rule and every query of the dashboard; how many there are."""
    (one,) = house.of("prometheus")
    prometheus = Prometheus(f"http://{one.address}:9090")
    try:
        eventually(lambda: _up(prometheus) == api_processes, "each API process is scraped")
        groups = yaml.safe_load((OBSERVABILITY / "alerts.yml").read_text())["groups"]
        wanted = {rule["alert"] for group in groups for rule in group["rules"]}
        eventually(lambda: _evaluated(prometheus) == wanted, "every rule is evaluated")
        asked = expressions()
        ours = {name for expression in asked.values() for name in metrics(expression)}
        eventually(lambda: ours <= prometheus.names(), f"there are {sorted(ours)}")
        for expression in asked.values():
            prometheus.get("query", query=expression)
        eventually(lambda: _firing(prometheus) <= EXPECTED, "no alert fires but those")
        return len(wanted) + len(asked)
    finally:
        prometheus.close()


def _up(prometheus: Prometheus) -> int:
    return sum(target["health"] == "up" for target in prometheus.get("targets")["activeTargets"])


def _evaluated(prometheus: Prometheus) -> set[str]:
    groups = prometheus.get("rules")["groups"]
    return {rule["name"] for group in groups for rule in group["rules"] if rule["health"] == "ok"}


def _firing(prometheus: Prometheus) -> set[str]:
    alerts = prometheus.get("alerts")["alerts"]
    return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}


def check_with_promtool(config: Path) -> None:
    """The configuration that a container has, with the rules it names; and that these fire when they should."""
    alerts = Path(__file__).with_name("alerts_test.yml")
    text = alerts.read_text().replace("alerts.yml", str(OBSERVABILITY / "alerts.yml"))
    cases = config.with_name("cases.yml")
    cases.write_text(text)
    for words in (["check", "config", str(config)], ["test", "rules", str(cases)]):
        done = subprocess.run(["promtool", *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
