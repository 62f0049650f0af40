"""Circulations with lower bounds: a flow is checked edge by edge, and that there is none by OR-tools (Hoffman 1960)."""

from typing import Any, Final

import numpy as np
from ortools.graph.python import max_flow

from tests.faults.history import SOURCE
from tests.faults.model import State

BOUND_EDGES: Final = [2, 3]
"""Edges that every graph has, and that are to carry something; none is a mark."""


def circulation_faults(body: dict[str, Any], lower: list[int] | None, state: State) -> list[str]:
    """What is wrong with an answer about this version, when the `BOUND_EDGES` are to carry at least so much, or, where
    nothing is said of them, all edges what their own lower bounds say."""
    least = state.least
    if lower is not None:
        least = np.zeros(len(state.own), np.int64)
        least[state.values.rows(BOUND_EDGES)] = lower
    faults = [] if body["certificate"]["valid"] else ["the proof is said not to hold"]
    if body["feasible"] != is_feasible(state, least):
        return [*faults, f"feasible is not {body['feasible']}"]
    return faults + (_flow_faults(body["flow"], least, state) if body["feasible"] else [])


def is_feasible(state: State, least: np.ndarray[Any, np.dtype[np.int64]]) -> bool:
    """Whether some flow from the source to the sink carries at least so much on each edge."""
    effective = state.effective
    if (least > effective).any():
        return False
    n, solver = state.edges.n_vertices, max_flow.SimpleMaxFlow()
    tail, head = np.array(state.edges.tail), np.array(state.edges.head)
    solver.add_arcs_with_capacity(tail, head, effective - least)
    solver.add_arc_with_capacity(state.edges.sink, SOURCE, int(effective.sum()))
    bound = np.flatnonzero(least)
    solver.add_arcs_with_capacity(np.full(len(bound), n), head[bound], least[bound])
    solver.add_arcs_with_capacity(tail[bound], np.full(len(bound), n + 1), least[bound])
    assert solver.solve(n, n + 1) == solver.OPTIMAL
    return int(solver.optimal_flow()) == int(least.sum())


def _flow_faults(said: dict[str, Any], least: np.ndarray[Any, np.dtype[np.int64]], state: State) -> list[str]:
    rows, flow = state.values.rows(said["edges"]), np.zeros(len(state.own), np.int64)
    if (rows < 0).any():
        return ["there is no such edge"]
    flow[rows] = said["amount"]
    faults = ["an edge carries more than it can"] if (flow > state.effective).any() else []
    faults += ["an edge carries less than it has to"] if (flow < least).any() else []
    net = np.zeros(state.edges.n_vertices, np.int64)
    np.add.at(net, state.edges.head, flow)
    np.subtract.at(net, state.edges.tail, flow)
    inner = np.delete(net, [SOURCE, state.edges.sink])
    return [*faults, "something stays on the way"] if inner.any() or net[SOURCE] > 0 else faults
