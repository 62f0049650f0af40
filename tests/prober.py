"""How long a service takes to answer beside something else, asked from a process of its own on fresh connections.

`python -m tests.prober URL...` asks each of them, one thread for each, until its input ends; a line for each answer.
"""

import http.client
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO
from urllib.parse import urlsplit

PAUSE_S = 0.02
PATIENCE_S = 60.0


@dataclass
class Latencies:
    """Filled when the block of `probing` ends."""

    count: int = 0
    failed: int = 0
    """Connections that were refused or broken, and answers other than 200."""
    worst_s: float = 0.0

    def add(self, took_s: float, *, failed: bool) -> None:
        self.count += 1
        self.failed += failed
        self.worst_s = max(self.worst_s, took_s)


@dataclass(frozen=True, slots=True)
class Probe:
    """One question, by the clock of `time.monotonic`, which all processes of a machine share."""

    began_s: float
    took_s: float
    failed: bool


class Watch:
    """What a prober process has seen so far."""

    def __init__(self, urls: Sequence[str], lines: IO[str]) -> None:
        self._probes: dict[str, list[Probe]] = {url: [] for url in urls}
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, args=(lines,), daemon=True)
        self._reader.start()

    def between(self, began_s: float, ended_s: float) -> dict[str, Latencies]:
        """Of each URL, what was asked or open in that time.

        Waits until one has been asked later than that, so that a question that hangs is not overlooked. Raises
        TimeoutError if none is answered for twice `PATIENCE_S`.
        """
        with self._news:
            if not self._news.wait_for(lambda: self._is_past(ended_s), 2 * PATIENCE_S):
                raise TimeoutError("the prober is silent")
            found = {url: Latencies() for url in self._probes}
            for url, probes in self._probes.items():
                for probe in probes:
                    if probe.began_s <= ended_s and probe.began_s + probe.took_s >= began_s:
                        found[url].add(probe.took_s, failed=probe.failed)
            return found

    def end(self) -> None:
        """Wait for the prober's end."""
        self._reader.join(2 * PATIENCE_S)

    def _is_past(self, moment_s: float) -> bool:
        return all(probes and probes[-1].began_s >= moment_s for probes in self._probes.values())

    def _read(self, lines: IO[str]) -> None:
        for line in lines:
            url, began_s, took_s, failed = line.split()
            with self._news:
                self._probes[url].append(Probe(float(began_s), float(took_s), failed == "1"))
                self._news.notify_all()


@contextmanager
def watching(*urls: str) -> Iterator[Watch]:
    """Ask each of them all the while; at least once before the block begins."""
    command = [sys.executable, "-m", "tests.prober", *urls]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        watch = Watch(urls, process.stdout)
        try:
            watch.between(0.0, 0.0)
            yield watch
        finally:
            process.stdin.close()
            watch.end()


@contextmanager
def probing(address: tuple[str, int], path: str = "/livez") -> Iterator[Latencies]:
    """Ask all the while; at least once before the block begins, and once in it."""
    found = Latencies()
    url = f"http://{address[0]}:{address[1]}{path}"
    with watching(url) as watch:
        began_s = time.monotonic()
        yield found
        vars(found).update(vars(watch.between(began_s, time.monotonic())[url]))


def main(urls: Sequence[str]) -> None:
    over = threading.Event()
    askers = [threading.Thread(target=_ask, args=(url, over)) for url in urls]
    for asker in askers:
        asker.start()
    sys.stdin.read()
    over.set()
    for asker in askers:
        asker.join()


def _ask(url: str, over: threading.Event) -> None:
    parts = urlsplit(url)
    while not over.wait(PAUSE_S):
        began_s, failed = time.monotonic(), False
        connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=PATIENCE_S)
        try:
            connection.request("GET", parts.path)
            failed = connection.getresponse().status != 200
        except (OSError, http.client.HTTPException):
            failed = True
        finally:
            connection.close()
        took_s = time.monotonic() - began_s
        os.write(sys.stdout.fileno(), f"{url} {began_s} {took_s} {int(failed)}\n".encode())  # whole, from any thread


if __name__ == "__main__":
    main(sys.argv[1:])
