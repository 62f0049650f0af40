"""What does not fit is refused before any of it is built, and flow states give way to newer ones."""

import numpy as np
import pytest

from gpu_engine.edgelist import EdgeList
from gpu_engine.formats import pack
from gpu_engine.generators import grid
from gpu_engine.types import MAX_VERTICES
from service.protocol import Kind, LoadArgs, MatchingArgs, MaxFlowArgs
from service.resident import least_bytes
from tests.service_fixtures import Caller, StartWorker, code_of


@pytest.mark.parametrize("n_vertices", [MAX_VERTICES, 200_000_000])
def test_many_vertices_in_a_few_bytes_are_refused(caller: Caller, start_worker: StartWorker, n_vertices: int) -> None:
    """Found by hand: a body of 70 bytes had the kernel kill the worker, time after time."""
    start_worker()
    caller.wait_ready()
    ends = np.array([0], np.int32), np.array([1], np.int32)
    blob = caller.run(caller.dispatcher.blobs.put(pack(EdgeList(n_vertices, *ends, np.array([1], np.int64)))))
    assert code_of(lambda: caller.reply(Kind.LOAD, "g", LoadArgs(blob=blob))) == "out_of_memory"
    assert code_of(lambda: caller.reply(Kind.MAX_FLOW, "g", MaxFlowArgs())) == "unknown_graph"


def test_flow_states_give_way_when_memory_is_short(caller: Caller, start_worker: StartWorker) -> None:
    edges = grid(rows=60, columns=60, seed=1)
    budget = least_bytes(edges.n_vertices, len(edges.tail)) * 3
    worker = start_worker(memory_budget_bytes=budget)
    caller.wait_ready()
    caller.load("g", edges)
    for source in range(12):
        caller.value("g", sources=[source], sinks=[3599])
    (graph,) = worker.graphs.resident
    assert 1 <= len(graph.states) < 12
    assert worker.graphs.nbytes <= budget


def test_an_undirected_graph_is_copied_for_a_matching_only_if_both_fit(
    caller: Caller, start_worker: StartWorker
) -> None:
    """Every left vertex meets every right one: 60 and 60."""
    tail, head = np.repeat(np.arange(60, dtype=np.int32), 60), np.tile(np.arange(60, 120, dtype=np.int32), 60)
    edges = EdgeList(120, tail, head, np.ones(3600, np.int64), undirected=True)
    worker = start_worker(memory_budget_bytes=150_000)
    caller.wait_ready()
    caller.load("g", edges)
    assert 75_000 < worker.graphs.nbytes < 150_000
    left = MatchingArgs(left=list(range(60)))
    assert code_of(lambda: caller.reply(Kind.MATCHING, "g", left)) == "out_of_memory"
    assert caller.value("g", sources=[0], sinks=[119]) == 60
