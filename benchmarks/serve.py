"""A service of its own for a benchmark."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import headrace
import httpx

START_LIMIT_S = 120.0
STOP_LIMIT_S = 15.0


@contextmanager
def service() -> Iterator[str]:
    """The base URL of a fresh `headrace serve` on a free port, its data in a directory that goes away with it.

    Settings of the service in the environment count, but for its Redis, which is its own.
    """
    settings = {name: value for name, value in os.environ.items() if name.startswith("HEADRACE_")}
    settings.pop("HEADRACE_REDIS_URL", None)
    with headrace.local(settings=settings) as client:
        yield client.url


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
