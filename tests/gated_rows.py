"""A real service in this process whose rows of what-if wait for the test: Redis, a worker, and uvicorn."""

import json
import socket
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import httpx
import uvicorn

from gpu_engine.control import Control
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.cpu.state import CpuFlowState
from gpu_engine.engine import Engine, FlowState, SolveReport
from gpu_engine.errors import Cancelled
from gpu_engine.footprint import Room, unlimited
from gpu_engine.networks.network import Network
from gpu_engine.trials import Trials
from service.api.app import create_app
from service.api.http.connections import Connections, ServerConfig
from service.api.http.protocol import BoundedProtocol
from service.settings import Settings
from service.store.api_keys import ApiKeys
from service.store.connection import connect
from service.store.keys import Keys
from service.worker.process import Worker
from tests.graphs import CITY
from tests.heartbeats import forked
from tests.serving import PATIENCE_S, eventually

LINES = {"Accept": "application/x-ndjson"}
SCENARIOS = [{"id": count, "batch": [{"edges": ["e"], "set": [count]}]} for count in range(5)]
VALUES = [2, 3, 4, 5, 6]


@dataclass
class Gate:
    """Rows pass it one by one, as the test lets them."""

    passes: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    is_open: bool = False

    def let(self, count: int) -> None:
        self.passes.release(count)

    def open(self) -> None:
        self.is_open = True

    def close(self) -> None:
        self.passes, self.is_open = threading.Semaphore(0), False

    def enter(self, control: Control) -> None:
        while not self.is_open and not self.passes.acquire(timeout=0.02):
            if control.cancelled:
                raise Cancelled("cancelled")


class Gated(CpuEngine):
    """Its forks solve as the gate lets them: each row of what-if is one such solve."""

    gate: Gate
    is_fork = False

    def _alike(self, network: Network, room: Room) -> Self:
        fork = super()._alike(network, room)
        fork.gate, fork.is_fork = self.gate, True
        return fork

    def _open_trials(self, pinned: CpuFlowState, count: int) -> Sequence[Trials]:
        return []

    def solve(self, state: FlowState, control: Control | None = None, *, cold: bool = False) -> SolveReport:
        if self.is_fork:
            self.gate.enter(control or Control())
        return super().solve(state, control, cold=cold)


@dataclass
class Running:
    http: httpx.Client
    gate: Gate
    api_keys: ApiKeys
    start_worker: Callable[[], Worker]
    worker: Worker

    def submitted(self, scenarios: Sequence[object] = SCENARIOS, **body: Any) -> str:
        """The path of the job of a question that is to be answered in lines."""
        headers = LINES | {"Prefer": "respond-async"}
        asked = self.http.post("/v1/graphs/city/what-if", json={"scenarios": scenarios, **body}, headers=headers)
        location: str = asked.headers["location"]
        return location

    def status(self, job: str) -> str:
        status: str = self.http.get(job).json()["status"]
        return status

    def at_its_rows(self, job: str, done: int) -> None:
        """Return once the job says that so many rows are done."""
        eventually(lambda: (self.http.get(job).json()["progress"] or {}).get("done") == done)

    def begin_again(self) -> None:
        """As it was at first, for another test: what waits at the gate comes to its end."""
        self.gate.open()
        eventually(self._is_idle)
        self.gate.close()
        assert self.http.delete("/v1/graphs/city").status_code == 204
        assert self.http.put("/v1/graphs/city", json=CITY).status_code == 201

    def _is_idle(self) -> bool:
        jobs = self.http.get("/v1/jobs").json()["jobs"]
        return not any(job["status"] in ("queued", "running") for job in jobs)

    @contextmanager
    def asking(self, scenarios: Sequence[object] = SCENARIOS, **more: Any) -> Iterator[httpx.Response]:
        body = {"scenarios": scenarios} | more.pop("json", {})
        headers = LINES | more.pop("headers", {})
        with self.http.stream("POST", "/v1/graphs/city/what-if", json=body, headers=headers, **more) as response:
            yield response

    @contextmanager
    def reading(self, job: str, after: int | None = None, **headers: str) -> Iterator[httpx.Response]:
        params = {} if after is None else {"after": after}
        with self.http.stream("GET", f"{job}/result", params=params, headers=LINES | headers) as response:
            yield response


@contextmanager
def running_with(redis_url: str, **changes: Any) -> Iterator[Running]:
    with forked(), _running(redis_url, **changes) as running:
        yield running


@contextmanager
def _running(redis_url: str, **changes: Any) -> Iterator[Running]:
    prefix = f"test-{uuid.uuid4().hex}:"
    settings = Settings(redis_url=redis_url, redis_prefix=prefix, lease_s=2, **changes)
    gate, workers, threads = Gate(), list[Worker](), list[threading.Thread]()

    def open_engine(network: Network, room: Room = unlimited) -> Engine:
        engine = Gated(network, room)
        engine.gate = gate
        return engine

    def start_worker() -> Worker:
        worker = Worker(settings, "w0", open_engine)
        thread = threading.Thread(target=worker.run)
        thread.start()
        workers.append(worker)
        threads.append(thread)
        return worker

    options = {"log_config": None, "access_log": False, "timeout_graceful_shutdown": 1}
    server = uvicorn.Server(ServerConfig(create_app(settings), Connections(), http=BoundedProtocol, **options))
    listener = socket.create_server(("127.0.0.1", 0))
    worker = start_worker()
    threads.append(threading.Thread(target=server.run, kwargs={"sockets": [listener]}))
    threads[-1].start()
    try:
        base_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with httpx.Client(base_url=base_url, verify=False, trust_env=False, timeout=PATIENCE_S) as http:
            eventually(lambda: http.get("/readyz").status_code == 200)
            assert http.put("/v1/graphs/city", json=CITY).status_code == 201
            with closing(connect(settings)) as client:
                yield Running(http, gate, ApiKeys(client, Keys(prefix)), start_worker, worker)
    finally:
        gate.open()
        server.should_exit = True
        for worker in workers:
            worker.stop()
        for thread in threads:
            thread.join(PATIENCE_S)
        listener.close()


def parsed(lines: Iterator[str], count: int | None = None) -> list[dict[str, Any]]:
    """So many lines, or all that come."""
    found = []
    while count is None or len(found) < count:
        if (line := next(lines, None)) is None:
            break
        found.append(json.loads(line))
    return found
