"""Networks whose edges lead from left vertices to right ones, and what a matching asks of them.

Sides are found from the topology alone, closed edges included: updates of capacities never move a vertex to the other
side, so the flow state of a matching stays the same and is repaired.
"""

from dataclasses import replace

import numpy as np

from gpu_engine.errors import InvalidNetwork, NotBipartite
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.text.counted import counted
from gpu_engine.types import BoolArray, EdgeArray, VertexArray


def edge_ends(network: Network) -> tuple[VertexArray, VertexArray]:
    """int32[m] each: tails and heads of all edges."""
    rows = np.arange(network.n_edges)
    return network.edge_ends(rows)


def _live_ends(network: Network) -> tuple[VertexArray, VertexArray, EdgeArray]:
    """Tails, heads and rows of the edges that were not deleted."""
    rows = network.live(np.arange(network.n_edges))
    return *network.edge_ends(rows), rows


def oriented(network: Network, left: VertexArray | None = None) -> Network:
    """The network with each edge drawn from left to right: itself if it is drawn so already, else a copy.

    Without ``left`` tails are left and heads are right, and an undirected edge makes each of its ends both. With it
    each edge has one end in ``left``, whichever way it is drawn. Raises `NotBipartite` naming vertices. O(n + m).
    """
    tails, heads, rows = _live_ends(network)
    undirected = network.is_undirected(rows)
    n = network.n_vertices
    if left is None:
        is_tail, is_head = _marked(n, tails, heads[undirected]), _marked(n, heads, tails[undirected])
        hint = "; undirected edges lead both ways unless `left` is named" if undirected.any() else ""
        _refuse(network, is_tail & is_head, "vertex is", "vertices are", f"both a tail and a head{hint}")
        return network
    is_left = _marked(n, left)
    within = is_left[tails] == is_left[heads]
    _refuse(network, _marked(n, tails[within], heads[within]), "vertex has", "vertices have", "an edge to its own side")
    if is_left[tails].all() and not undirected.any():
        return network
    tails, heads = edge_ends(network)
    turned = ~is_left[tails]
    edges = replace(
        network.edge_list(),
        tail=np.where(turned, heads, tails),
        head=np.where(turned, tails, heads),
        undirected=False,
        edge_ids=None,
        vertex_labels=None,
        coordinates=None,
    )
    copy = Network(edges)
    copy.edge_ids, copy.vertex_labels, copy.edge_marks = network.edge_ids, network.vertex_labels, network.edge_marks
    return copy


def one_each(network: Network) -> Terminals:
    """Each tail supplies one of the caller's units, each head demands one. The network has edges and is `oriented`.

    The same at all capacities. O(n + m).
    """
    n, one = network.n_vertices, unit(network)
    left, right = (np.flatnonzero(_marked(n, side)).astype(np.int32) for side in _live_ends(network)[:2])
    return Terminals.of(left, right, np.full(len(left), one), np.full(len(right), one))


def refuse_narrow(network: Network) -> None:
    """Raises `InvalidNetwork` for open edges that carry less than one of the caller's units, with their ids. O(m)."""
    narrow = np.flatnonzero((network.capacity > 0) & (network.capacity < unit(network)))
    if len(narrow):
        shown = network.edge_ids.of(narrow[:10])
        several = counted(len(narrow), "edge has", "edges have")
        raise InvalidNetwork(f"{several} a capacity below 1, and a matched edge carries 1", edges=shown)


def unit(network: Network) -> int:
    """One of the caller's units."""
    return int(10**network.decimals)


def _marked(n: int, *vertices: VertexArray) -> BoolArray:
    marks = np.zeros(n, np.bool_)
    for some in vertices:
        marks[some] = True
    return marks


def _refuse(network: Network, astray: BoolArray, one: str, many: str, what: str) -> None:
    wrong = np.flatnonzero(astray)
    if len(wrong):
        raise NotBipartite(f"{counted(len(wrong), one, many)} {what}", vertices=network.vertex_labels.of(wrong[:10]))
