"""Moves of graphs and drains of workers that go on beside everything else."""

import random
import threading
from contextlib import suppress
from typing import Any, Final

import httpx
import redis

from tests.faults.house import WORKERS, House

REQUEST_S: Final = 10.0
DRAINS: Final = 0.1
"""How often a worker is drained in place of a move."""

LONGEST_S: Final = 0.05
DRAINED_S: Final = 0.5


class Mover:
    """Asks for moves until `stop`. Whatever becomes of them, nothing else may notice."""

    def __init__(self, house: House, graphs: list[str], seed: int) -> None:
        self._house = house
        self._graphs = graphs
        self._rng = random.Random(seed)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mover", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """No worker is drained after it."""
        self._stop.set()
        self._thread.join()
        client: Any = self._house.redis
        with suppress(redis.ConnectionError):  # it may be reading its file; the next history takes it back again
            client.delete(self._house.keys.draining)

    def _run(self) -> None:
        with httpx.Client(verify=False, trust_env=False, timeout=REQUEST_S) as http:
            while not self._stop.wait(self._rng.uniform(0, LONGEST_S)):
                url, worker = self._rng.choice(self._house.urls), self._rng.choice(WORKERS)
                with suppress(httpx.HTTPError):
                    if self._rng.random() < DRAINS:
                        self._drain(http, f"{url}/v1/workers/{worker}/drain")
                    else:
                        http.post(f"{url}/v1/graphs/{self._rng.choice(self._graphs)}:move", json={"to": worker})

    def _drain(self, http: httpx.Client, url: str) -> None:
        http.put(url)
        self._stop.wait(self._rng.uniform(0, DRAINED_S))
        while http.delete(url).status_code != 200 and not self._stop.wait(LONGEST_S):
            pass
