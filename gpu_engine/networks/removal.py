"""Which vertices a batch deletes, and the edges that go with them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np

from gpu_engine.errors import ROWS_SHOWN, EngineError, InvalidNetwork, shown
from gpu_engine.networks.network import Network
from gpu_engine.networks.refused import Ids, unknown_vertices
from gpu_engine.networks.updates import vertices_named
from gpu_engine.networks.validate import twice
from gpu_engine.types import EdgeArray, VertexArray


class Deletion(Protocol):
    """An operation, which deletes ``vertices`` if it deletes any."""

    @property
    def op(self) -> Literal["insert", "delete"]: ...
    @property
    def vertices(self) -> Ids | None: ...


@dataclass(frozen=True, slots=True)
class Removal:
    """The vertices that the operations of a batch delete."""

    vertices: VertexArray
    """Distinct and rising."""
    missing: int
    """How many of the names belong to no vertex."""

    @classmethod
    def of(cls, network: Network, batch: Sequence[Deletion], on_missing: Literal["error", "skip"]) -> "Removal":
        """Raises `UnknownVertex` or `InvalidNetwork`, with at most ten vertices. O(k log k)."""
        found, missing, place = [np.empty(0, np.int64)], 0, 0
        try:
            for place in range(len(batch)):
                names = batch[place].vertices
                if batch[place].op == "delete" and names is not None:
                    rows = _rows(network, names, on_missing)
                    missing += int((rows < 0).sum())
                    found.append(rows[rows >= 0])
        except EngineError as error:
            if len(batch) > 1:
                error.where = replace(error.where, operation=place, field=f"/batch/{place}{error.where.field}")
            raise
        return cls(np.unique(np.concatenate(found)).astype(np.int32), missing)

    def edges(self, network: Network) -> EdgeArray:
        """Rising rows of the edges that one of the vertices is an end of. O(n + m)."""
        if not len(self.vertices):
            return np.empty(0, np.int64)
        goes = np.zeros(network.n_vertices, np.bool_)
        goes[self.vertices] = True
        rows = network.live(np.arange(network.n_edges))
        return rows[goes[network.edge_tail(rows)] | goes[network.edge_head(rows)]]


def _rows(network: Network, names: Ids, on_missing: Literal["error", "skip"]) -> EdgeArray:
    """int64[k]: the vertex of each name, -1 where there is none."""
    rows = vertices_named(network, names)
    missing = np.flatnonzero(rows < 0)
    if len(missing) and on_missing == "error":
        first = missing[:ROWS_SHOWN].tolist()
        given = shown([names[i] for i in first])
        raise unknown_vertices(network, given, first, count=len(missing), field="/vertices")
    at = twice(rows)
    if at:
        labels = network.vertex_labels.of(np.unique(rows[at])[:ROWS_SHOWN])
        detail = f"vertex {labels[0]!r} is named twice in one operation"
        raise InvalidNetwork(detail, at, vertices=labels, field="/vertices")
    return rows
