"""A whole service for a while: on a free port, its data in a folder of your choice."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

from headrace import Client, HeadraceError, Retry

READY_S = 120.0
"""The first start on a machine compiles the solvers."""
STOP_S = 60.0
PROBE_S = 0.25
"""Each question costs the service time in which it compiles."""
ASK_EVERY_S = 1.0
"""How often a service that is not ready is asked how far it is."""


class CannotStart(RuntimeError):
    """The service ended or was not ready in time; its log says why."""


Tell: TypeAlias = Callable[[int, int, float], None]
"""Gets how many kernels a worker has compiled, of how many, in how many seconds."""


@contextmanager
def serving(folder: Path, log: Path, on_compiling: Tell = lambda done, of, seconds: None) -> Iterator[str]:
    """`headrace serve` as a child process on a free port, its data in `folder`, its output in `log`.

    Gives the URL once the service is ready, and stops the service at the end. Raises `CannotStart`. `on_compiling` is
    called now and then while the first start compiles the solver.
    """
    port = _free_port()
    environment = os.environ | {
        "HEADRACE_HOST": "127.0.0.1",
        "HEADRACE_PORT": str(port),
        "HEADRACE_DATA_DIR": str(folder),
        "HEADRACE_REDIS_PREFIX": f"{folder.name}:",
    }
    command = [sys.executable, "-m", "service.cli", "serve"]
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)
    try:
        url = f"http://127.0.0.1:{port}"
        _await_ready(url, process, on_compiling)
        yield url
    finally:
        _stop(process)


def _await_ready(url: str, process: subprocess.Popen[bytes], on_compiling: Tell) -> None:
    ends_at = time.monotonic() + READY_S
    ask_at = time.monotonic() + ASK_EVERY_S
    with Client(url, retry=Retry(attempts=1)) as client:
        while not client.ready():
            if process.poll() is not None:
                raise CannotStart(f"the service ended with exit status {process.returncode}")
            if time.monotonic() > ends_at:
                raise CannotStart(f"the service was not ready within {READY_S:.0f} s")
            if time.monotonic() >= ask_at:
                ask_at = time.monotonic() + ASK_EVERY_S
                with suppress(HeadraceError):  # it is about to start
                    for compiling in filter(None, (worker.get("compiling") for worker in client.status().workers)):
                        on_compiling(compiling["done"], compiling["of"], float(compiling["seconds"]))
            time.sleep(PROBE_S)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
