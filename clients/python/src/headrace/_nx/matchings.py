"""Maximum matchings of bipartite graphs."""

from collections.abc import Iterable
from typing import Any

import networkx as nx
from networkx.algorithms import bipartite

from headrace._nx.convert import NetworkXGraph, Node, ask, content_of, places_of
from headrace._nx.errors import their_errors


def hopcroft_karp_matching(G: NetworkXGraph, top_nodes: Iterable[Node] | None = None) -> dict[Node, Node]:
    """The partner of each matched node. Raises `AmbiguousSolution` as NetworkX does."""
    graph: Any = G.graph
    places, nodes = places_of(graph), list(graph)
    left, _ = bipartite.sets(graph, top_nodes, backend="networkx")
    ends = [(u, v) if u in left else (v, u) for u, v in graph.edges()]
    wrong = next((end for end in ends if end[0] not in left or end[1] in left), None)
    if wrong is not None:
        raise nx.NetworkXError(f"the edge {wrong!r} does not lead from the top nodes to the others")
    tail, head = [places[u] for u, _ in ends], [places[v] for _, v in ends]
    with their_errors():
        content = content_of(len(nodes), tail, head, [1] * len(ends))
        found = ask(graph, content, lambda resident: resident.matching(fields=["matching"]))
    pairs = {nodes[int(u)]: nodes[int(v)] for u, v in found.pairs.items()}
    return pairs | {v: u for u, v in pairs.items()}


eppstein_matching = hopcroft_karp_matching
"""Each maximum matching is as good as any other."""
