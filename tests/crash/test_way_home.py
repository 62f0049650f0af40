"""Workers in processes of their own come and go; their graphs go with them and come back, and no PATCH is lost."""

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.faults.house import LEASE_S, House

pytestmark = pytest.mark.crash

PATIENCE_S = 90.0
EDGES = {"tail": [0, 0, 1, 2], "head": [1, 2, 3, 3], "capacity": [3, 2, 4, 2], "source": 0, "sink": 3}
NAMES = [f"g{i}" for i in range(8)]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    house.wait_ready(2)
    yield house
    house.close()


def owners(house: House) -> dict[str, str]:
    client: Any = house.redis
    return {name.decode(): owner.decode() for name, owner in client.hgetall(house.keys.owners).items()}


class Writer:
    """Adds 1 to an edge of each graph in turn, each under a key that is sent until it is answered."""

    def __init__(self, urls: list[str]) -> None:
        self._urls = urls
        self._stop = threading.Event()
        self.done = dict.fromkeys(NAMES, 0)
        self.refused: set[tuple[int, str]] = set()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        with httpx.Client(trust_env=False, timeout=30) as http:
            while not self._stop.is_set():
                name = NAMES[number % len(NAMES)]
                self._patch(http, name, f"key-{number}", self._urls[number % 2])
                self.done[name] += 1
                number += 1

    def _patch(self, http: httpx.Client, name: str, key: str, url: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        body, headers = {"edges": [0], "add": [1]}, {"Idempotency-Key": key}
        while time.monotonic() < deadline:
            answer = http.patch(f"{url}/v1/graphs/{name}/capacities", json=body, headers=headers)
            if answer.status_code == 200:
                assert answer.json()["version"] == self.done[name] + 2
                return
            self.refused.add((answer.status_code, answer.json()["code"]))
            time.sleep(0.02)
        raise AssertionError(f"{key} was never answered: {self.refused}")

    def close(self) -> None:
        self._stop.set()
        self._thread.join()


def test_graphs_follow_their_worker_home(house: House) -> None:
    """From one that was killed, then from one that was paused."""
    with httpx.Client(base_url=house.urls[0], trust_env=False, timeout=30) as http:
        for name in NAMES:
            assert http.put(f"/v1/graphs/{name}", json=EDGES).status_code == 201
            time.sleep(LEASE_S)  # its worker has reported it before the next one is placed
        before = owners(house)
        assert sorted(before.values()) == ["w0"] * 4 + ["w1"] * 4
        writer = Writer(house.urls)
        try:
            with house.down("w0"):
                wait_for(lambda: set(owners(house).values()) == {"w1"})
            come_home(house, before)
            house.send("w0", signal.SIGSTOP)
            wait_for(lambda: set(owners(house).values()) == {"w1"})
            house.send("w0", signal.SIGCONT)
            come_home(house, before)
        finally:
            writer.close()
        assert {code for _, code in writer.refused} <= {"worker_unavailable"}, writer.refused
        for name in NAMES:
            page = http.get(f"/v1/graphs/{name}/capacities?limit=1").json()
            assert (page["version"], page["capacity"][0]) == (1 + writer.done[name], 3 + writer.done[name])
            answer = http.post(f"/v1/graphs/{name}/max-flow").json()
            assert answer["certificate"]["valid"]
            assert answer["version"] == page["version"]
        assert not house.deaths


def come_home(house: House, before: dict[str, str]) -> None:
    wait_for(lambda: owners(house) == before)
    time.sleep(4 * LEASE_S)
    assert owners(house) == before, "and they stay"


def wait_for(holds: Any) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.02)
