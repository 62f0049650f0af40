"""Which side of a matching a vertex is on, by its edges alone or by what the caller says."""

from typing import Any

import numpy as np
import pytest

from gpu_engine.errors import InvalidNetwork, NotBipartite
from gpu_engine.networks.bipartite import edge_ends, one_each, oriented, refuse_narrow
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.types import INFINITE


def network(*edges: tuple[int, int], capacity: list[int] | None = None, **more: Any) -> Network:
    """Six vertices a .. f."""
    tail, head = (np.array(column, np.int32) for column in zip(*edges, strict=True))
    own = np.array(capacity or [1] * len(edges), np.int64)
    return Network(EdgeList(6, tail, head, own, vertex_labels=list("abcdef"), **more))


def left(*vertices: int) -> np.ndarray:
    return np.array(vertices, np.int32)


def test_tails_are_left_and_heads_are_right() -> None:
    """Vertex 5 has no edge, and closed edges count."""
    drawn = network((0, 3), (1, 3), (2, 4), capacity=[1, 1, 0])
    assert oriented(drawn) is drawn
    terminals = one_each(drawn)
    assert (terminals.sources.tolist(), terminals.sinks.tolist()) == ([0, 1, 2], [3, 4])
    assert terminals.supply.tolist() == [1, 1, 1]


def test_naming_the_left_side_of_edges_drawn_so_changes_nothing() -> None:
    drawn = network((0, 3), (1, 3), (2, 4))
    assert oriented(drawn, left(2, 1, 0, 5)) is drawn


@pytest.mark.parametrize("undirected", [True, False, [True, False, True]])
def test_edges_are_turned_to_the_named_side(undirected: Any) -> None:
    both = undirected if isinstance(undirected, bool) else np.array(undirected)
    drawn = network((0, 3), (3, 1), (4, 2), undirected=both, capacity=[1, 0, INFINITE], edge_ids=list("xyz"))
    turned = oriented(drawn, left(0, 1, 2))
    tails, heads = edge_ends(turned)
    assert (tails.tolist(), heads.tolist()) == ([0, 1, 2], [3, 3, 4])
    assert not turned.undirected.any()
    assert turned.capacity.tolist() == [1, 0, INFINITE]
    assert list(turned.edge_ids.of(np.arange(3))) == ["x", "y", "z"]
    assert list(turned.vertex_labels.of(np.arange(2))) == ["a", "b"]
    assert drawn.edge_tail(np.arange(3)).tolist() == [0, 3, 4]


@pytest.mark.parametrize(
    ("edges", "undirected", "named", "rows"),
    [
        ([(0, 3), (3, 4)], False, None, ["d"]),
        ([(0, 3), (4, 4)], False, None, ["e"]),
        ([(0, 3), (1, 4)], True, None, ["a", "b", "d", "e"]),
        ([(0, 3), (1, 4)], [False, True], None, ["b", "e"]),
        ([(0, 3), (1, 4)], False, left(0), ["b", "e"]),
        ([(0, 3), (0, 1)], True, left(0, 1), ["a", "b"]),
        ([(0, 3), (0, 0)], False, left(0), ["a"]),
    ],
)
def test_what_is_on_both_sides_is_named(edges: Any, undirected: Any, named: Any, rows: list[str]) -> None:
    both = undirected if isinstance(undirected, bool) else np.array(undirected)
    with pytest.raises(NotBipartite) as refused:
        oriented(network(*edges, undirected=both), named)
    assert refused.value.where.vertices == rows


def test_an_open_edge_carries_one_at_least() -> None:
    drawn = network(
        (0, 3), (1, 3), (2, 4), (2, 3), capacity=[5, 0, 10, 9], decimals=1, edge_ids=np.array([7, 8, 9, 10])
    )
    with pytest.raises(InvalidNetwork) as refused:
        refuse_narrow(drawn)
    assert refused.value.where.edges == [7, 10]
    drawn.set_capacity(np.array([0, 3]), np.array([0, INFINITE]))
    refuse_narrow(drawn)
    assert one_each(drawn).demand.tolist() == [10, 10]
