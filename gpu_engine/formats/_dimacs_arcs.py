"""Edges as the arcs of a DIMACS problem, which knows fewer kinds of them."""

import io
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.types import INFINITE, EdgeArray, UnitArray

STEP: Final = 1 << 16
"""Arcs that are written at a time."""


class ArcRows(NamedTuple):
    """Some arcs, one row each; vertices count from 1."""

    tail: NDArray[np.int64]
    head: NDArray[np.int64]
    capacity: UnitArray
    edges: EdgeArray
    """The edge that each arc stands for."""


class Arcs:
    """An arc for each edge, in order, and behind them the way back of each undirected edge.

    Capacities are in units, 0 for closed edges, and one more than all together for unlimited ones.
    """

    def __init__(self, edges: EdgeList) -> None:
        self._edges = edges
        flags = np.broadcast_to(edges.undirected, edges.n_edges)
        self._backward = np.flatnonzero(flags)
        self.capacity = edges.effective
        self._unlimited = self.capacity == INFINITE
        finite = np.where(self._unlimited, 0, self.capacity)
        self._most = int(finite.sum()) + int(finite[flags].sum()) + 1

    @property
    def count(self) -> int:
        return self._edges.n_edges + len(self._backward)

    @property
    def comments(self) -> Iterator[str]:
        """What the arcs cannot say of the edges."""
        edges = self._edges
        if edges.decimals:
            yield f"c capacities are in units of 1e-{edges.decimals}"
        if self._unlimited.any():
            yield "c edges without limit have one more than all capacities together"
        if len(self._backward):
            yield "c undirected edges are two arcs: the second ones stand at the end"
        if edges.closed is not None:
            yield f"c {int(edges.closed.sum())} closed edges have capacity 0"
        if edges.vertex_labels is not None or edges.edge_ids is not None:
            yield "c vertices and arcs are numbered in order: their names are not here"

    def __iter__(self) -> Iterator[ArcRows]:
        """Some arcs at a time."""
        edges = self._edges
        for at in range(0, edges.n_edges, STEP):
            yield self._rows(np.arange(at, min(at + STEP, edges.n_edges)), edges.tail, edges.head)
        for at in range(0, len(self._backward), STEP):
            yield self._rows(self._backward[at : at + STEP], edges.head, edges.tail)

    def _rows(self, rows: EdgeArray, tail: NDArray[np.int32], head: NDArray[np.int32]) -> ArcRows:
        capacity = np.where(self._unlimited[rows], self._most, self.capacity[rows])
        return ArcRows(tail[rows].astype(np.int64) + 1, head[rows].astype(np.int64) + 1, capacity, rows)


def written_arcs(*columns: NDArray[np.int64]) -> bytes:
    """A line ``a ...`` for each row of these columns, of at least one row."""
    mark = pa.DictionaryArray.from_arrays(np.zeros(len(columns[0]), np.int8), ["a"])
    table = pa.table({str(place): column for place, column in enumerate((mark, *columns))})
    text = io.BytesIO()
    csv.write_csv(table, text, csv.WriteOptions(include_header=False, delimiter=" ", quoting_style="none"))
    return text.getvalue()
