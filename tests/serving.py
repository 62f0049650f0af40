"""A real service for tests: `headrace serve` in its own processes, on a free port and a fresh directory."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import httpx

from service.settings import Settings

PATIENCE_S = 90.0
"""Includes the first compilation of the kernels on a machine that has not cached them."""


@dataclass
class Service:
    process: "subprocess.Popen[str]"
    url: str
    http: httpx.Client
    data_dir: Path
    log: Path | None = None
    """What its processes write; None: to stderr."""

    def children(self) -> dict[str, int]:
        """Process ids by role, of one process for each."""
        return {role: pid for pid, role in self.roles().items()}

    def roles(self) -> dict[int, str]:
        """Roles by process id."""
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        found = {}
        for pid in map(int, listed):
            command = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
            roles = {"service.worker": "worker", "service.api": "api"}
            found[pid] = next((roles[part] for part in command if part in roles), "redis")
        return found

    def wait_ready(self) -> None:
        eventually(lambda: self.http.get("/readyz").status_code == 200)


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            if holds():
                return
        except (httpx.TransportError, OSError):
            pass
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.05)


def serve_command(data_dir: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "service.cli", "serve", "--data-dir", str(data_dir), *options]


@contextmanager
def serving(
    data_dir: Path, log: Path | None = None, environment: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Service]:
    """The service on a free port; killed at the end if it still runs. Its log goes to the file `log`, or to stderr."""
    with nullcontext() if log is None else log.open("wb") as stderr:
        process = subprocess.Popen(
            serve_command(data_dir, "--port", "0"),
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env=os.environ | {"HEADRACE_API_PROCESSES": "1"} | environment,
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "ready at http://127.0.0.1:" in line, line
        url = json.loads((data_dir / "serve.lock").read_text())["url"]
        assert url in line
        with httpx.Client(base_url=url, verify=False, trust_env=False, timeout=PATIENCE_S) as http:
            yield Service(process, url, http, data_dir, log)
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(PATIENCE_S)
        assert process.stdout is not None
        process.stdout.close()


@contextmanager
def another_api(data_dir: Path, environment: Mapping[str, str] = MappingProxyType({})) -> Iterator[httpx.Client]:
    """One more API process of the service in `data_dir`, as another machine would run it."""
    redis_url = Settings(data_dir=data_dir, redis_url=None).redis_location
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        command = [sys.executable, "-m", "service.api", "--fd", str(listener.fileno())]
        settings = {"REDIS_URL": redis_url, "HEADRACE_DATA_DIR": str(data_dir / "none")}
        process = subprocess.Popen(command, pass_fds=[listener.fileno()], env=os.environ | settings | dict(environment))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        with httpx.Client(base_url=url, verify=False, trust_env=False, timeout=PATIENCE_S) as http:
            eventually(lambda: http.get("/readyz").status_code == 200)
            yield http
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
