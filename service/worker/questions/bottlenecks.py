"""What limits a maximum flow, and what it would gain if one of these limits were not there."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpu_engine.control import Control
from gpu_engine.engine import Bottlenecks
from gpu_engine.errors import Cancelled, Unbounded
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.networks.updates import Change
from gpu_engine.text.names import Names
from gpu_engine.types import INFINITE, MAX_TOTAL, BoolArray, EdgeArray, UnitArray, VertexArray
from service.worker import answers
from service.worker.columns import FlagColumn, IntegerColumn, each, listed
from service.worker.copies import Copies
from service.worker.graph import Graph, Solved
from service.worker.solving import Solver
from service.worker.supposing import Supposition, needs

NO_CHANGE = Change(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.bool_))


Part = tuple[str, str, Names, EdgeArray | VertexArray, BoolArray, int]
"""A kind of limit: its members, what its rows stand for, the bottlenecks, and the place of its gains."""


class Gained(NamedTuple):
    """int64 each: the gains of the first bottlenecks in the order of `in_order`; `INFINITE` is without a bound."""

    edges: UnitArray
    sources: UnitArray
    sinks: UnitArray


def in_order(in_every: BoolArray) -> EdgeArray:
    """The places of bottlenecks as they are shown: what every cut pays first, and then by row."""
    return np.argsort(~in_every, kind="stable")


def shown(
    network: Network, found: Bottlenecks, gained: Gained | None, of_vertices: bool, *, packed: bool
) -> dict[str, object]:
    """The part of an answer; ``gained`` where it is asked for. ``of_vertices``:
    some of them have capacities. ``packed``: in arrays a flag says what is unlimited."""
    answer: dict[str, object] = {}
    parts: tuple[Part, ...] = (
        ("edges", "", network.edge_ids, found.edges, found.in_every, 0),
        ("sources", "source_", network.vertex_labels, found.sources, found.source_in_every, 1),
        ("sinks", "sink_", network.vertex_labels, found.sinks, found.sink_in_every, 2),
    )
    if of_vertices:
        parts = (*parts, ("vertices", "vertex_", network.vertex_labels, found.vertices, found.vertex_in_every, 3))
    for kind, prefix, names, rows, in_every, place in parts:
        order, table = in_order(in_every), "" if kind == "edges" else kind
        every = in_every[order]
        answer[kind] = answers.labels(names, listed(rows[order]), table)
        answer[f"{prefix}in_every"] = FlagColumn(every, table)
        answer[f"{prefix}gain"] = IntegerColumn(every.astype(np.int64), table)
        if gained is not None:
            gains = gained[place]
            of = table if len(gains) == len(rows) else f"{prefix}up_to"
            answer[f"{prefix}up_to"] = answers.amounts(network, gains, each(gains), of)
            if packed:
                answer[f"{prefix}up_to_unlimited"] = FlagColumn(gains == INFINITE, of)
    return answer


class Gains:
    """Solves what a flow gains as one limit falls.

    The value against one limit rises by a unit each until another cut is the least, and then no more. So a limit that
    is far beyond that is as good as none, and the flow is repaired for it. Where the gain takes up all of even that,
    the limit is taken away.
    """

    def __init__(self, copies: Copies, solver: Solver) -> None:
        self._residents = copies.residents
        self._solver = solver

    def gains(self, graph: Graph, solved: Solved, found: Bottlenecks, most: int, control: Control) -> Gained:
        """Of ``most`` bottlenecks: edges first, then sources, then sinks. Those that not every minimum cut pays gain
        nothing, which takes no solving. Raises `Cancelled`, `OutOfMemory`."""
        self._solver.make_room(graph, needs(graph), but=solved)
        try:
            tried = Trials(self._solver, Supposition.of(graph, solved, graph.name), solved, control)
            edges = _first(found.edges, found.in_every, most, tried.edge)
            most = max(0, most - int(found.in_every.sum()))
            sources = _first(found.sources, found.source_in_every, most, tried.source)
            most = max(0, most - int(found.source_in_every.sum()))
            return Gained(edges, sources, _first(found.sinks, found.sink_in_every, most, tried.sink))
        finally:
            self._residents.measure(graph)


@dataclass(frozen=True, slots=True)
class Trials:
    """One limit raised at a time, on a copy of the flow."""

    solver: Solver
    supposed: Supposition
    base: Solved
    control: Control

    def edge(self, row: int) -> int:
        """The gain if this edge has no limit, `INFINITE` if the flow then has none."""
        network, rows = self.supposed.graph.network, np.array([row])
        own, ways = int(network.capacity[row]), 2 if network.is_undirected(rows)[0] else 1
        room = (MAX_TOTAL - network.finite_total) // ways

        def gain(capacity: int) -> int:
            change = Change(rows, np.array([capacity]), np.zeros(1, np.bool_))
            return self._gain(change, self.base.terminals)

        return _unless_all(room, gain, own)

    def source(self, vertex: int) -> int:
        """The gain if this source has no cap."""
        ends = self.base.terminals
        at = int(np.searchsorted(ends.sources, vertex))

        def gain(cap: int) -> int:
            return self._gain(
                NO_CHANGE, Terminals.of(ends.sources, ends.sinks, _with(ends.supply, at, cap), ends.demand)
            )

        return _unless_all(_room(ends.supply), gain, int(ends.supply[at]))

    def sink(self, vertex: int) -> int:
        """The gain if this sink has no cap."""
        ends = self.base.terminals
        at = int(np.searchsorted(ends.sinks, vertex))

        def gain(cap: int) -> int:
            return self._gain(
                NO_CHANGE, Terminals.of(ends.sources, ends.sinks, ends.supply, _with(ends.demand, at, cap))
            )

        return _unless_all(_room(ends.demand), gain, int(ends.demand[at]))

    def _gain(self, change: Change, terminals: Terminals) -> int:
        if self.control.cancelled:
            raise Cancelled("cancelled between two bottlenecks")
        assert self.base.report is not None
        with self.supposed.under(change, terminals) as state:
            answer = self.solver.solve(self.supposed.graph, state, self.control, complete=True)
        return answer.report.value - self.base.report.value


def _unless_all(room: int, gain: Callable[[int], int], own: int) -> int:
    """The gain without a limit: that of ``room`` units more, unless it is all of them."""
    found = gain(own + room)
    if found < room:
        return found
    try:
        return gain(INFINITE)
    except Unbounded:
        return INFINITE


def _first(rows: EdgeArray | VertexArray, in_every: BoolArray, most: int, gain: Callable[[int], int]) -> UnitArray:
    """The gains of the first rows in order: of all, if no more than ``most`` take any solving."""
    every = rows[in_every]
    gains = [gain(row) for row in every[:most].tolist()]
    rest = len(rows) - len(every) if len(every) <= most else 0
    return np.array([*gains, *[0] * rest], np.int64)


def _room(caps: UnitArray) -> int:
    return MAX_TOTAL - int(caps[caps != INFINITE].sum())


def _with(caps: UnitArray, at: int, cap: int) -> UnitArray:
    changed = caps.copy()
    changed[at] = cap
    return changed
