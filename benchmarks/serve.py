"""A service of its own for a benchmark: `headrace serve` as a child process with an embedded Redis."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

START_LIMIT_S = 120.0
STOP_LIMIT_S = 15.0


@contextmanager
def service() -> Iterator[str]:
    """The base URL of a fresh `headrace serve` on a free port, its data in a directory that goes away with it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as data:
        environment = {key: value for key, value in os.environ.items() if key != "REDIS_URL"}
        environment |= {"HEADRACE_PORT": str(port), "HEADRACE_DATA_DIR": data, "HEADRACE_HOST": "127.0.0.1"}
        command = [sys.executable, "-c", "from service.cli.main import app; app()", "serve"]
        with open(Path(data) / "serve.log", "wb") as log:
            child = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
        url = f"http://127.0.0.1:{port}"
        try:
            wait_until_ready(url, child, Path(data) / "serve.log")
            yield url
        finally:
            child.terminate()
            try:
                child.wait(STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def wait_until_ready(url: str, child: subprocess.Popen[bytes], log: Path) -> None:
    """Returns once /readyz answers 200; raises RuntimeError with the log's end if it never does."""
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline and child.poll() is None:
        try:
            if httpx.get(f"{url}/readyz").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    raise RuntimeError(f"the service did not start:\n{log.read_text(errors='replace')[-4000:]}")
