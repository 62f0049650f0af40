"""Commits side by side, with a slow way to Redis: they disturb each other only where they are about the same graph."""

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpu_engine.formats import pack
from service.protocol import EmptyArgs, Kind, LoadArgs, Operation, PatchArgs, Reply, Status
from service.settings import Settings
from service.store.catalogue import Registry
from service.store.connection import connect
from service.store.keys import Keys
from service.worker.graphs import Graphs
from service.worker.loading import Loader
from service.worker.running.endings import Endings
from tests.faults.proxy import Proxy
from tests.graphs import diamond
from tests.service_fixtures import Caller, StartWorker, result

DELAY_S = 0.04
"""To Redis, and as much back."""

NAMES = [f"g{i}" for i in range(12)]
ADD_1 = PatchArgs(batch=[Operation(op="add", edges=[0], amounts=["1"])])


@pytest.fixture
def settings(redis_url: str, settings: Settings, tmp_path: Path) -> Iterator[Settings]:
    """All that the service does goes through a proxy that is slow."""
    path = Path("/tmp") / f"{settings.redis_prefix[:20]}.sock" if len(str(tmp_path)) > 80 else tmp_path / "proxy.sock"
    proxy = Proxy(path, Path(redis_url.partition("@")[2]))
    proxy.delay_s = DELAY_S
    yield settings.model_copy(update={"redis_url": f"unix://headrace@{path}", "lease_s": 5.0})
    proxy.close()
    path.unlink(missing_ok=True)


class Counting:
    """How often commands were run and graphs were built."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.counts: Counter[str] = Counter()
        self._lock = threading.Lock()
        for owner, name in ((Loader, "_build"), (Registry, "create"), (Endings, "drop")):
            self._count(monkeypatch, owner, name)
        for name in ("handle", "updating"):
            self._count(monkeypatch, Graphs, name)

    @property
    def n_runs(self) -> int:
        """Of commands, updates that are committed with their answers included."""
        return self.counts["handle"] + self.counts["updating"]

    def _count(self, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def counted(*args: Any, **more: Any) -> Any:
            with self._lock:
                self.counts[name] += 1
            return original(*args, **more)

        monkeypatch.setattr(owner, name, counted)


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Counting:
    return Counting(monkeypatch)


def all_at_once(caller: Caller, asked: list[tuple[Kind, str, Any]]) -> list[Reply]:
    async def one(kind: Kind, graph: str, args: Any) -> Reply:
        reply = await caller.dispatcher.wait(await caller.dispatcher.submit(kind, graph, args), 120)
        assert reply is not None
        return reply

    async def all_of_them() -> list[Reply]:
        return await asyncio.gather(*(one(*question) for question in asked))

    return caller.run(all_of_them())


def test_loads_and_deletes_of_other_graphs_do_not_disturb(
    caller: Caller, start_worker: StartWorker, settings: Settings, counting: Counting
) -> None:
    """Found by seed 500099: they watched what every load changes, and ten lost races were an error 500."""
    start_worker("w0", threads=4)
    start_worker("w1", threads=4)
    caller.wait_ready(2)
    data = pack(diamond().edges)
    loads = 0
    for _ in range(2):
        blobs = [caller.run(caller.dispatcher.blobs.put(data)) for _ in NAMES]
        asked: list[tuple[Kind, str, Any]] = []
        asked += [(Kind.LOAD, name, LoadArgs(blob=blob)) for name, blob in zip(NAMES, blobs, strict=True)]
        replies = all_at_once(caller, asked)
        loads += len(asked)
        assert [reply.status for reply in replies] == [Status.SUCCEEDED] * len(NAMES), replies
        mixed = [(Kind.PATCH, name, ADD_1) for name in NAMES[::2]] + [
            (Kind.DELETE, n, EmptyArgs()) for n in NAMES[1::2]
        ]
        replies = all_at_once(caller, mixed)
        assert [reply.status for reply in replies] == [Status.SUCCEEDED] * len(NAMES), replies
    assert counting.counts["_build"] == counting.counts["create"] == loads
    assert counting.n_runs == 2 * 2 * len(NAMES), "a command was run twice"
    client, keys = connect(settings), Keys(settings.redis_prefix)
    jobs = [job.decode() for job in client.zrange(keys.jobs, 0, -1)]  # type: ignore[union-attr]
    assert len(jobs) == 2 * 2 * len(NAMES)
    for job in jobs:
        assert not client.hexists(keys.job(job), "attempts"), "a lost race was counted as a delivery"
    client.close()


def test_a_command_that_takes_long_to_commit_does_not_disturb_itself(
    caller: Caller, start_worker: StartWorker, counting: Counting
) -> None:
    """The report of its progress, every 250 ms, writes to its job: three of three DELETEs failed by that."""
    start_worker()
    caller.wait_ready()
    for number in range(3):
        caller.load("g", diamond().edges)
        caller.ask(Kind.PATCH, "g", ADD_1)
        caller.ask(Kind.SNAPSHOT, "g", EmptyArgs())
        caller.ask(Kind.DELETE, "g", EmptyArgs())
        assert counting.counts["_build"] == number + 1
    assert counting.n_runs == 4 * 3


def test_a_load_that_lost_its_race_is_not_built_again(
    caller: Caller, start_worker: StartWorker, settings: Settings, counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody touches the very name between the look and the commit, as a takeover does."""
    start_worker()
    caller.wait_ready()
    client, keys = connect(settings), Keys(settings.redis_prefix)
    replaced, touched = Registry._replaced, []

    def touch(registry: Registry, pipe: Any, name: str, *args: Any) -> list[str]:
        if len(touched) < 5:
            touched.append(name)
            client.set(keys.claim(name), "w0")
        return replaced(registry, pipe, name, *args)

    monkeypatch.setattr(Registry, "_replaced", touch)
    assert caller.load("g", diamond().edges)["version"] == 1
    assert (len(touched), counting.counts["_build"], counting.counts["handle"]) == (5, 1, 1)
    touched.clear()
    assert result(caller.reply(Kind.DELETE, "g", EmptyArgs())) == {}
    assert (len(touched), counting.counts["handle"]) == (5, 2)
    client.close()
