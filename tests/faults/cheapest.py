"""Cheapest flows, proven from what a client is told: a flow of the value, and potentials by which none costs less.

With ``gain = potential[head] - potential[tail]`` no flow of a value between a source and a sink without caps costs less
than ``value * potential beyond the sink - sum of capacity * max(0, gain - cost)``, if nothing is gained on the way to
the source and from the sink on (weak duality).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.faults.history import SOURCE
from tests.faults.model import State

Units = NDArray[np.int64]


def cheapest_faults(body: dict[str, Any], wanted: int | None, state: State) -> list[str]:
    """What is wrong with an answer about this version, when `wanted` units were asked for, or as many as can flow."""
    if state.cost is None:
        return ["the graph has no costs"]
    if body["maximum"] != state.value:  # it is about another load, of other edges perhaps
        return [f"the maximum is {state.value}"]
    value = state.value if wanted is None else wanted
    faults = [] if body["value"] == value else [f"the value is {value}"]
    if (state.values.rows(body["flow"]["edges"]) < 0).any():
        faults.append("there is no such edge")
    flow = _by_edge(body["flow"], state)
    if ((flow < 0) | (flow > state.effective)).any():
        faults.append("an edge carries more than it can")
    if not _carries(state, flow, value):
        faults.append(f"it is no flow of {value}")
    cost, bound = int(state.cost @ flow), _bound(body["dual"], value, state)
    if not cost == bound == body["cost"]:
        faults.append(f"the flow costs {cost}, each costs {bound} at least")
    if not body["certificate"]["valid"]:
        faults.append("the proof is said not to hold")
    return faults + _path_faults(body, flow, value, state)


def _by_edge(column: dict[str, Any], state: State) -> Units:
    flow = np.zeros(len(state.own), np.int64)
    rows = state.values.rows(column["edges"])
    flow[rows[rows >= 0]] = np.array(column["amount"], np.int64)[rows >= 0]
    return flow


def _carries(state: State, flow: Units, value: int) -> bool:
    """Whether so much leaves the source and arrives at the sink, and nothing stays on the way."""
    net = np.zeros(state.edges.n_vertices, np.int64)
    np.add.at(net, state.edges.head, flow)
    np.subtract.at(net, state.edges.tail, flow)
    net[SOURCE] += value
    net[state.edges.sink] -= value
    return not net.any()


def _bound(dual: dict[str, Any], value: int, state: State) -> int | None:
    """What the potentials prove; None for nothing."""
    assert state.cost is not None
    potential = np.zeros(state.edges.n_vertices, np.int64)
    potential[np.array(dual["vertices"], np.int64)] = dual["potential"]
    if potential[SOURCE] > 0 or dual["beyond"] > potential[state.edges.sink]:
        return None
    saved = np.maximum(potential[state.edges.head] - potential[state.edges.tail] - state.cost, 0)
    return value * int(dual["beyond"]) - int(saved @ state.effective)


def _path_faults(body: dict[str, Any], flow: Units, value: int, state: State) -> list[str]:
    """Each path leads from the source to the sink; all of them and the cycles are the flow, if all are listed."""
    faults, paths, left = [], body["paths"], flow - _by_edge(body["cycles"], state)
    for i, amount in enumerate(paths["amount"]):
        rows = state.values.rows(paths["edges"][paths["offsets"][i] : paths["offsets"][i + 1]])
        places = [SOURCE, *np.array(state.edges.head)[rows].tolist()]
        if np.array(state.edges.tail)[rows].tolist() != places[:-1] or places[-1] != state.edges.sink or amount <= 0:
            faults.append(f"path {i} leads astray")
        left[rows] -= amount
    if (left < 0).any() or (paths["of"] == len(paths["amount"]) and left.any()):
        faults.append("the paths and the cycles are not the flow")
    if sum(paths["amount"]) + paths["rest"] != value:
        faults.append(f"the paths do not carry {value}")
    return faults
