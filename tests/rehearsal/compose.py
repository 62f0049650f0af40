"""Containers of a compose file: as `docker compose config` prints it, or read here where that is not installed."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any, Final

import yaml

from tests.rehearsal.plan import DEPLOY, ROOT, Container

FILE: Final = DEPLOY / "compose.yaml"
VARIABLE: Final = re.compile(r"\$(?:\$|\{(\w+)(?:(:?)-([^}]*))?\})")
ENTRY_POINTS: Final = {"prom/prometheus": ("prometheus",), "otel/opentelemetry-collector": ("otelcol",)}
"""Programs that images of others start with the command as arguments."""
IMAGE_COMMAND: Final = re.compile(r"^CMD (\[.*\])$", re.MULTILINE)


def engine() -> list[str] | None:
    """`docker compose`, if it is there; it needs no daemon for this."""
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], capture_output=True).returncode:
        return None
    return [docker, "compose"]


def read(variables: Mapping[str, str], env_file: Path | None = None) -> dict[str, Any]:
    """The file with all profiles, `variables` of the shell, and those of a file `.env`."""
    command = engine()
    if command is None:
        return interpreted(FILE, {**_lines(env_file), **variables}, _lines(env_file))
    command += ["--file", str(FILE), "--profile", "*", "--env-file", str(env_file or os.devnull)]
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ} | dict(variables)
    done = subprocess.run(
        [*command, "config", "--format", "json"], env=environment, capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def interpreted(file: Path, variables: Mapping[str, str], from_env_file: Mapping[str, str]) -> dict[str, Any]:
    """The file as compose reads it: variables put in, and those without a value passed on or left out."""
    document: dict[str, Any] = _filled(yaml.safe_load(file.read_text()), variables)
    for service in document["services"].values():
        own = dict(from_env_file) if "env_file" in service else {}
        for name, value in service.get("environment", {}).items():
            if value is not None:
                own[name] = str(value)
            elif name in variables:
                own[name] = variables[name]
        service["environment"] = own
    return document


def _filled(node: Any, variables: Mapping[str, str]) -> Any:
    if isinstance(node, dict):
        return {key: _filled(value, variables) for key, value in node.items()}
    if isinstance(node, list):
        return [_filled(value, variables) for value in node]
    return VARIABLE.sub(lambda found: _value(found, variables), node) if isinstance(node, str) else node


def _value(found: re.Match[str], variables: Mapping[str, str]) -> str:
    name, colon, default = found.groups()
    if name is None:
        return "$"
    value = variables.get(name)
    return (default or "") if value is None or (colon and not value) else value


def _lines(env_file: Path | None) -> dict[str, str]:
    if env_file is None:
        return {}
    lines = (line.strip() for line in env_file.read_text().splitlines())
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {name.strip(): value.strip() for name, _, value in pairs}


def containers(document: Mapping[str, Any], profiles: Set[str]) -> Iterator[Container]:
    """Those of these profiles, each as often as it is to run."""
    for name, service in document["services"].items():
        wanted = service.get("profiles", [])
        if wanted and profiles.isdisjoint(wanted):
            continue
        replicas = int(service.get("deploy", {}).get("replicas", 1))
        volumes, files = _mounts(service, document["volumes"])
        for number in range(replicas):
            yield Container(
                name=f"{name}-{number + 1}",
                names=(name,),
                image=service["image"],
                command=_command(service),
                environment={
                    key: str(value) for key, value in service.get("environment", {}).items() if value is not None
                },
                check=_check(service),
                after=tuple(
                    other
                    for other, how in service.get("depends_on", {}).items()
                    if how["condition"] == "service_healthy"
                ),
                volumes=volumes,
                files=files,
            )


def _check(service: Mapping[str, Any]) -> tuple[str, ...] | None:
    if "healthcheck" not in service:
        return None
    kind, *words = service["healthcheck"]["test"]
    return ("sh", "-c", *words) if kind == "CMD-SHELL" else tuple(words)


def _mounts(service: Mapping[str, Any], volumes: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, Path]]:
    """What is mounted where: folders that last, and files of this machine."""
    kept: dict[str, str] = {}
    files: dict[str, Path] = {}
    for mount in service.get("volumes", []):
        if isinstance(mount, str):
            source, target = mount.split(":")[:2]
        else:
            source, target = mount["source"], mount["target"]
        if source in volumes:
            kept[target] = source
        else:
            files[target] = FILE.parent / source
    return kept, files


def _command(service: Mapping[str, Any]) -> tuple[str, ...]:
    words = service.get("command")
    if words is None and "build" not in service:
        return (service["image"],)  # what its image says is not known here
    return (*ENTRY_POINTS.get(service["image"].partition(":")[0], ()), *(words or _command_of_image()))


def _command_of_image() -> list[str]:
    """The last one of the Dockerfile is that of the API, in every target but the store's, which compose names."""
    found = IMAGE_COMMAND.findall((ROOT / "docker" / "Dockerfile").read_text())
    words: list[str] = json.loads(next(words for words in found if "service.api" in words))
    return words
