"""A NetworkX graph as the service gets it: its nodes by their places, its edges in NetworkX's order."""

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias, TypeVar

import networkx as nx
import numpy as np
from _headrace_networkx import get_info

from headrace._columns import GraphColumns
from headrace._floats import places_of as places_of_amounts
from headrace._floats import rounded
from headrace._graph import Graph
from headrace._kept import Content, kept

T = TypeVar("T")
Node: TypeAlias = Hashable
Capacity: TypeAlias = str | Callable[[Any, Any, Any], Any]
"""The name of an edge attribute; or what the capacity of an edge is, by tail, head and all attributes."""
DEFAULTS: Any = get_info()["default_config"]


class NetworkXGraph:
    """What NetworkX passes to the functions here in place of a graph of its own.

    It holds no copy. The columns are read from the graph in each call, so that a capacity changed in place, as by
    ``G[u][v]["capacity"] = 3``, of which NetworkX's cache of converted graphs does not know, counts in the next one.
    """

    __networkx_backend__ = "headrace"

    def __init__(self, graph: Any) -> None:
        self.graph = graph

    def is_directed(self) -> bool:
        return bool(self.graph.is_directed())

    def is_multigraph(self) -> bool:
        return bool(self.graph.is_multigraph())


def convert_from_nx(graph: Any, **_preserved: object) -> NetworkXGraph:
    return graph if isinstance(graph, NetworkXGraph) else NetworkXGraph(graph)


def convert_to_nx(result: Any, **_named: object) -> Any:
    """Answers are NetworkX's own objects already."""
    return result.graph if isinstance(result, NetworkXGraph) else result


def places_of(G: Any) -> dict[Node, int]:
    """What the service calls each node."""
    return {node: at for at, node in enumerate(G)}


def edges_of(G: Any) -> list[tuple[Node, ...]]:
    """Tail, head and, in a multigraph, key of each edge: the edge in row i of every column."""
    return list(G.edges(keys=True)) if G.is_multigraph() else list(G.edges)


def attribute_of(G: Any, name: str, default: float) -> list[Any]:
    """One value for each edge, by row."""
    return [value for _, _, value in G.edges(data=name, default=default)]


def capacities_of(G: Any, capacity: Capacity) -> list[Any]:
    """One capacity for each edge, by row. One without the attribute has no limit; one for which a function has None is
    hidden, and lets nothing through."""
    if not callable(capacity):
        return attribute_of(G, capacity, math.inf)
    found = (capacity(tail, head, attributes) for tail, head, attributes in G.edges(data=True))
    return [0 if amount is None else amount for amount in found]


def content_of(
    n_vertices: int,
    tail: Sequence[int],
    head: Sequence[int],
    capacity: list[Any],
    *,
    undirected: bool = False,
    cost: list[Any] | None = None,
    beside: Sequence[Any] = (),
) -> Content:
    """The columns. `beside` are further amounts of the question, such as demands.

    Raises `InvalidInput` for floats so large that no place is left to round to.
    """
    amounts = rounded(capacity)
    columns: GraphColumns = {
        "n_vertices": n_vertices,
        "tail": np.array(tail, np.int64),
        "head": np.array(head, np.int64),
        "capacity": amounts,
        "undirected": undirected,
    }
    if cost is not None:
        columns["cost"] = rounded(cost)
    if places := places_of_amounts(beside):
        columns["decimals"] = max(places, places_of_amounts(amounts))
    return Content.of(columns)


def ask(owner: Any, content: Content, question: Callable[[Graph], T]) -> T:
    """The service's answer about a graph, of which as many are kept as ``nx.config.backends.headrace`` says."""
    config = getattr(
        nx.config.backends, "headrace", DEFAULTS
    )  # which does not stand there if NetworkX was told nothing
    return kept("nx").ask(owner, content, question, config["kept_graphs"])
