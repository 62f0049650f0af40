"""The process in which a cheapest flow is solved: stopped at a cancel, bounded, and gone with its parent."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from gpu_engine.control import Control
from gpu_engine.errors import Cancelled, CapacityOverflow, CostOverflow, Infeasible, OutOfMemory, Unbounded
from gpu_engine.footprint import Footprint
from gpu_engine.mincost import cheapest, solver
from gpu_engine.mincost.cheapest import cheapest_flow
from gpu_engine.mincost.problem import Problem, problem_of
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.networks.validate import largest_cost
from gpu_engine.types import INFINITE
from tests.graphs import diamond

ENDS = Terminals.of([0], [3])
COST = np.array([1, 1, 1, 1, 1])


@pytest.fixture(autouse=True)
def without_shortest_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """By which few units are sent without the process."""
    monkeypatch.setattr(cheapest, "_by_few_paths", lambda *_: None)


def large(n: int = 20_000, m: int = 400_000) -> tuple[Network, "np.ndarray[tuple[int], np.dtype[np.int64]]"]:
    """Takes seconds."""
    rng = np.random.default_rng(3)
    tail, head = rng.integers(0, n, (2, m)).astype(np.int32)
    return Network(EdgeList(n, tail, head, rng.integers(1, 1000, m))), rng.integers(0, 10**6, m)


def children() -> set[int]:
    tasks = Path("/proc/self/task").glob("*/children")
    return {int(pid) for task in tasks for pid in task.read_text().split()}


def test_it_solves() -> None:
    """More than a pipe holds at once, too."""
    network = Network(diamond().edges)
    assert cheapest_flow(network, COST, ENDS, 5).flow.tolist() == [3, 2, 1, 2, 3]
    rng = np.random.default_rng(1)
    tail, head = rng.integers(0, 500, (2, 10_000)).astype(np.int32)
    wide = Network(EdgeList(500, tail, head, np.ones(10_000, np.int64)))
    assert cheapest_flow(wide, rng.integers(0, 9, 10_000), ENDS, 5).flow.sum() >= 5


def test_a_cancel_kills_it() -> None:
    network, cost = large()
    control, before = Control(), children()
    started: set[int] = set()

    def cancel() -> None:
        while not (new := children() - before):
            time.sleep(0.01)
        started.update(new)
        control.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(Cancelled):
        cheapest_flow(network, cost, Terminals.of([0], [1]), 5000, control)
    thread.join()
    assert started
    assert not started & children()


def test_it_ends_with_its_parent() -> None:
    """It waits for a problem that never comes, and its parent is killed."""
    read, write = os.pipe()  # whose other end stays open here: it is not the end of its input that ends it
    script = (
        "import os, subprocess, sys, time;"
        "child = subprocess.Popen([sys.executable, '-m', 'gpu_engine.mincost.process', str(os.getpid()), '1000000'],"
        f" stdin={read}); print(child.pid, flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, pass_fds=[read]) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        deadline = time.monotonic() + 60
        while "mincost" not in Path(f"/proc/{pid}/cmdline").read_text() and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(1)  # until it reads
        parent.kill()
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_alive(pid)
    os.close(read)
    os.close(write)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state != "Z"


def test_it_has_a_limit_on_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    network, cost = large()
    monkeypatch.setattr(solver, "ARC_BYTES", 1)
    monkeypatch.setattr(solver, "SLACK_BYTES", 0)
    with pytest.raises(OutOfMemory):
        cheapest_flow(network, cost, Terminals.of([0], [1]), 5)


def test_memory_is_asked_for_before_it_is_taken() -> None:
    asked: list[int] = []

    def room(needed: Footprint) -> None:
        asked.append(needed.host)
        if needed.host > solver.PROCESS_BYTES:
            raise OutOfMemory("no room")

    with pytest.raises(OutOfMemory, match="no room"):
        cheapest_flow(Network(diamond().edges), COST, ENDS, 5, room=room)
    assert asked[-1] > solver.PROCESS_BYTES


def test_a_process_that_dies_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "run", lambda *_: (b"", -signal.SIGSEGV))
    with pytest.raises(RuntimeError, match="ended with -11"):
        cheapest_flow(Network(diamond().edges), COST, ENDS, 5)
    monkeypatch.setattr(solver, "run", lambda *_: (b"OPTIMAL\n1234", 0))
    with pytest.raises(RuntimeError, match="OPTIMAL"):
        cheapest_flow(Network(diamond().edges), COST, ENDS, 5)


def test_what_cannot_be_solved() -> None:
    edges = diamond().edges
    with pytest.raises(Infeasible):
        cheapest_flow(Network(edges), COST, ENDS, 6)
    n = 5000
    chain = np.arange(n - 1, dtype=np.int32)
    long = Network(EdgeList(n, chain, chain + 1, np.ones(n - 1, np.int64)))
    dear = np.full(n - 1, largest_cost(n))
    dear[0] -= 1
    with pytest.raises(CostOverflow):
        cheapest_flow(long, dear, Terminals.of([0], [n - 1]), 1)


def test_costs_with_a_common_divisor_have_more_room() -> None:
    """Prices in steps of a million are prices in steps of one to the solver."""
    n = 5000
    chain = np.arange(n - 1, dtype=np.int32)
    long = Network(EdgeList(n, chain, chain + 1, np.ones(n - 1, np.int64)))
    assert cheapest_flow(long, np.full(n - 1, largest_cost(n)), Terminals.of([0], [n - 1]), 1).flow.all()


def test_bounds_of_unlimited_edges_that_do_not_fit() -> None:
    """Each may have to carry what all finite ones do, where some cost less than nothing."""
    capacity = np.array([INFINITE, INFINITE, INFINITE, 1 << 59, 5])
    network = Network(EdgeList(4, *(np.array(ends, np.int32) for ends in ([0, 0, 1, 1, 2], [1, 2, 2, 3, 3])), capacity))
    assert problem_of(network, COST, ENDS, 9).bounded().max() == 1 << 59
    costs = np.array([1, 1, -1, 1, 1])
    with pytest.raises(CapacityOverflow, match="give those without a limit one"):
        problem_of(network, costs * 1, ENDS, 1 << 60).bounded()


def test_self_loops() -> None:
    """One that pays is filled, one that does not stays empty, and one without a limit that pays has no end."""
    ends = np.array([0, 1, 1], np.int32), np.array([1, 1, 1], np.int32)
    network = Network(EdgeList(2, *ends, np.array([5, 7, 9])))
    found = cheapest_flow(network, np.array([1, -2, 3]), Terminals.of([0], [1]), 2)
    assert found.flow.tolist() == [2, 7, 0]
    endless = Network(EdgeList(2, *ends, np.array([5, INFINITE, 9])))
    with pytest.raises(Unbounded, match="1"):
        cheapest_flow(endless, np.array([1, -2, 3]), Terminals.of([0], [1]), 2)


def test_nothing_to_solve_starts_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object) -> tuple[bytes, int]:
        raise AssertionError("a process")

    monkeypatch.setattr(solver, "run", run)
    empty = Network(EdgeList(2, np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int64)))
    assert cheapest_flow(empty, np.empty(0, np.int64), Terminals.of([0], [1]), 0).flow.tolist() == []
    assert cheapest_flow(Network(diamond().edges), COST, ENDS, 0).flow.tolist() == [0] * 5


def test_the_problem_of_a_network() -> None:
    """Closed edges and loops are left out, undirected edges are two arcs, terminals have one each."""
    edges = EdgeList(
        3,
        np.array([0, 1, 1, 0], np.int32),
        np.array([1, 2, 1, 2], np.int32),
        np.array([4, 5, 6, 0]),
        np.array([False, True, False, False]),
    )
    problem: Problem = problem_of(Network(edges), np.array([1, 2, 3, 4]), Terminals.of([0], [2], [9]), 3)
    arcs = list(zip(problem.tail, problem.head, problem.capacity, problem.cost, strict=True))
    assert arcs == [(0, 1, 4, 1), (1, 2, 5, 2), (2, 1, 5, 2), (3, 0, 9, 0), (2, 4, INFINITE, 0)]
    flow = problem.flow_of_edges(Network(edges), np.array([3, 1, 4, 3, 3]))
    assert flow.tolist() == [3, -3, 0, 0]
