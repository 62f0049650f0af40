"""Max flows and minimum cuts of NetworkX graphs, found by the service and answered as NetworkX answers them."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, TypeAlias

import headrace
import networkx as nx
from headrace import Client, Exact, FlowField, Graph, MaxFlowResult, SolveOptions
from networkx.algorithms.flow import build_flow_dict, build_residual_network

Node: TypeAlias = Hashable
Capacity: TypeAlias = str | Callable[[Any, Any, Any], Any]
DECIMALS = 9


class NetworkXFlow:
    """`flow_func` has the signature that `nx.maximum_flow` and its kin take, and the others have theirs.

    A graph is loaded once, and again when it is another one: many pairs of one graph are questions to one resident
    graph. A capacity that is no whole number is rounded down to nine decimals.
    """

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name
        self._loaded: tuple[object, Graph] | None = None

    def flow_func(
        self,
        G: Any,
        s: Node,
        t: Node,
        capacity: Capacity = "capacity",
        residual: Any = None,
        value_only: bool = False,
        cutoff: float | None = None,
        **tuning: object,
    ) -> Any:
        """The residual network of a maximum flow; with `cutoff` of one that is as large or a maximum.

        `tuning` is what steers single algorithms of NetworkX and changes no value.
        """
        network = build_residual_network(G, capacity) if residual is None else residual
        G, capacity = _by_attribute(G, capacity)
        answer = self._solved(G, s, t, capacity, cutoff, "flow")
        assert answer.flow is not None
        as_number = float if _has_floats(G, capacity) else _same
        net: dict[tuple[Node, Node], Exact] = {}
        edges = list(G.edges)
        for row, amount in zip(answer.flow.edges, answer.flow.amount, strict=True):
            tail, head = edges[int(row)]
            net[tail, head] = net.get((tail, head), 0) + amount
            net[head, tail] = net.get((head, tail), 0) - amount
        for tail, head, data in network.edges(data=True):
            data["flow"] = as_number(net.get((tail, head), 0))
        network.graph.update(flow_value=as_number(answer.value), algorithm="headrace")
        return network

    def maximum_flow(
        self, flowG: Any, _s: Node, _t: Node, capacity: Capacity = "capacity", flow_func: object = None, **options: Any
    ) -> tuple[Any, dict[Node, dict[Node, Any]]]:
        network = self.flow_func(flowG, _s, _t, capacity, **options)
        return network.graph["flow_value"], build_flow_dict(flowG, network)

    def minimum_cut(
        self, flowG: Any, _s: Node, _t: Node, capacity: Capacity = "capacity", flow_func: object = None, **options: Any
    ) -> tuple[Any, tuple[set[Node], set[Node]]]:
        """The service's own cut, which is another than NetworkX's where several are minimum."""
        flowG, capacity = _by_attribute(flowG, capacity)
        answer = self._solved(flowG, _s, _t, capacity, None, "cut")
        assert answer.cut is not None
        nodes = {_name(node, flowG): node for node in flowG}
        source_side, sink_side = (
            {nodes[name] for name in side} for side in (answer.cut.source_side, answer.cut.sink_side)
        )
        as_number = float if _has_floats(flowG, capacity) else _same
        return as_number(answer.value), (source_side, sink_side)

    def maximum_flow_value(self, flowG: Any, _s: Node, _t: Node, *given: Any, **options: Any) -> Any:
        return self.maximum_flow(flowG, _s, _t, *given, **options)[0]

    def minimum_cut_value(self, flowG: Any, _s: Node, _t: Node, *given: Any, **options: Any) -> Any:
        return self.minimum_cut(flowG, _s, _t, *given, **options)[0]

    def _solved(self, G: Any, s: Node, t: Node, capacity: str, cutoff: float | None, field: FlowField) -> MaxFlowResult:
        """A cutoff is a cap on what the source supplies."""
        options: SolveOptions = {"fields": [field]}
        if cutoff is not None:
            options["supply"] = [cutoff]
        with _their_errors():
            if G.is_multigraph():
                raise nx.NetworkXError("the residual network of NetworkX has one edge between two nodes")
            graph = self._resident(G, capacity)
            return graph.max_flow(_name(s, G), _name(t, G), **options)

    def _resident(self, G: Any, capacity: str) -> Graph:
        content = (G.is_directed(), tuple(G), tuple(G.edges(data=capacity)))
        if self._loaded is None or self._loaded[0] != content:
            rounded: dict[str, Any] = {}
            if any(amount is not None and amount != int(amount) for _, _, amount in G.edges(data=capacity)):
                rounded = {"decimals": DECIMALS, "rounding": "down"}
            self._loaded = content, self._client.put_graph(self._name, G, capacity=capacity, **rounded)
        return self._loaded[1]


def _by_attribute(G: Any, capacity: Capacity) -> tuple[Any, str]:
    """A copy with what a function says of each edge as its attribute: 0 where it has None, which hides the edge."""
    if isinstance(capacity, str):
        return G, capacity
    copy = G.copy()
    for tail, head, data in copy.edges(data=True):
        data["capacity"] = capacity(tail, head, data) or 0
    return copy, "capacity"


def _name(node: Node, G: Any) -> int | str:
    """What the client calls a node: integers and strings by themselves, anything else, and a mixture, by its str()."""
    return node if isinstance(node, int) and all(type(other) is int for other in G) else str(node)


def _has_floats(G: Any, capacity: str) -> bool:
    return any(isinstance(amount, float) for _, _, amount in G.edges(data=capacity))


def _same(amount: Exact) -> int | Decimal:
    return amount


@contextmanager
def _their_errors() -> Iterator[None]:
    """Refusals become the exceptions that NetworkX raises."""
    try:
        yield
    except headrace.Unbounded as error:
        raise nx.NetworkXUnbounded(str(error)) from error
    except (headrace.UnknownVertex, headrace.SourceIsSink, headrace.InvalidInput) as error:
        raise nx.NetworkXError(str(error)) from error
