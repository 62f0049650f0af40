"""Bodies are read in processes of their own: what they refuse, what becomes of them, and who waits for whom."""

import errno
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import anyio.from_thread
import numpy as np
import pyarrow as pa
import pytest
from anyio.from_thread import BlockingPortal

from gpu_engine.errors import InvalidNetwork
from gpu_engine.formats import Limits, unpack, write_arrow, write_csv, write_dimacs, write_json, write_npz
from gpu_engine.networks.edgelist import EdgeList
from service.api.bodies import parsing
from service.api.bodies.arrow import PatchLimits
from service.api.bodies.budget import ByteBudget, Hold
from service.api.bodies.parsing import HERE_BYTES, LONG, LONG_BYTES, PROCESSES, SLACK_BYTES, Parsers, limit_of
from service.api.bodies.receive import INLINE_BYTES, Body
from service.api.bodies.tasks import JSON, Beside, GraphTask, Task, patch_task
from service.errors import ServiceError
from service.protocol import ARROW_TYPE, PatchArgs
from service.settings import Settings
from tests import bombs
from tests.serving import eventually

BUDGET_BYTES = 1 << 30
PATIENCE_S = 60.0


def nothing() -> None: ...


def take(n_bytes: int) -> None:
    """Memory, and give it back."""
    np.ones(n_bytes, np.uint8)


KEPT: list[object] = []


def keep(n_bytes: int) -> None:
    KEPT.append(np.ones(n_bytes, np.uint8))


def end(number: int) -> None:
    os.kill(os.getpid(), number)


@dataclass(frozen=True)
class Act:
    """A task that does something, and then tells its process."""

    needed: int = 0
    act: Callable[..., None] = nothing
    args: tuple[float, ...] = ()

    def needed_bytes(self, body: memoryview) -> int:
        return self.needed

    def run(self, body: memoryview, out: BinaryIO) -> None:
        self.act(*self.args)
        out.write(str(os.getpid()).encode())


@dataclass(frozen=True)
class Environment:
    """A task that tells what its process knows."""

    def needed_bytes(self, body: memoryview) -> int:
        return 0

    def run(self, body: memoryview, out: BinaryIO) -> None:
        out.write("\n".join(os.environ).encode())


class Reading:
    """`Parsers` from ordinary code."""

    def __init__(self, portal: BlockingPortal, parsers: Parsers) -> None:
        self.portal = portal
        self.parsers = parsers
        self.budget = ByteBudget(BUDGET_BYTES)

    def body(self, content: bytes = b"") -> Body:
        body = Body(Hold(self.budget))
        body.write(content)
        return body

    def start(self, task: Task, content: bytes = b"") -> "Future[bytes]":
        return self.portal.start_task_soon(self._convert, task, content)

    def read(self, task: Task, content: bytes = b"") -> bytes:
        return self.start(task, content).result(PATIENCE_S)

    def process(self, task: Task) -> int:
        return int(self.read(task))

    async def _convert(self, task: Task, content: bytes) -> bytes:
        body = self.body(content)
        try:
            await self.parsers.convert(body, task)
            return body.to_json()
        finally:
            body.close()

    def refusal(self, task: Task, content: bytes = b"") -> ServiceError:
        with pytest.raises(ServiceError) as error:
            self.read(task, content)
        assert self.budget.used_bytes == 0
        return error.value


@pytest.fixture(scope="module")
def processes() -> Iterator[Reading]:
    before = set(children())
    with anyio.from_thread.start_blocking_portal() as portal:
        with portal.wrap_async_context_manager(Parsers()) as parsers:
            yield Reading(portal, parsers)
        assert not [pid for pid in children() if is_parser(pid) and pid not in before]


@pytest.fixture
def reading(processes: Reading) -> Iterator[Reading]:
    yield processes
    assert processes.budget.used_bytes == 0


def children() -> list[int]:
    found: list[int] = []
    for thread in Path("/proc/self/task").iterdir():
        found += map(int, (thread / "children").read_text().split())
    return found


def is_parser(pid: int) -> bool:
    try:
        return b"service.api.bodies.parser" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return False


def gone(pid: int) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while is_parser(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_parser(pid)


def has_let_go(pid: int) -> bool:
    """Whether all threads of a killed process have ended: until then they keep its sockets open."""
    try:
        states = [Path(f"/proc/{pid}/task/{thread}/stat").read_text() for thread in os.listdir(f"/proc/{pid}/task")]
    except OSError:  # one of them ended just now
        return not Path(f"/proc/{pid}").exists()
    return all(state.rpartition(")")[2].split()[0] in "ZX" for state in states)


def test_a_process_of_its_own_that_stays(reading: Reading) -> None:
    first = reading.process(Act())
    assert first != os.getpid()
    assert reading.process(Act()) == first


def test_a_short_patch_is_read_here_and_a_long_one_is_not(reading: Reading) -> None:
    task = patch_task(JSON, PatchLimits(10, 1 << 20), Beside())
    text = b'{"edges":["a"],"set":[1.50]}'
    short = reading.body(text)
    here = reading.portal.call(reading.parsers.args, short, task)
    assert isinstance(here, PatchArgs)
    short.close()
    long = reading.body(text + HERE_BYTES * b" ")
    there = reading.portal.call(reading.parsers.args, long, task)
    assert PatchArgs.model_validate_json(there.to_json()) == here
    assert long.hold.n_bytes == long.n_bytes == len(there.to_json()) < 200
    long.close()


def large_documents(n: int) -> Iterator[tuple[str, bytes]]:
    """Of each kind the dearest to read for its size, and a usual one."""
    rng = np.random.default_rng(1)
    ends = rng.integers(0, n // 4, (2, n)).astype(np.int32)
    plain = EdgeList(n // 4, ends[0], ends[1], rng.integers(0, 1000, n), source=0, sink=1)
    words = [f"v{k}" for k in range(n // 4)]
    named = EdgeList(
        n // 4, ends[0], ends[1], plain.capacity, vertex_labels=words, edge_ids=[f"e{k}" for k in range(n)]
    )
    columns = {"tail": words * 4, "head": words[::-1] * 4}
    for edges in (plain, named):
        yield JSON, write_json(edges)
        yield ARROW_TYPE, write_arrow(edges)
        yield ARROW_TYPE, write_arrow(edges, "zstd")
        yield "application/x-npz", write_npz(edges)
    yield "text/csv", write_csv(plain)
    yield "text/csv", "".join(["tail,head,capacity,id\n", *(f"v{k},w{k},1.5,e{k}\n" for k in range(n))]).encode()
    yield "text/x-dimacs", write_dimacs(plain)
    yield "text/x-matrix-market", b"%%%%MatrixMarket matrix coordinate real general\n2 2 %d\n" % n + n * b"1 2 .5\n"
    yield JSON, json.dumps(columns | {"capacity": n * [1.5]}, separators=(",", ":")).encode()
    yield JSON, json.dumps({"tail": n * [0], "head": n * [1], "capacity": n * [1]}, separators=(",", ":")).encode()
    side = int(n**0.5)
    yield "text/x-adjacency-matrix", side * (side * b"1 " + b"\n")
    for kind in ("int8", "float64", ">i4"):
        out = io.BytesIO()
        np.save(out, np.ones((side, side), kind))
        yield "application/x-npy", out.getvalue()


def large_patches(n: int) -> Iterator[tuple[str, bytes]]:
    words = [f"edge-{k}" for k in range(n)]
    for edges, amounts in (
        (words, n * [1.5]),
        ([*range(n)], n * [7]),
        (["\U0001f600" + word for word in words], n * [1]),
    ):
        text = {"edges": edges, "set": amounts}
        yield JSON, json.dumps(text, separators=(",", ":"), ensure_ascii=False).encode()
        yield ARROW_TYPE, bombs.stream({"edge": pa.array(edges), "set": pa.array(amounts)})
    few = pa.array(np.arange(n) % 100, pa.int8())
    yield ARROW_TYPE, bombs.stream({"edge": pa.DictionaryArray.from_arrays(few, words[:100]), "set": few}, "zstd")
    yield JSON, b'{"batch":[' + b",".join(n // 100 * [b'{"edges":[1],"op":"close"}']) + b"]}"
    yield JSON, b'{"edges":[%s],"add":[%s]}' % (b",".join(n * [b"1"]), b",".join(n * [b"-1.5e9"]))


def test_what_is_told_of_a_body_is_enough_to_read_it(reading: Reading) -> None:
    limits, n = Limits(max_expansion=200), 250_000
    patches = PatchLimits(n, 256 << 20)
    tasks: list[tuple[Task, bytes]] = [(GraphTask(kind, limits), body) for kind, body in large_documents(n)]
    tasks += [(patch_task(kind, patches, Beside()), body) for kind, body in large_patches(n)]
    short = []
    for task, document in tasks:
        try:
            reading.read(task, document)
        except ServiceError as error:
            told = task.needed_bytes(memoryview(document))
            short.append(f"{task} of {len(document)} bytes, {told} told: {error.detail}")
    assert short == []


def test_a_graph_comes_back_packed(reading: Reading) -> None:
    ends = np.array([0, 1, 2], np.int32)
    edges = EdgeList(3, ends, ends[[1, 2, 0]], np.array([10, 25, 5]), decimals=1, edge_ids=["a", "b", "c"])
    again = unpack(reading.read(GraphTask(JSON, Limits()), write_json(edges)))
    assert again.capacity.tolist() == edges.capacity.tolist()
    assert (again.edge_ids, again.decimals) == (["a", "b", "c"], 1)


def test_refusals_cross_over(reading: Reading) -> None:
    columns = b'{"tail":[0],"head":[1],"capacity":[-1]}'
    refusal = reading.refusal(GraphTask(JSON, Limits()), columns)
    assert (refusal.code, refusal.rows) == ("invalid_body", [0])
    assert "row 0: capacity is negative" in refusal.detail
    patch = b'{"edges":["a", 1],"set":[1, 2]}' + INLINE_BYTES * b" "
    refusal = reading.refusal(patch_task(JSON, PatchLimits(10, 1 << 20), Beside()), patch)
    assert (refusal.code, refusal.rows, refusal.where.field) == ("invalid_body", [1], "/edges")
    many = b'{"edges":[1,2,3],"set":[1, 2, 3]}' + INLINE_BYTES * b" "
    assert reading.refusal(patch_task(JSON, PatchLimits(2, 1 << 20), Beside()), many).code == "too_large"


def read_graph(kind: str, body: memoryview) -> None:
    task = GraphTask(kind, Limits())
    task.needed_bytes(body)
    task.run(body, io.BytesIO())


def test_what_curl_takes_out_of_a_file_is_told() -> None:
    """`curl -d @FILE` drops NUL and the ends of lines, which mean nothing in JSON."""
    ends = np.array([0, 1, 2], np.int32)
    edges = EdgeList(3, ends, ends[[1, 2, 0]], np.array([10, 25, 5]), source=0, sink=2)
    written = {"text/csv": write_csv(edges), "text/x-dimacs": write_dimacs(edges), ARROW_TYPE: write_arrow(edges)}
    written |= {"application/x-npz": write_npz(edges), "text/x-matrix-market": b"%%MatrixMarket matrix\n2 2 1\n1 2 3\n"}
    for kind, document in written.items():
        lost = memoryview(document.translate(None, b"\n\r\0"))
        with pytest.raises(InvalidNetwork, match="curl -d takes them out of a file"):
            read_graph(kind, lost)
    for kind, document in ((JSON, b"{}"), ("text/csv", b"from,to,capacity\n"), ("text/csv", b""), ("text/csv", b"{}")):
        with pytest.raises(InvalidNetwork) as refusal:
            read_graph(kind, memoryview(document))
        assert "curl" not in refusal.value.message


def test_memory_is_limited_to_what_was_told(reading: Reading) -> None:
    """A task that takes more is refused, and its process reads on."""
    reading.process(Act(128 << 20, keep, (SLACK_BYTES + (8 << 20),)))
    process = reading.process(Act())  # a new one: what the bodies of other tests left behind might be all it may keep
    refusal = reading.refusal(Act(0, take, (SLACK_BYTES + (8 << 20),)))
    assert (refusal.code, "memory" in refusal.detail) == ("too_large", True)
    assert reading.process(Act(128 << 20, take, (128 << 20,))) == process


def test_a_process_that_grew_is_replaced(reading: Reading) -> None:
    grown = reading.process(Act(128 << 20, keep, (SLACK_BYTES + (8 << 20),)))
    assert reading.process(Act()) != grown
    assert gone(grown)


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGKILL, "worker_unavailable"), (signal.SIGSEGV, "invalid_body"), (signal.SIGABRT, "too_large")],
)
def test_a_process_that_ends_costs_one_body(reading: Reading, number: int, code: str) -> None:
    refusal = reading.refusal(Act(0, end, (number,)))
    assert (refusal.code, refusal.retry_after_s) == (code, 1 if code == "worker_unavailable" else None)
    assert reading.process(Act()) > 0


def test_a_process_that_was_killed_while_it_waited_is_not_noticed(reading: Reading) -> None:
    process = reading.process(Act())
    os.kill(process, signal.SIGKILL)
    assert gone(process)
    eventually(lambda: has_let_go(process))
    assert reading.process(Act()) != process


def test_a_body_that_takes_too_long_is_refused(reading: Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    process = reading.process(Act())
    monkeypatch.setattr(parsing, "READ_S", 0.3)
    assert reading.refusal(Act(0, time.sleep, (PATIENCE_S,))).code == "too_large"
    assert gone(process)
    monkeypatch.setattr(parsing, "READ_S", PATIENCE_S)
    assert reading.process(Act()) != process


def test_what_is_over_the_budget_is_refused_before_it_is_read(reading: Reading) -> None:
    assert reading.refusal(Act(BUDGET_BYTES + 1, end, (signal.SIGKILL,))).code == "too_large"
    reading.budget.take(1)
    with pytest.raises(ServiceError, match="too many bytes") as refusal:
        reading.read(Act(BUDGET_BYTES, end, (signal.SIGKILL,)))
    assert refusal.value.code == "rate_limited"
    reading.budget.give_back(1)


def test_short_work_does_not_wait_for_long(reading: Reading) -> None:
    assert PROCESSES == LONG + 1
    for task in [reading.start(Act(0, time.sleep, (1,))) for _ in range(PROCESSES)]:
        task.result(PATIENCE_S)  # all have been started
    long = [reading.start(Act(LONG_BYTES, time.sleep, (3,))) for _ in range(LONG + 1)]
    time.sleep(0.1)
    reading.process(Act())
    assert not any(task.done() for task in long)
    processes = {int(task.result(PATIENCE_S)) for task in long}
    assert len(processes) == LONG  # the last one waited for another to be over


def test_who_goes_away_ends_the_work(reading: Reading) -> None:
    process = reading.process(Act())
    task = reading.start(Act(0, time.sleep, (PATIENCE_S,)))
    time.sleep(0.3)
    task.cancel()
    assert gone(process)
    assert reading.process(Act()) != process


def test_it_yields_to_the_api_process(reading: Reading) -> None:
    """Sixteen large bodies at once kept /readyz waiting for 101 ms on two cores."""
    assert os.getpriority(os.PRIO_PROCESS, reading.process(Act())) > os.getpriority(os.PRIO_PROCESS, 0)


def test_no_secret_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://:secret@host")
    monkeypatch.setenv("HEADRACE_REDIS_URL", "redis://:secret@host")
    with anyio.from_thread.start_blocking_portal() as portal, portal.wrap_async_context_manager(Parsers()) as parsers:
        known = Reading(portal, parsers).read(Environment()).decode().split("\n")
    assert "PATH" in known
    assert [name for name in known if "REDIS" in name or "HEADRACE" in name] == []


PARENT = """
import asyncio, time
from service.api.bodies.receive import Body
from service.api.bodies.budget import ByteBudget, Hold
from service.api.bodies.parsing import Parsers
from tests.contract.test_parsing import Act

async def main() -> None:
    async with Parsers() as parsers:
        for task in (Act(), Act(0, time.sleep, (60,))):
            body = Body(Hold(ByteBudget(1 << 20)))
            await parsers.convert(body, task)
            print(body.to_json().decode(), flush=True)

asyncio.run(main())
"""


def test_it_dies_with_its_parent_in_the_middle_of_its_work() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    process = int(parent.stdout.readline())
    assert is_parser(process)
    time.sleep(0.2)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert gone(process)


def test_json_has_a_limit_of_its_own() -> None:
    settings = Settings(max_json_bytes=10_000)
    assert limit_of(JSON, settings) == 10_000
    assert limit_of("text/csv", settings) == settings.max_body_bytes
    assert limit_of(JSON, Settings(max_body_bytes=7)) == 7


def test_where_no_process_can_be_started_who_needs_none_is_served(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is there reads on; who needs another one is told so, and not that the service is at fault."""
    process = reading.process(Act())

    def refuse(*_: Any, **__: Any) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    reading.process(Act())  # one more is ready
    monkeypatch.setattr(parsing.subprocess, "Popen", refuse)
    assert reading.process(Act()) > 0
    os.kill(process, signal.SIGKILL)
    busy = [reading.start(Act(0, time.sleep, (0.5,))) for _ in range(PROCESSES)]
    told = [task.exception(PATIENCE_S) for task in busy]
    refused = [error for error in told if isinstance(error, ServiceError)]
    assert [error.code for error in refused] == ["worker_unavailable"] * len(refused)
    assert 0 < len(refused) < PROCESSES
    monkeypatch.undo()
    assert reading.process(Act()) > 0
