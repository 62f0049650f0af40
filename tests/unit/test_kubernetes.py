"""The Kubernetes manifests, as far as they can be checked without a cluster; `make rehearsal` runs what they say."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import yaml

from service.host import redis_acl
from service.settings import refuse_unknown
from tests.rehearsal.manifests import FOLDER, containers, render, secured

Objects: TypeAlias = list[dict[str, Any]]
PASSWORD = "0123456789abcdef"
needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl to render them with")


def written() -> Objects:
    """What stands in the files of `base`, as it stands there."""
    files = (FOLDER / "base").glob("*.yaml")
    found = [one for file in files for one in yaml.safe_load_all(file.read_text())]
    return [one for one in found if one["kind"] != "Kustomization"]


def pods(objects: Objects) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one["spec"]["template"] for one in objects if "template" in one.get("spec", {})}


PODS = pods(written())


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Objects]:
    own = tmp_path_factory.mktemp("kustomization")
    return {"base": render(FOLDER / "base"), "gpu": render(FOLDER / "gpu"), "tls": secured(own, "gpu")}


@pytest.mark.parametrize("name", PODS)
def test_a_pod_is_locked_down_and_bounded(name: str) -> None:
    spec = PODS[name]["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["enableServiceLinks"] is False, "it would set variables that no setting reads"
    assert spec["securityContext"]["runAsNonRoot"] is True
    for container in [*spec["containers"], *spec.get("initContainers", [])]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"]["memory"]
        assert re.search(r":\d", container["image"]), "an image without a version"
    assert all("sizeLimit" in volume.get("emptyDir", {"sizeLimit": ""}) for volume in spec["volumes"])


@pytest.mark.parametrize("name", PODS)
def test_a_probe_is_asked_as_it_stands(name: str) -> None:
    """A kubelet puts no fields into the command of a probe: `$(POD_NAME)` would be asked for by these letters."""
    (container,) = PODS[name]["spec"]["containers"]
    probes = [container[kind] for kind in container if kind.endswith("Probe")]
    assert container["readinessProbe"] in probes
    for probe in probes:
        assert "$(" not in " ".join(probe.get("exec", {}).get("command", []))


def test_no_pod_is_ended_for_what_its_store_does() -> None:
    """The store's own start may take minutes; whoever waits for it is not ready, but alive."""
    alive = {name: pod["spec"]["containers"][0].get("livenessProbe") for name, pod in PODS.items()}
    assert alive["valkey"] is None
    assert alive["headrace-api"]["httpGet"]["path"] == "/livez"
    assert " lives " in alive["headrace-worker"]["exec"]["command"][-1]


def test_prometheus_finds_pods_that_are_not_ready() -> None:
    """While the store or all workers are away no API pod is ready: the alerts that say so need what these pods tell."""
    services = {one["metadata"]["name"]: one["spec"] for one in written() if one["kind"] == "Service"}
    assert PODS["headrace-api"]["spec"]["containers"][0]["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert services["headrace-api-pods"]["clusterIP"] == "None"
    assert services["headrace-api-pods"]["publishNotReadyAddresses"] is True
    assert "publishNotReadyAddresses" not in services["headrace"], "callers are sent to pods that are ready"


def test_the_store_lets_nobody_in_but_the_service() -> None:
    (container,) = PODS["valkey"]["spec"]["containers"]
    words = container["args"]
    users = [words[n + 1 :] for n, word in enumerate(words) if word == "--user"]
    assert users[0][:2] == ["default", "off"]
    assert users[1] == redis_acl.acl("headrace:", "$(STORE_PASSWORD)")
    assert words[words.index("--maxmemory-policy") + 1] == "noeviction"
    assert words[words.index("--appendonly") + 1] == "yes"
    assert container["command"][:4] == ["python", "-m", "service.host.store", "/data"]


def test_a_worker_is_named_after_its_pod() -> None:
    (container,) = PODS["headrace-worker"]["spec"]["containers"]
    assert container["command"][-2:] == ["--name", "$(POD_NAME)"]
    assert any(entry.get("valueFrom") == {"fieldRef": {"fieldPath": "metadata.name"}} for entry in container["env"])


def test_keys_are_asked_for_from_the_beginning() -> None:
    """A Service is reached by every pod of the cluster."""
    lines = (FOLDER / "base" / "settings.env").read_text().splitlines()
    settings = dict(line.split("=", 1) for line in lines)
    refuse_unknown(settings)
    assert settings["HEADRACE_REQUIRE_KEYS"] == "true"
    requests = PODS["headrace-worker"]["spec"]["containers"][0]["resources"]["requests"]
    assert (int(settings["HEADRACE_MEMORY_BUDGET_BYTES"]), requests["memory"]) == (8 << 30, "10Gi")


@needs_kubectl
def test_no_secret_is_in_the_files(rendered: Mapping[str, Objects]) -> None:
    for objects in rendered.values():
        assert not [one for one in objects if one["kind"] == "Secret"]


@needs_kubectl
@pytest.mark.parametrize("name", ["base", "gpu", "tls"])
def test_what_selects_pods_finds_some(rendered: Mapping[str, Objects], name: str) -> None:
    """A policy or a budget whose labels nobody has does nothing, in silence."""
    labels = {pod: template["metadata"]["labels"] for pod, template in pods(rendered[name]).items()}
    wanted = {
        (one["kind"], one["metadata"]["name"]): one["spec"].get("podSelector", one["spec"].get("selector"))
        for one in rendered[name]
        if one["kind"] in ("NetworkPolicy", "PodDisruptionBudget", "Service")
    }
    for who, selector in wanted.items():
        assert _selected(selector, labels), who
    assert len(_selected(wanted["NetworkPolicy", "headrace-nothing"], labels)) == len(labels)


def _selected(selector: Mapping[str, Any], labels: Mapping[str, Mapping[str, str]]) -> list[str]:
    equal = selector.get("matchLabels", {} if "matchExpressions" in selector else selector)
    among = selector.get("matchExpressions", [])
    return [
        pod
        for pod, own in labels.items()
        if equal.items() <= own.items() and all(own.get(one["key"]) in one["values"] for one in among)
    ]


@needs_kubectl
def test_with_gpus_each_worker_has_one(rendered: Mapping[str, Objects]) -> None:
    (container,) = pods(rendered["gpu"])["headrace-worker"]["spec"]["containers"]
    assert container["image"].endswith("-gpu")
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert container["command"][-2:] == ["--gpu", "0"]
    assert {"name": "HEADRACE_ENGINE", "value": "auto"} in container["env"]
    found = {one.name: one for one in containers(rendered["gpu"], {"headrace-store": {"password": PASSWORD}}, {})}
    assert not [value for one in found.values() for value in (*one.environment.values(), *one.command) if "$(" in value]
    assert found["headrace-worker-0"].command[-3:] == ("headrace-worker-0", "--gpu", "0")


@needs_kubectl
def test_over_tls_every_probe_speaks_it(rendered: Mapping[str, Objects], tmp_path: Path) -> None:
    secrets = {"headrace-store": {"password": PASSWORD}}
    api = [found for found in containers(rendered["tls"], secrets, {"headrace-tls": tmp_path}) if "api" in found.name]
    for found in api:
        assert {check.scheme for check in (found.check, found.alive)} == {"https"}  # type: ignore[union-attr]  # both by HTTP
        assert found.environment["HEADRACE_TLS_CERT"].startswith("/etc/headrace/")
        assert found.files == {"/etc/headrace": tmp_path}
        assert found.environment["HEADRACE_REDIS_URL"] == f"redis://headrace:{PASSWORD}@valkey:6379/0"
