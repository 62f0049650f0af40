"""Nobody waits while the garbage collector looks through modules and routes; what is dropped later is collected."""

import asyncio
import gc
import signal
import sys
import uuid
import weakref
from collections.abc import Iterator

import pytest

from gpu_engine.cpu.engine import CpuEngine
from service.api.http.connections import Connections, ServerConfig
from service.api.http.server import Server
from service.collector import leave_alone_what_is_here, paused
from service.settings import Settings
from service.worker import process as worker_module
from service.worker.process import Worker


class Node:
    """Part of a cycle, which nothing but the collector frees."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """All objects count, those too that are left alone since the tests were collected."""
    gc.unfreeze()
    yield
    gc.unfreeze()


def test_imports_are_passed_over_and_leave_the_collector_as_it_was() -> None:
    with paused():
        assert not gc.isenabled()
        with paused():
            pass
        assert not gc.isenabled()
        made = [Node() for _ in range(100)]
    assert gc.isenabled()
    assert gc.get_freeze_count() > len(made)


def test_what_is_here_is_passed_over_and_later_garbage_is_not() -> None:
    before, old = len(gc.get_objects()), Node()
    assert before > 10_000
    leave_alone_what_is_here()
    assert gc.get_freeze_count() > 10_000
    assert len(gc.get_objects()) < before / 10
    later = weakref.ref(Node())
    gc.collect()
    assert later() is None
    assert old.itself is old


def test_garbage_is_collected_first() -> None:
    garbage = weakref.ref(Node())
    leave_alone_what_is_here()
    assert garbage() is None


def test_an_api_process_does_so_when_it_has_started() -> None:
    async def start() -> None:
        server = Server(ServerConfig(lambda *_: None, Connections(10), lifespan="off", port=0, log_config=None))
        server.config.load()
        server.lifespan = server.config.lifespan_class(server.config)
        await server.startup()
        assert gc.get_freeze_count() > 10_000
        await server.shutdown()

    asyncio.run(start())


def test_a_worker_does_so_when_all_is_compiled(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process gives the collector's part to its `Worker`, which calls it before there are graphs."""
    called: list[str] = []
    settings = Settings(redis_url=redis_url, redis_prefix=f"test-{uuid.uuid4().hex}:")
    worker = Worker(settings, "w", CpuEngine, on_warm=lambda: called.append("warm"))
    monkeypatch.setattr(worker, "_restore_all", lambda: (called.append("restore"), worker.stop()))
    worker.run()
    assert called == ["warm", "restore"]

    class Noted(Worker):
        def run(self) -> int:
            self._on_warm()
            return 0

    monkeypatch.setattr(worker_module, "Worker", Noted)
    monkeypatch.setattr(sys, "argv", ["worker", "--name", "w"])
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    interval = sys.getswitchinterval()
    try:
        worker_module.main()
    finally:
        sys.setswitchinterval(interval)
    assert gc.get_freeze_count() > 10_000
