"""What is right, by other programs than ours: maximum flows and cuts by NetworkX, cheapest flows by HiGHS."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import networkx as nx
import numpy as np
from networkx.algorithms.flow import dinitz
from scipy.optimize import linprog

from tests.sequences.graph import UNLIMITED, Edge, Ends, Graph, Name

SOURCE: Final = "source of all"
SINK: Final = "sink of all"
HALF: Final = UNLIMITED // 2

Links: TypeAlias = nx.DiGraph

INFEASIBLE: Final = 2
UNBOUNDED: Final = 3
"""States of `scipy.optimize.linprog`."""


def links_of(graph: Graph, ends: Ends) -> Links:
    """A network with an edge inside each vertex, from its in half to its out half."""
    links = nx.DiGraph()
    links.add_nodes_from((SOURCE, SINK))

    def join(tail: object, head: object, capacity: int) -> None:
        if tail != head and capacity > 0:
            before = links[tail][head]["capacity"] if links.has_edge(tail, head) else 0
            links.add_edge(tail, head, capacity=before + capacity)

    for vertex, capacity in graph.vertices.items():
        join(("in", vertex), ("out", vertex), UNLIMITED if capacity is None else capacity)
    for edge in graph.edges.values():
        join(("out", edge.tail), ("in", edge.head), edge.capacity)
        if edge.undirected:
            join(("out", edge.head), ("in", edge.tail), edge.capacity)
    for vertex, amount in ends.supply.items():
        join(SOURCE, ("in", vertex), amount)
    for vertex, amount in ends.demand.items():
        join(("out", vertex), SINK, amount)
    return links


def maximum(graph: Graph, ends: Ends) -> int:
    """The value of a maximum flow; `UNLIMITED` if it has no bound."""
    value = int(nx.maximum_flow_value(links_of(graph, ends), SOURCE, SINK, flow_func=dinitz))
    return UNLIMITED if value >= HALF else value


def between(graph: Graph, source: Name, sink: Name) -> int:
    """The value of a maximum flow between two vertices."""
    return maximum(graph, Ends({source: UNLIMITED}, {sink: UNLIMITED}))


@dataclass(frozen=True, slots=True)
class Cuts:
    """The minimum cut nearest the sources, and the one nearest the sinks, by their source sides."""

    least: set[Name]
    greatest: set[Name]

    def in_every(self, edge: Edge) -> bool:
        """Whether all minimum cuts pay for the edge: it is full from what is before them all to what is behind."""
        ways = [(edge.tail, edge.head)] + [(edge.head, edge.tail)] * edge.undirected
        return edge.capacity > 0 and any(tail in self.least and head not in self.greatest for tail, head in ways)


def cuts(graph: Graph, ends: Ends) -> Cuts:
    """Of a graph whose vertices have no capacities, and a flow that has a bound."""
    residual = dinitz(links_of(graph, ends), SOURCE, SINK)
    ahead, behind = reached(residual, SOURCE), reached(residual.reverse(), SINK)
    least = {vertex for vertex in graph.vertices if ("out", vertex) in ahead}
    return Cuts(least, {vertex for vertex in graph.vertices if ("out", vertex) not in behind})


def reached(residual: Links, start: object) -> set[object]:
    found, left = {start}, [start]
    while left:
        node = left.pop()
        for other, arc in residual[node].items():
            if other not in found and arc["capacity"] > arc["flow"]:
                found.add(other)
                left.append(other)
    return found


@dataclass(frozen=True, slots=True)
class Widening:
    """What one more unit of an edge costs, and how many there may be."""

    price: int
    most: int


class Program:
    """A linear program of a flow: a column for each way along an edge, and for each terminal."""

    def __init__(self, graph: Graph, ends: Ends) -> None:
        self._graph, self._ends = graph, ends
        self._row = {vertex: row for row, vertex in enumerate(graph.vertices)}
        self._columns: list[Any] = []
        self._bounds: list[tuple[int, int | None]] = []
        self._cost: list[int] = []

    def _add(
        self, leaves: Name | None, enters: Name | None, bounds: tuple[int, int], cost: int, value: int = 0
    ) -> None:
        column = np.zeros(len(self._row) + 1)
        if leaves is not None:
            column[self._row[leaves]] -= 1
        if enters is not None:
            column[self._row[enters]] += 1
        column[-1] = value
        least, most = bounds
        self._columns.append(column)
        self._bounds.append((least, None if most >= UNLIMITED else most))
        self._cost.append(cost)

    def least_cost(
        self,
        value: int | None,
        *,
        priced: bool = True,
        widened: Mapping[Name, Widening] | None = None,
        lower: Mapping[Name, int] | None = None,
        least_of: Mapping[Name, int] | None = None,
    ) -> float | None:
        """What a flow of the value costs at least, -inf if there is no least; None: there is no such flow.

        ``value`` None: any. ``priced``: edges cost what they do. ``lower``: what edges carry at least; ``least_of``:
        what sources supply and sinks take at least."""
        widened, lower, least_of = widened or {}, lower or {}, least_of or {}
        for name, edge in self._graph.edges.items():
            cost, ways = edge.cost if priced else 0, [(edge.tail, edge.head)]
            ways += [(edge.head, edge.tail)] * edge.undirected
            for tail, head in ways:
                self._add(tail, head, (lower.get(name, 0), edge.capacity), cost)
                if name in widened and not edge.closed:
                    self._add(tail, head, (0, widened[name].most), widened[name].price)
        for vertex, most in self._ends.supply.items():
            self._add(None, vertex, (least_of.get(vertex, 0), most), 0, value=1)
        for vertex, most in self._ends.demand.items():
            self._add(vertex, None, (least_of.get(vertex, 0), most), 0)
        if any(most is not None and least > most for least, most in self._bounds):
            return None
        balance, sums = np.array(self._columns).T, np.zeros(len(self._row) + 1)
        sums[-1] = value or 0
        rows = slice(None) if value is not None else slice(-1)
        found = linprog(self._cost, A_eq=balance[rows], b_eq=sums[rows], bounds=self._bounds, method="highs")
        if found.status == INFEASIBLE:
            return None
        if found.status == UNBOUNDED:
            return float("-inf")
        assert found.status == 0, found.message
        return float(found.fun)
