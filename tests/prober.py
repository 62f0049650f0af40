"""How long /livez takes while something else goes on, asked from a process of its own on fresh connections.

`python -m tests.prober HOST PORT` asks until its input ends, then prints its figures.
"""

import http.client
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

PAUSE_S = 0.02
PATIENCE_S = 60.0


@dataclass
class Latencies:
    """Filled when the block of `probing` ends."""

    count: int = 0
    failed: int = 0
    """Connections that were refused or broken, and answers other than 200."""
    worst_s: float = 0.0


@contextmanager
def probing(address: tuple[str, int], path: str = "/livez") -> Iterator[Latencies]:
    """Ask all the while; at least once before the block begins, and once in it."""
    command = [sys.executable, "-m", "tests.prober", address[0], str(address[1]), path]
    found = Latencies()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        yield found
        process.stdin.close()
        vars(found).update(json.loads(process.stdout.readline()))


def main(host: str, port: str, path: str) -> None:
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    found = Latencies()
    while found.count == 0 or not over.wait(PAUSE_S):
        began = time.perf_counter()
        connection = http.client.HTTPConnection(host, int(port), timeout=PATIENCE_S)
        try:
            connection.request("GET", path)
            found.failed += connection.getresponse().status != 200
        except (OSError, http.client.HTTPException):
            found.failed += 1
        finally:
            connection.close()
        found.worst_s = max(found.worst_s, time.perf_counter() - began)
        found.count += 1
        if found.count == 1:
            print("asked", flush=True)
    print(json.dumps(vars(found)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
