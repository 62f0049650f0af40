"""Maximum flows and minimum cuts between two nodes."""

from collections.abc import Callable
from typing import Any, TypeAlias

import networkx as nx
import numpy as np

from headrace._amounts import Exact
from headrace._calls import FlowField
from headrace._floats import has_floats
from headrace._flows import Flow, MaxFlowResult
from headrace._nx.convert import (
    Capacity,
    NetworkXGraph,
    Node,
    ask,
    capacities_of,
    content_of,
    edges_of,
    places_of,
)
from headrace._nx.errors import their_errors

FlowDict: TypeAlias = dict[Node, dict[Node, Any]]
"""What flows from node to node; in a multigraph by key, as a dict."""


class Answer:
    """What the service says of one graph and two of its nodes."""

    def __init__(self, given: NetworkXGraph, s: Node, t: Node, capacity: Capacity, field: FlowField) -> None:
        self.graph = G = given.graph
        self.edges = edges_of(G)
        amounts = capacities_of(G, capacity)
        self._in_floats = has_floats(amounts)
        places = places_of(G)
        for node in (s, t):
            if node not in places:
                raise nx.NetworkXError(f"node {node!r} not in graph")
        if s == t:
            raise nx.NetworkXError("source and sink are the same node")
        tail, head = [places[edge[0]] for edge in self.edges], [places[edge[1]] for edge in self.edges]
        with their_errors():
            content = content_of(len(places), tail, head, amounts, undirected=not G.is_directed())
            self.found: MaxFlowResult = ask(
                G, content, lambda graph: graph.max_flow(places[s], places[t], fields=[field])
            )

    @property
    def value(self) -> Any:
        return self.number(self.found.value)

    def number(self, amount: Exact) -> Any:
        """A float where the graph has floats, as NetworkX answers."""
        return float(amount) if self._in_floats else amount


def maximum_flow(
    flowG: NetworkXGraph, _s: Node, _t: Node, capacity: Capacity = "capacity", flow_func: None = None, **_absent: None
) -> tuple[Any, FlowDict]:
    answer = Answer(flowG, _s, _t, capacity, "flow")
    assert answer.found.flow is not None
    return answer.value, flow_dict(answer.graph, answer.edges, answer.found.flow, answer.number)


def maximum_flow_value(
    flowG: NetworkXGraph, _s: Node, _t: Node, capacity: Capacity = "capacity", flow_func: None = None, **_absent: None
) -> Any:
    return Answer(flowG, _s, _t, capacity, "value").value


def minimum_cut(
    flowG: NetworkXGraph, _s: Node, _t: Node, capacity: Capacity = "capacity", flow_func: None = None, **_absent: None
) -> tuple[Any, tuple[set[Node], set[Node]]]:
    answer = Answer(flowG, _s, _t, capacity, "cut")
    assert answer.found.cut is not None
    nodes = list(answer.graph)
    source_side = {nodes[at] for at in np.asarray(answer.found.cut.source_side).tolist()}
    return answer.value, (source_side, set(nodes) - source_side)


def minimum_cut_value(
    flowG: NetworkXGraph, _s: Node, _t: Node, capacity: Capacity = "capacity", flow_func: None = None, **_absent: None
) -> Any:
    return Answer(flowG, _s, _t, capacity, "value").value


def flow_dict(G: Any, edges: list[tuple[Node, ...]], found: Flow, number: Callable[[Exact], Any]) -> FlowDict:
    """The flow as NetworkX nests it, with edges that carry nothing."""
    if G.is_multigraph():
        flow: FlowDict = {u: {v: dict.fromkeys(keys, 0) for v, keys in G.adj[u].items()} for u in G}
    else:
        flow = {u: dict.fromkeys(G.adj[u], 0) for u in G}
    for row, amount in zip(found.edges, found.amount, strict=True):
        tail, head, *key = edges[int(row)]
        if amount < 0:  # an undirected edge, from its head to its tail
            tail, head, amount = head, tail, -amount
        ways, last = (flow[tail][head], key[0]) if key else (flow[tail], head)
        ways[last] = number(amount)
    return flow
