"""Containers of the Kubernetes manifests, as `kubectl kustomize` renders them."""

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from tests.rehearsal.plan import DEPLOY, Container, Get

FOLDER: Final = DEPLOY / "kubernetes"
REFERENCE: Final = re.compile(r"\$\((\w+)\)")


def render(folder: Path) -> list[dict[str, Any]]:
    """All objects of a kustomization. It needs `kubectl`, and neither a cluster nor a network."""
    done = subprocess.run(["kubectl", "kustomize", str(folder)], capture_output=True, text=True, check=True)
    return list(yaml.safe_load_all(done.stdout))


def secured(folder: Path, base: str) -> list[dict[str, Any]]:
    """The kustomization `base` with the component for TLS, by one of the operator's own in `folder`."""
    beside = "/".join([".."] * (len(folder.resolve().parts) - 1))
    lines = [f"resources: [{beside}{FOLDER / base}]", f"components: [{beside}{FOLDER / 'tls'}]"]
    (folder / "kustomization.yaml").write_text("\n".join(lines))
    return render(folder)


def containers(
    objects: Sequence[Mapping[str, Any]], secrets: Mapping[str, Mapping[str, str]], files: Mapping[str, Path]
) -> Iterator[Container]:
    """One for each pod; its init container, which copies from the image, is left out.

    `secrets`: their members by name. `files`: the folders of those that are mounted.
    """
    for kind in ("StatefulSet", "Deployment"):
        for found in _of(objects, kind):
            for number in range(found["spec"]["replicas"]):
                yield _container(objects, found, f"{found['metadata']['name']}-{number}", secrets, files)


def _container(
    objects: Sequence[Mapping[str, Any]],
    controller: Mapping[str, Any],
    pod: str,
    secrets: Mapping[str, Mapping[str, str]],
    files: Mapping[str, Path],
) -> Container:
    template = controller["spec"]["template"]
    (container,) = template["spec"]["containers"]
    environment = _environment(objects, container, pod, secrets)
    labels = template["metadata"]["labels"]
    claims = {claim["metadata"]["name"] for claim in controller["spec"].get("volumeClaimTemplates", [])}
    own = {volume["name"]: volume for volume in template["spec"].get("volumes", [])}
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    del mounts["/tmp"]  # each has one of its own anyway
    ready = container["readinessProbe"]
    return Container(
        name=pod,
        names=tuple(
            service["metadata"]["name"]
            for service in _of(objects, "Service")
            if service["spec"]["selector"].items() <= labels.items()
        ),
        image=container["image"],
        command=tuple(expanded(word, environment) for word in [*container["command"], *container.get("args", [])]),
        environment=environment,
        check=_probe(ready, container),
        alive=_probe(container["livenessProbe"], container) if "livenessProbe" in container else None,
        volumes={path: f"{pod}-{name}" for path, name in mounts.items() if name in claims or "emptyDir" in own[name]},
        files={
            path: files[own[name]["secret"]["secretName"]]
            for path, name in mounts.items()
            if name not in claims and "secret" in own[name]
        },
    )


def _of(objects: Sequence[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    return [found for found in objects if found["kind"] == kind]


def _environment(
    objects: Sequence[Mapping[str, Any]],
    container: Mapping[str, Any],
    pod: str,
    secrets: Mapping[str, Mapping[str, str]],
) -> dict[str, str]:
    found: dict[str, str] = {}
    for source in container.get("envFrom", []):
        name = source["configMapRef"]["name"]
        (data,) = [one["data"] for one in _of(objects, "ConfigMap") if one["metadata"]["name"] == name]
        found |= data
    for entry in container.get("env", []):
        match entry:
            case {"value": value}:
                found[entry["name"]] = expanded(value, found)
            case {"valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}:
                found[entry["name"]] = secrets[secret][key]
            case {"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}:
                found[entry["name"]] = pod
            case _:
                raise ValueError(f"nothing here reads {entry}")
    return found


def expanded(word: str, environment: Mapping[str, str]) -> str:
    """`$(NAME)` as its value, where that is known; as it stands where not, as a kubelet does."""
    return REFERENCE.sub(lambda found: environment.get(found[1], found[0]), word)


def _probe(probe: Mapping[str, Any], container: Mapping[str, Any]) -> tuple[str, ...] | Get:
    if "exec" in probe:
        return tuple(probe["exec"]["command"])  # of references, only those to plain values would be put in
    get = probe["httpGet"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    return Get(get.get("scheme", "HTTP").lower(), ports[get["port"]], get["path"])
