"""Cheapest flows of NetworkX graphs, found by the service and answered as NetworkX answers them."""

import math
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import headrace
import networkx as nx
from headrace import Client, Graph, MinCostFlowResult, MinCostOptions, Vertex

Node: TypeAlias = Hashable
Answer: TypeAlias = tuple[Any, dict[Node, dict[Node, Any]]]
"""The cost, and what flows along each edge, by its ends and, in a multigraph, its key."""


class NetworkXMinCost:
    """`network_simplex`, `capacity_scaling` and `max_flow_min_cost`, with the signatures that they have in NetworkX.

    What a node demands is a cap on what it gets; all caps are met when so much flows as all of them together. Two
    vertices more are the terminals of a circulation, in which no node demands anything.
    """

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name

    def network_simplex(
        self, G: Any, demand: str = "demand", capacity: str = "capacity", weight: str = "weight"
    ) -> Answer:
        return self._balanced(G, demand, capacity, weight, nx.NetworkXError)

    def capacity_scaling(
        self, G: Any, demand: str = "demand", capacity: str = "capacity", weight: str = "weight", heap: object = None
    ) -> Answer:
        """NetworkX's looks for cycles without limit that cost less than nothing before anything else."""
        return self._balanced(G, demand, capacity, weight, nx.NetworkXUnfeasible, cycles_first=True)

    def max_flow_min_cost(
        self, G: Any, s: Node, t: Node, capacity: str = "capacity", weight: str = "weight"
    ) -> dict[Node, dict[Node, Any]]:
        places = {node: at for at, node in enumerate(G)}
        with _their_errors(G, nx.NetworkXError):
            graph = self._load(G, capacity, weight)
            return _by_ends(G, graph.min_cost_flow(places[s], places[t], fields=["flow"]))

    def _balanced(
        self, G: Any, demand: str, capacity: str, weight: str, infinite: type[Exception], cycles_first: bool = False
    ) -> Answer:
        """`infinite` is raised for a demand or a weight without end."""
        if not G.is_directed():
            raise nx.NetworkXNotImplemented("the edges of a graph that is not directed cannot cost less than nothing")
        if not len(G):
            raise nx.NetworkXError("graph has no nodes")
        demands = [data.get(demand, 0) for _, data in G.nodes(data=True)]
        for node, amount in zip(G, demands, strict=True):
            if math.isinf(amount):
                raise infinite(f"node {node!r} has infinite demand")
        with _their_errors(G, infinite):
            graph = self._load(G, capacity, weight)
            n = len(G)
            if cycles_first:
                graph.min_cost_flow(n, n + 1, value=0)
            if sum(demands):
                raise nx.NetworkXUnfeasible("total node demand is not zero")
            supply: dict[Vertex, Any] = {at: -amount for at, amount in enumerate(demands) if amount < 0} or {n: 0}
            needed: dict[Vertex, Any] = {at: amount for at, amount in enumerate(demands) if amount > 0} or {n + 1: 0}
            options: MinCostOptions = {
                "value": sum(supply.values()),
                "supply": supply,
                "demand": needed,
                "fields": ["flow"],
            }
            found = graph.min_cost_flow(**options)
        return found.cost, _by_ends(G, found)

    def _load(self, G: Any, capacity: str, weight: str) -> Graph:
        places = {node: at for at, node in enumerate(G)}
        return self._client.put_graph(
            self._name,
            n_vertices=len(G) + 2,
            tail=[places[edge[0]] for edge in G.edges],
            head=[places[edge[1]] for edge in G.edges],
            capacity=[amount for _, _, amount in G.edges(data=capacity, default=math.inf)],
            cost=[amount for _, _, amount in G.edges(data=weight, default=0)],
        )


def _by_ends(G: Any, found: MinCostFlowResult) -> dict[Node, dict[Node, Any]]:
    assert found.flow is not None
    carried = dict(zip(found.flow.edges, found.flow.flow, strict=True))
    flow: dict[Node, dict[Node, Any]] = {node: {} for node in G}
    for row, (tail, head, *key) in enumerate(G.edges):
        if key:
            flow[tail].setdefault(head, {})[key[0]] = carried.get(row, 0)
        else:
            flow[tail][head] = carried.get(row, 0)
    return flow


@contextmanager
def _their_errors(G: Any, infinite: type[Exception]) -> Iterator[None]:
    """Refusals become the exceptions that NetworkX raises, with its words where its tests want them."""
    try:
        yield
    except headrace.Unbounded as error:
        raise nx.NetworkXUnbounded(f"negative cycle with infinite capacity found: {error}") from error
    except headrace.Infeasible as error:
        raise nx.NetworkXUnfeasible(f"no flow satisfies all node demands: {error}") from error
    except headrace.InvalidBody as error:
        edges: list[tuple[Node, ...]] = list(G.edges)
        edge = edges[int(str(error.rows[0]))]
        if error.field == "/cost":
            raise infinite(f"edge {edge!r} has infinite weight") from error
        raise nx.NetworkXUnfeasible(f"edge {edge!r} has negative capacity") from error
