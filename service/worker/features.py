"""A flow as a map: GeoJSON with a line for each edge that carries some of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from gpu_engine.engine import Cut
from gpu_engine.formats import Part
from gpu_engine.formats.geojson import write_floats, write_lines
from gpu_engine.networks.coordinates import WGS84, Coordinates, Floats
from gpu_engine.networks.network import Network
from gpu_engine.types import EdgeArray, UnitArray, VertexArray
from service.errors import ServiceError
from service.protocol import MaxFlowArgs
from service.worker.columns import STEP, Column, Rows, listed, where

LINES: Final = 1 << 11
"""So many lines are written at a time: some hundreds of kilobytes, unless names are long."""


@dataclass(frozen=True, slots=True)
class FloatColumn(Column):
    """Finite floats."""

    floats: Floats
    table: str = ""
    kind = "float64"

    def texts(self) -> Iterator[bytes]:
        return (write_floats(self.floats[at : at + STEP]) for at in range(0, len(self.floats), STEP))

    def parts(self) -> Iterator[Part]:
        return (self.floats[at : at + STEP] for at in range(0, len(self.floats), STEP))

    def count(self) -> int:
        return len(self.floats)


@dataclass(frozen=True, slots=True)
class LineColumn(Column):
    """A feature for each row, which has no form as an array."""

    network: Network
    coordinates: Coordinates
    flow: UnitArray
    cut: EdgeArray
    """The rows of the edges of the cut, rising."""
    rows: Rows
    table: str = ""
    kind = "text"

    def texts(self) -> Iterator[bytes]:
        return (self._lines(some[at : at + LINES]) for some in self.rows() for at in range(0, len(some), LINES))

    def parts(self) -> Iterator[Part]:
        raise NotImplementedError

    def count(self) -> int:
        return sum(len(some) for some in self.rows())

    def _lines(self, rows: EdgeArray) -> bytes:
        network, found = self.network, np.searchsorted(self.cut, rows)
        in_cut = np.append(self.cut, -1)[found] == rows
        tails, heads = map(self._ends, network.edge_ends(rows))
        ids = network.edge_ids.take(rows)
        return write_lines(ids, tails, heads, self.flow[rows], network.capacity[rows], in_cut, network.decimals)

    def _ends(self, vertices: VertexArray) -> tuple[Floats, Floats]:
        return self.coordinates.x[vertices], self.coordinates.y[vertices]


def for_a_map(network: Network, args: MaxFlowArgs) -> MaxFlowArgs:
    """The question with what a map shows. Raises not_acceptable for a network of which there is none."""
    if network.coordinates is None:
        detail = "the vertices of this graph have no coordinates: load it with x and y for GeoJSON"
        raise ServiceError("not_acceptable", detail)
    if not network.coordinates.is_wgs84:
        crs = network.coordinates.crs
        detail = f"GeoJSON has coordinates of {WGS84} alone (RFC 7946), and those of this graph are of {crs}"
        raise ServiceError("not_acceptable", detail)
    return args.model_copy(update={"fields": frozenset({"value", "cut", "flow"})})


def lines(network: Network, cut: Cut, flow: UnitArray, *, zeros: bool) -> Column:
    """The features of a flow: its edges, or with ``zeros`` all edges, as `answers.flow_by_edge` lists them."""
    assert network.coordinates is not None
    rows = listed(network.live(np.arange(network.n_edges))) if zeros else where(flow, lambda some: some)
    return LineColumn(network, network.coordinates, flow, cut.edges, rows)
