"""Small vectorised pieces every family is made of."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpu_engine.errors import InvalidNetwork
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.types import INFINITE, MAX_VERTICES

Indices: TypeAlias = NDArray[np.int64]
"""Vertex indices while a family is being drawn; `edge_list` narrows them to int32."""

Columns: TypeAlias = tuple[Indices, Indices, Indices]
"""Tail, head and capacity of some edges."""


def require(condition: bool, message: str) -> None:
    """Refuse parameters no instance exists for."""
    if not condition:
        raise InvalidNetwork(message)


def draw_capacities(rng: np.random.Generator, low: int, high: int, size: int) -> Indices:
    """int64[size], uniform on ``low .. high``, both ends included."""
    return rng.integers(low, high, size=size, endpoint=True, dtype=np.int64)


def star_from(centre: int, leaves: Indices, capacity: int = INFINITE) -> Columns:
    """One edge from `centre` to each leaf."""
    return np.full_like(leaves, centre), leaves, np.full_like(leaves, capacity)


def star_to(leaves: Indices, centre: int, capacity: int = INFINITE) -> Columns:
    """One edge from each leaf to `centre`."""
    return leaves, np.full_like(leaves, centre), np.full_like(leaves, capacity)


def edge_list(
    n_vertices: int,
    directed: list[Columns],
    source: int,
    sink: int,
    undirected: Columns | None = None,
) -> EdgeList:
    """Concatenate groups of edges; the undirected ones, if any, come first."""
    require(n_vertices <= MAX_VERTICES, f"{n_vertices} vertices are more than {MAX_VERTICES}")
    groups = directed if undirected is None else [undirected, *directed]
    tail, head, capacity = (np.concatenate(column) for column in zip(*groups, strict=True))
    flags: bool | NDArray[np.bool_] = False
    if undirected is not None:
        flags = np.arange(len(tail)) < len(undirected[0])
    return EdgeList(
        n_vertices=n_vertices,
        tail=tail.astype(np.int32),
        head=head.astype(np.int32),
        capacity=capacity,
        undirected=flags,
        source=source,
        sink=sink,
    )
