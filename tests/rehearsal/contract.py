"""What every deployment has to keep: load, solve, PATCH, and all of it again after the end of each container."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import httpx

from service.host.torn_log import MULTI
from tests.rehearsal.house import POLL_S, House, Running
from tests.serving import PATIENCE_S

GRAPH: Final = {"tail": [0, 0, 1, 2], "head": [1, 2, 3, 3], "capacity": [3, 2.5, 4, 2], "source": 0, "sink": 3}
"""3 go by vertex 1, and by vertex 2 what its edge to 3 lets pass, up to 2.5."""
LAST_EDGE: Final = 3
TORN: Final = MULTI + b"*3\r\n$3\r\nSET\r\n$4\r\ntorn\r\n$1\r\n1\r\n"
"""Half a transaction, as the end of the power leaves it."""


@dataclass
class Caller:
    """Asks at the addresses in turns, as whoever is behind a balancer does; what is away is asked again."""

    urls: list[str]
    key: str | None = None

    def __post_init__(self) -> None:
        headers = {} if self.key is None else {"Authorization": f"Bearer {self.key}"}
        self._http = httpx.Client(headers=headers, verify=False, trust_env=False, timeout=PATIENCE_S)
        self._turns = self._forever()

    def _forever(self) -> Iterator[str]:
        while True:
            yield from self.urls

    def ask(self, method: str, path: str, body: Any = None, idempotency_key: str | None = None) -> httpx.Response:
        headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        ends_at = time.monotonic() + PATIENCE_S
        while True:
            try:
                answer = self._http.request(method, next(self._turns) + path, json=body, headers=headers)
                if answer.status_code != 503:
                    return answer
            except httpx.TransportError:
                if time.monotonic() > ends_at:
                    raise
            assert time.monotonic() < ends_at, f"{method} {path} was refused for {PATIENCE_S} s"
            time.sleep(POLL_S)

    def close(self) -> None:
        self._http.close()


@dataclass
class Contract:
    """One graph, and what is known of it."""

    caller: Caller
    version: int = 0
    capacity: float = 2.0

    def load(self) -> None:
        answer = self.caller.ask("PUT", "/v1/graphs/city", GRAPH)
        assert answer.status_code in (200, 201), answer.text
        self.version = answer.json()["version"]
        self.solve()

    def add_webhook(self) -> None:
        """One for a graph that nothing happens to."""
        hook = {"url": "https://example.com/", "graphs": ["quiet"]}
        answer = self.caller.ask("PUT", "/v1/webhooks/quiet", hook)
        assert answer.status_code in (200, 201), answer.text

    def solve(self) -> None:
        answer = self.caller.ask("POST", "/v1/graphs/city/max-flow")
        assert answer.status_code == 200, answer.text
        found = answer.json()
        assert (found["version"], found["value"]) == (self.version, 3 + min(2.5, self.capacity)), found

    def patch(self, capacity: float) -> None:
        body = {"edges": [LAST_EDGE], "set": [capacity]}
        key = f"rehearsal-{self.version}"
        answer = self.caller.ask("PATCH", "/v1/graphs/city/capacities", body, idempotency_key=key)
        assert answer.status_code == 200, answer.text
        assert answer.json()["version"] == self.version + 1
        self.version, self.capacity = self.version + 1, capacity
        self.solve()

    def keep_through_the_end_of(self, house: House, one: Running) -> None:
        """The container is killed with all in it, and started again as its engine does."""
        house.kill(one)
        torn = _tear(one)
        house.start(one)
        for other in house.running.values():
            house.wait_healthy(other)
        assert "unfinished_transaction_removed" in one.log.read_text() or not torn
        self.solve()
        self.patch(4.0 - self.capacity)


def _tear(one: Running) -> bool:
    """Leave half a transaction in the files of a store that is down; False for other containers."""
    files = sorted((one.folder / "data").glob("appendonlydir/*.incr.aof"))
    if not files:
        return False
    with files[-1].open("ab") as file:
        file.write(TORN)
    return True


def eventually(holds: Callable[[], bool], what: str) -> None:
    ends_at = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < ends_at, f"not in {PATIENCE_S} s: {what}"
        time.sleep(POLL_S)
