"""A real Redis, real workers and a caller, for tests at the level of the queue."""

import asyncio
import json
import threading
import time
import uuid
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

import pytest

from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.formats import pack
from gpu_engine.networks.edgelist import EdgeList
from service.errors import ServiceError
from service.host import redis_server
from service.protocol import CapacitiesArgs, Kind, LoadArgs, MaxFlowArgs, Message, Operation, PatchArgs, Reply, Status
from service.queue.dispatcher import Dispatcher
from service.settings import Settings
from service.store.connection import connect
from service.store.keys import Keys
from service.worker.graph import OpenEngine
from service.worker.process import Worker
from tests.graphs import diamond
from tests.heartbeats import forked

T = TypeVar("T")
PATIENCE_S = 120.0

StartWorker = Callable[..., Worker]


class Caller:
    """A dispatcher in an event loop of its own, called from ordinary code."""

    def __init__(self, settings: Settings) -> None:
        self._runner = asyncio.Runner()
        self.dispatcher = self.run(self._open(settings))

    async def _open(self, settings: Settings) -> Dispatcher:
        dispatcher = Dispatcher(settings)
        await dispatcher.start()
        return dispatcher

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def close(self) -> None:
        self.run(self.dispatcher.close())
        self._runner.close()

    def submit(self, kind: Kind, graph: str, args: Message, key: str | None = None, digest: str | None = None) -> str:
        work = self.dispatcher.submit(kind, graph, args, idempotency_key=key, body_digest=digest)
        return self.run(work)

    def reply(self, kind: Kind, graph: str, args: Message, key: str | None = None, digest: str | None = None) -> Reply:
        reply = self.run(self.dispatcher.wait(self.submit(kind, graph, args, key, digest), PATIENCE_S))
        assert reply is not None
        return reply if reply.result_blob is None else self.run(self._whole(reply, reply.result_blob))

    async def _whole(self, reply: Reply, blob: str) -> Reply:
        """With the result that lies in a blob."""
        chunks = (await self.dispatcher.blobs.open(blob)).chunks()
        text = b"".join([chunk async for chunk in chunks]).decode()
        return reply.model_copy(update={"result_json": text, "result_blob": None})

    def ask(self, kind: Kind, graph: str, args: Message, key: str | None = None) -> dict[str, Any]:
        """The result of a command that must succeed."""
        return result(self.reply(kind, graph, args, key))

    def load(self, graph: str, edges: EdgeList) -> dict[str, Any]:
        blob = self.run(self.dispatcher.blobs.put(pack(edges)))
        return self.ask(Kind.LOAD, graph, LoadArgs(blob=blob))

    def set(self, graph: str, edges: list[int], amounts: list[str], **more: Any) -> dict[str, Any]:
        return self.ask(Kind.PATCH, graph, PatchArgs(batch=[Operation(op="set", edges=edges, amounts=amounts)], **more))

    def page(self, graph: str, **more: Any) -> dict[str, Any]:
        """The edges of the graph with their capacities."""
        return self.ask(Kind.CAPACITIES, graph, CapacitiesArgs(**more))

    def first_capacity(self, graph: str) -> tuple[int, float]:
        """The version of the graph, and the capacity of its first edge."""
        page = self.page(graph, limit=1)
        return page["version"], page["capacity"][0]

    def value(self, graph: str, **more: Any) -> Any:
        return self.ask(Kind.MAX_FLOW, graph, MaxFlowArgs(**more))["value"]

    def wait_ready(self, count: int = 1) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if sum(worker.ready and worker.alive for worker in self.run(self.dispatcher.watch.workers())) >= count:
                return
            time.sleep(0.02)
        raise AssertionError("no worker became ready")


def result(reply: Reply) -> dict[str, Any]:
    assert reply.status is Status.SUCCEEDED, reply
    assert reply.result_json is not None
    parsed: dict[str, Any] = json.loads(reply.result_json)
    return parsed


def code_of(call: Callable[[], object]) -> str:
    """The code a call is refused with, at the submit or in the reply."""
    try:
        answer = call()
    except ServiceError as error:
        return error.code
    assert isinstance(answer, Reply)
    assert answer.problem is not None, answer
    return answer.problem.code


@pytest.fixture
def client(settings: Settings) -> Iterator[Any]:
    client = connect(settings)
    yield client
    client.close()


@pytest.fixture
def keys(settings: Settings) -> Keys:
    return Keys(settings.redis_prefix)


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An embedded Redis with append-only file, for this test process."""
    server = Settings(data_dir=tmp_path_factory.mktemp("redis"), redis_url=None)
    with redis_server.running(server):
        yield server.redis_location


@pytest.fixture
def settings(redis_url: str) -> Settings:
    """Settings with key names of this test's own."""
    return Settings(redis_url=redis_url, redis_prefix=f"test-{uuid.uuid4().hex}:", lease_s=2)


@pytest.fixture
def caller(settings: Settings) -> Iterator[Caller]:
    caller = Caller(settings)
    yield caller
    caller.close()


@pytest.fixture
def start_worker(settings: Settings) -> Iterator[StartWorker]:
    """Start workers in threads of this process; all are stopped at the end."""
    running: list[tuple[Worker, threading.Thread]] = []

    def start(name: str = "w0", open_engine: OpenEngine = CpuEngine, **changes: Any) -> Worker:
        worker = Worker(settings.model_copy(update=changes), name, open_engine)
        thread = threading.Thread(target=worker.run, name=name)
        thread.start()
        running.append((worker, thread))
        return worker

    with forked():
        yield start
        for worker, _ in running:
            worker.stop()
        for _, thread in running:
            thread.join(PATIENCE_S)


@pytest.fixture
def by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Updates are committed first and then solved and answered, as those that take long are."""
    monkeypatch.setattr("service.worker.running.together.UPDATES", frozenset())


@pytest.fixture
def worker(caller: Caller, start_worker: StartWorker) -> Worker:
    """The worker w0, which has a diamond in memory as the graph g."""
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    return worker
