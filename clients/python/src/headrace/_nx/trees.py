"""Minimum cuts of all pairs of nodes as a tree, and the least of them."""

import math
from typing import Any

import networkx as nx
import numpy as np

from headrace._amounts import Exact
from headrace._floats import has_floats
from headrace._kept import Content
from headrace._nx.convert import (
    Capacity,
    NetworkXGraph,
    Node,
    ask,
    attribute_of,
    capacities_of,
    content_of,
    edges_of,
    places_of,
)
from headrace._nx.errors import their_errors


class Undirected:
    """An undirected graph with one amount for each edge."""

    def __init__(self, given: NetworkXGraph, amounts: list[Any]) -> None:
        self.graph = given.graph
        if given.is_directed():
            raise nx.NetworkXNotImplemented("not implemented for directed type")
        self.nodes: list[Node] = list(self.graph)
        self.amounts = amounts
        self._in_floats = has_floats(self.amounts)

    @property
    def content(self) -> Content:
        places, edges = places_of(self.graph), edges_of(self.graph)
        tail, head = ([places[edge[end]] for edge in edges] for end in (0, 1))
        return content_of(len(places), tail, head, self.amounts, undirected=True)

    def number(self, amount: Exact) -> Any:
        """A float where the graph has floats, as NetworkX answers, and where there is no limit."""
        return float(amount) if self._in_floats or not math.isfinite(amount) else amount


def gomory_hu_tree(G: NetworkXGraph, capacity: Capacity = "capacity", flow_func: None = None) -> Any:
    """A tree of the nodes: without one of its edges it falls into the sides of a minimum cut, of the edge's weight."""
    given, tree = Undirected(G, capacities_of(G.graph, capacity)), nx.Graph()
    if not given.nodes:
        raise nx.NetworkXError("Empty Graph does not have a Gomory-Hu tree representation")
    tree.add_nodes_from(given.nodes)
    if len(given.nodes) > 1:
        with their_errors():
            found = ask(given.graph, given.content, lambda graph: graph.gomory_hu_tree())
        rows = ((given.nodes[int(u)], given.nodes[int(v)], given.number(value)) for u, v, value in found)
        tree.add_weighted_edges_from(rows)
    return tree


def stoer_wagner(G: NetworkXGraph, weight: str = "weight", heap: object = None) -> tuple[Any, tuple[list[Node], ...]]:
    """The value of the least cut of all, and the nodes on both sides of it."""
    given = Undirected(G, attribute_of(G.graph, weight, 1))
    if len(given.nodes) < 2:
        raise nx.NetworkXError("graph has less than two nodes.")
    if not nx.is_connected(given.graph, backend="networkx"):
        raise nx.NetworkXError("graph is not connected.")
    if any(amount < 0 for amount in given.amounts):
        raise nx.NetworkXError("graph has a negative-weighted edge.")
    with their_errors():
        found = ask(given.graph, given.content, lambda graph: graph.global_min_cut())
    side = {given.nodes[at] for at in np.asarray(found.source_side).tolist()}
    parts = [node for node in given.nodes if node in side], [node for node in given.nodes if node not in side]
    return given.number(found.value), parts
