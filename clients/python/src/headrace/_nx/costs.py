"""Cheapest flows: the demands of nodes met, or as much as can flow between two of them."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import networkx as nx

from headrace import _errors as errors
from headrace._calls import Terminals
from headrace._floats import exactly, has_floats
from headrace._min_cost import MinCostFlowResult, MinCostOptions
from headrace._nx.convert import (
    NetworkXGraph,
    Node,
    ask,
    attribute_of,
    content_of,
    edges_of,
    places_of,
)
from headrace._nx.errors import their_errors
from headrace._nx.flows import FlowDict, flow_dict
from headrace._results import Vertex

Answer: TypeAlias = tuple[Any, FlowDict]


class Costs:
    """A graph with costs. It has two vertices more, the terminals where no node demands anything."""

    def __init__(self, given: NetworkXGraph, capacity: str, weight: str, demands: list[Any], infinite: type[Exception]):
        """`infinite` is raised for a weight without end."""
        self._graph = G = given.graph
        self._edges = edges_of(G)
        self.places = places_of(G)
        amounts, costs = attribute_of(G, capacity, math.inf), attribute_of(G, weight, 0)
        self._refuse(amounts, costs, infinite)
        self._floats, self._float_costs = has_floats([*amounts, *demands]), has_floats(costs)
        tail, head = ([self.places[edge[end]] for edge in self._edges] for end in (0, 1))
        with self._told():
            self._content = content_of(
                len(self.places) + 2, tail, head, amounts, undirected=not G.is_directed(), cost=costs, beside=demands
            )

    def cheapest(self, source: Terminals | None, sink: Terminals | None, options: MinCostOptions) -> MinCostFlowResult:
        with self._told():
            return ask(self._graph, self._content, lambda graph: graph.min_cost_flow(source, sink, **options))

    def cost(self, found: MinCostFlowResult) -> Any:
        return float(found.cost) if self._floats or self._float_costs else found.cost

    def flow(self, found: MinCostFlowResult) -> FlowDict:
        assert found.flow is not None
        return flow_dict(self._graph, self._edges, found.flow, float if self._floats else exactly)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Refusals in the words of NetworkX."""
        with their_errors():
            try:
                yield
            except errors.Unbounded as error:
                raise nx.NetworkXUnbounded(f"negative cycle with infinite capacity found: {error}") from error
            except errors.Infeasible as error:
                raise nx.NetworkXUnfeasible(f"no flow satisfies all node demands: {error}") from error

    def _refuse(self, amounts: list[Any], costs: list[Any], infinite: type[Exception]) -> None:
        """Say which edge is at fault, as NetworkX does."""
        for edge, amount, cost in zip(self._edges, amounts, costs, strict=True):
            if math.isinf(cost):
                raise infinite(f"edge {edge!r} has infinite weight")
            if amount < 0:
                raise nx.NetworkXUnfeasible(f"edge {edge!r} has negative capacity")


def network_simplex(
    G: NetworkXGraph, demand: str = "demand", capacity: str = "capacity", weight: str = "weight"
) -> Answer:
    return _balanced(G, demand, capacity, weight, nx.NetworkXError)


def capacity_scaling(
    G: NetworkXGraph, demand: str = "demand", capacity: str = "capacity", weight: str = "weight", heap: object = None
) -> Answer:
    """NetworkX's looks for cycles without limit that cost less than nothing before anything else."""
    return _balanced(G, demand, capacity, weight, nx.NetworkXUnfeasible, cycles_first=True)


def min_cost_flow(
    G: NetworkXGraph, demand: str = "demand", capacity: str = "capacity", weight: str = "weight"
) -> FlowDict:
    return network_simplex(G, demand, capacity, weight)[1]


def min_cost_flow_cost(
    G: NetworkXGraph, demand: str = "demand", capacity: str = "capacity", weight: str = "weight"
) -> Any:
    return network_simplex(G, demand, capacity, weight)[0]


def max_flow_min_cost(
    G: NetworkXGraph, s: Node, t: Node, capacity: str = "capacity", weight: str = "weight"
) -> FlowDict:
    for node in (s, t):
        if node not in G.graph:
            raise nx.NetworkXError(f"node {node!r} not in graph")
    costs = Costs(G, capacity, weight, [], nx.NetworkXError)
    return costs.flow(costs.cheapest(costs.places[s], costs.places[t], {"fields": ["flow"]}))


def _balanced(
    given: NetworkXGraph,
    demand: str,
    capacity: str,
    weight: str,
    infinite: type[Exception],
    *,
    cycles_first: bool = False,
) -> Answer:
    """What a node demands is a cap on what it gets; all caps are met when so much flows as all of them together."""
    G = given.graph
    if not G.is_directed():
        raise nx.NetworkXNotImplemented("not implemented for undirected type")
    if not len(G):
        raise nx.NetworkXError("graph has no nodes")
    demands = [data.get(demand, 0) for _, data in G.nodes(data=True)]
    for node, amount in zip(G, demands, strict=True):
        if math.isinf(amount):
            raise infinite(f"node {node!r} has infinite demand")
    costs, n = Costs(given, capacity, weight, demands, infinite), len(G)
    if cycles_first:
        costs.cheapest(n, n + 1, {"value": 0})
    if sum(map(exactly, demands)):
        raise nx.NetworkXUnfeasible("total node demand is not zero")
    supply: dict[Vertex, Any] = {at: -amount for at, amount in enumerate(demands) if amount < 0} or {n: 0}
    needed: dict[Vertex, Any] = {at: amount for at, amount in enumerate(demands) if amount > 0} or {n + 1: 0}
    found = costs.cheapest(
        None,
        None,
        {
            "value": sum(map(exactly, supply.values())),
            "supply": supply,
            "demand": needed,
            "rounding": "nearest",
            "fields": ["flow"],
        },
    )
    return costs.cost(found), costs.flow(found)
