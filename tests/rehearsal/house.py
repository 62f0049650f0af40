"""Containers as processes of this machine: each has an address of its own, and its files under one temporary folder.

What is put in the place of what an engine gives, and nothing else:
- an address of 127.0.0.0/8 for each container, for its name, for 127.0.0.1 and for 0.0.0.0;
- folders below a temporary one for volumes, mounted files and /opt of the image;
- programs of this machine for those of the images: this Python and checkout, and the Valkey of the `embedded` extra;
- a list of addresses for what asks the engine's DNS for all containers of a name (HAProxy, Prometheus).
Users, capabilities, read-only file systems, networks, memory limits and the images themselves are not tried.
"""

import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final
from urllib.request import HTTPSHandler, ProxyHandler, build_opener

from service.host.redis_server import find_server
from tests.rehearsal.plan import ROOT, Container, Get

PATIENCE_S: Final = 180.0
"""Includes the first compilation of the kernels on a machine that has not cached them."""
CHECK_S: Final = 15.0
POLL_S: Final = 0.5
STOP_S: Final = 40.0
STORE_PORT: Final = 6379
HOSTS: Final = "127.0.0.1", "0.0.0.0"
IMAGE_FILES: Final = {"/opt/healthcheck.py": ROOT / "docker" / "healthcheck.py"}
OURS: Final = frozenset({"python", "headrace", "valkey-server", "wget"})
SHIMS: Final = {
    "python": 'exec {python} "$@"',
    "headrace": 'exec {python} -m service.cli "$@"',
    "valkey-server": 'exec {valkey} "$@" --bind "$CONTAINER_ADDRESS"',
    "prometheus": 'exec {prometheus} "$@" --web.listen-address="$CONTAINER_ADDRESS:9090"',
    "wget": 'for url; do :; done; exec {python} -c "import sys, urllib.request as u; u.urlopen(sys.argv[1])" "$url"',
}
"""Programs of the images, as this machine has them."""


class Unhealthy(AssertionError):
    """A container ended, or its check did not come true in time."""


@dataclass
class Running:
    container: Container
    address: str
    folder: Path
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def tail(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(lines[-12:])


class House:
    """Each container that it can start; `missing` are those whose program this machine lacks."""

    def __init__(self, folder: Path, containers: Sequence[Container], others: Mapping[str, str]) -> None:
        self._folder = folder
        self._others = others
        self.missing = [found for found in containers if not _has(found.command[0])]
        subnet = free_subnet(STORE_PORT)
        self.running = {
            found.name: Running(found, f"{subnet}.{number + 2}", folder / found.name)
            for number, found in enumerate(found for found in containers if found not in self.missing)
        }
        programs = {
            "python": sys.executable,
            "valkey": find_server(Path("no data yet")).path,
            "prometheus": shutil.which("prometheus") or "false",
        }
        self._programs = folder / "bin"
        self._programs.mkdir(parents=True)
        for name, line in SHIMS.items():
            shim = self._programs / name
            shim.write_text(f"#!/bin/sh\n{line.format(**programs)}\n")
            shim.chmod(0o755)
        for one in self.running.values():
            self._furnish(one)

    def of(self, name: str) -> list[Running]:
        """All that answer to a name."""
        return [one for one in self.running.values() if name in one.container.names]

    def start_all(self) -> None:
        """Each once those before it are healthy; returns when all are."""
        waiting, starting = list(self.running.values()), list[Running]()
        ends_at = time.monotonic() + PATIENCE_S
        while waiting or starting:
            starting = [one for one in starting if not self.is_healthy(one)]
            held_up = {name for one in (*waiting, *starting) for name in one.container.names}
            for one in [one for one in waiting if held_up.isdisjoint(one.container.after)]:
                self.start(one)
                waiting.remove(one)
                starting.append(one)
            self._look()
            if time.monotonic() > ends_at:
                late = (starting or waiting)[0]
                raise Unhealthy(f"{late.container.name} did not become healthy:\n{late.tail()}")
            time.sleep(POLL_S)

    def start(self, one: Running) -> None:
        with one.log.open("ab") as log:
            one.process = subprocess.Popen(
                [self._fitted(word, one) for word in one.container.command],
                env=self.environment(one),
                cwd=one.folder / "tmp",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def kill(self, one: Running) -> None:
        """As the end of a container: with all that it has started."""
        assert one.process is not None
        with suppress(ProcessLookupError):
            os.killpg(one.process.pid, signal.SIGKILL)
        one.process.wait()

    def stop(self) -> None:
        started = [one.process for one in self.running.values() if one.process is not None]
        for process in started:
            process.terminate()
        for process in started:
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def run(self, one: Running, *command: str) -> "subprocess.CompletedProcess[str]":
        """A command within a container."""
        words = [self._fitted(word, one) for word in command]
        environment = self.environment(one)
        return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, check=False)

    def is_healthy(self, one: Running, alive: bool = False) -> bool:
        check = one.container.alive if alive else one.container.check
        if check is None:
            return True
        if isinstance(check, Get):
            return _answers(f"{check.scheme}://{one.address}:{check.port}{check.path}")
        words = [self._fitted(word, one) for word in check]
        try:
            done = subprocess.run(words, env=self.environment(one), capture_output=True, timeout=CHECK_S, check=False)
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0

    def wait_healthy(self, one: Running) -> None:
        ends_at = time.monotonic() + PATIENCE_S
        while not self.is_healthy(one):
            self._look()
            if time.monotonic() > ends_at:
                raise Unhealthy(f"{one.container.name} did not become healthy:\n{one.tail()}")
            time.sleep(POLL_S)

    def environment(self, one: Running) -> dict[str, str]:
        """That of the container alone, and what this machine needs to find its own programs."""
        own = {name: self._fitted(value, one) for name, value in one.container.environment.items()}
        path = f"{self._programs}{os.pathsep}{os.environ['PATH']}"
        kept = {name: os.environ[name] for name in ("PYTHONPATH", "LD_LIBRARY_PATH") if name in os.environ}
        image = {"PYTHONUNBUFFERED": "1", "PATH": path, "HOME": str(one.folder), "CONTAINER_ADDRESS": one.address}
        return {**kept, **image, "TMPDIR": str(one.folder / "tmp"), **own}

    def _look(self) -> None:
        """Nothing that was started has ended."""
        for one in self.running.values():
            if one.process is not None and one.process.poll() is not None:
                raise Unhealthy(f"{one.container.name} ended with {one.process.returncode}:\n{one.tail()}")

    def _furnish(self, one: Running) -> None:
        (one.folder / "tmp").mkdir(parents=True)
        for path, name in one.container.volumes.items():
            volume = self._folder / "volumes" / name
            volume.mkdir(parents=True, exist_ok=True)
            target = self._inside(path, one)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(volume)
        for path, source in {**one.container.files, **IMAGE_FILES}.items():
            self._copy(source, self._inside(path, one), one)

    def _copy(self, source: Path, target: Path, one: Running) -> None:
        if source.is_dir():
            for child in source.iterdir():
                self._copy(child, target / child.name, one)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        text = source.read_text()
        target.write_text(text if "-----BEGIN" in text else self._fitted(self._listed(text), one))

    def _listed(self, text: str) -> str:
        """What asks the engine's DNS for all containers of a name, as a list of them."""
        ours = {name: [one.address for one in self.of(name)] for name in self._names()}

        def servers(found: re.Match[str]) -> str:
            prefix, _, name, port, options = found.groups()
            options = options.replace("resolvers compose", "").replace("init-addr none", "").strip()
            lines = [f"server {prefix}{n} {address}:{port} {options}" for n, address in enumerate(ours[name])]
            return "\n    ".join(lines)

        def targets(found: re.Match[str]) -> str:
            addresses = ", ".join(f'"{address}:{found[2]}"' for address in ours[found[1]])
            return f"static_configs:\n      - targets: [{addresses}]"

        text = re.sub(r"server-template (\w+) (\S+) (\w+):(\d+) (.*)", servers, text)
        pattern = r"dns_sd_configs:\n +- \{ names: \[(\w+)\], type: A, port: (\d+), refresh_interval: \w+ \}"
        return re.sub(pattern, targets, text)

    def _fitted(self, text: str, one: Running) -> str:
        """Addresses and paths of the container as they are here."""
        for host in HOSTS:
            text = text.replace(host, one.address)
        text = re.sub(r"(\bbind )(:\d)", rf"\g<1>{one.address}\g<2>", text)
        ours = {name: self.of(name)[0].address for name in self._names()}
        for name, address in {**self._others, **ours}.items():
            text = re.sub(rf"(?<![\w.-]){re.escape(name)}(:\d+)(?![\w@])", rf"{address}\g<1>", text)
        paths = sorted({*one.container.volumes, *one.container.files, *IMAGE_FILES}, key=len, reverse=True)
        pattern = rf"(?<![\w.])({'|'.join(map(re.escape, paths))})(?![\w-])"
        return re.sub(pattern, lambda found: str(self._inside(found[1], one)), text)

    def _names(self) -> set[str]:
        return {name for one in self.running.values() for name in one.container.names}

    def _inside(self, path: str, one: Running) -> Path:
        return one.folder / path.lstrip("/")


def _has(program: str) -> bool:
    return program in OURS or shutil.which(program) is not None


def free_subnet(port: int) -> str:
    """Three numbers of an address below 127, of which nobody here uses this port."""
    for number in range(os.getpid() % 200, 256):
        subnet = f"127.77.{number}"
        with suppress(OSError), socket.create_server((f"{subnet}.2", port)):
            return subnet
    raise RuntimeError(f"port {port} is taken on 127.77.0.0/16")


def _answers(url: str) -> bool:
    handler = HTTPSHandler(context=ssl._create_unverified_context())
    try:
        with build_opener(ProxyHandler({}), handler).open(url, timeout=CHECK_S) as answer:
            return bool(answer.status < 400)
    except OSError:
        return False


@contextmanager
def opened(
    folder: Path, containers: Sequence[Container], others: Mapping[str, str] = MappingProxyType({})
) -> Iterator[House]:
    """All of them, healthy; stopped at the end. `others`: addresses of names that are no container here."""
    house = House(folder, containers, others)
    try:
        house.start_all()
        yield house
    finally:
        house.stop()
