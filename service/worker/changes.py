"""What a PATCH would change, found and checked before anything changes."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import numpy as np

from gpu_engine.networks.costs import CostChange, costs_of
from gpu_engine.networks.lowers import LowerChange, lowers_of
from gpu_engine.networks.rounded import Rounded
from gpu_engine.networks.structure import Structure
from gpu_engine.networks.updates import Change
from gpu_engine.vertices.table import VertexChange, vertices_of
from service.packed import unpacked
from service.protocol import Kind, PatchArgs
from service.worker.graph import Graph

NO_ROWS: Final = np.empty(0, np.int64)


class Changes(NamedTuple):
    """What an update changes."""

    change: Change
    costs: CostChange | None = None
    structure: Structure | None = None
    vertices: VertexChange | None = None
    lower: LowerChange | None = None

    @property
    def n_rows(self) -> int:
        """How many edges and vertices change, are inserted or are deleted."""
        rows = self.change.rows
        for beside in (self.costs, self.lower):
            rows = rows if beside is None else np.union1d(rows, beside.rows)
        structure = self.structure or Structure()
        vertices = np.concatenate([structure.deleted_vertices, structure.revived_vertices])
        # Where vertices are inserted, those whose capacities change are counted among them.
        if self.vertices is not None and not structure.n_vertices:
            vertices = np.union1d(vertices, self.vertices.vertices)
        return len(rows) + len(vertices) + structure.n_vertices

    @property
    def rounded(self) -> Rounded:
        """What was rounded; a batch is of edges, of costs, of lower bounds or of vertices."""
        others = [other.rounded for other in (self.costs, self.vertices, self.lower) if other is not None]
        return sum(others, self.change.rounded)


def capacity_change(graph: Graph, args: PatchArgs) -> Changes:
    """What a batch of capacities changes. Raises as `CapacityTable.resolve`; nothing changes yet."""
    batch = [unpacked(operation) for operation in args.batch]
    return Changes(graph.table.resolve(batch, on_missing=args.on_missing, rounding=args.rounding))


def cost_change(graph: Graph, args: PatchArgs) -> Changes:
    """What a batch of costs changes. Raises as `CostTable.resolve`; nothing changes yet."""
    batch = [unpacked(operation) for operation in args.batch]
    costs = costs_of(graph.costs).resolve(graph.table, batch, on_missing=args.on_missing, rounding=args.rounding)
    return Changes(Change(NO_ROWS, NO_ROWS, NO_ROWS.astype(np.bool_), costs.skipped, costs.unchanged), costs)


def lower_change(graph: Graph, args: PatchArgs) -> Changes:
    """What a batch of lower bounds changes. Raises as `LowerTable.resolve`; nothing changes yet."""
    batch = [unpacked(operation) for operation in args.batch]
    table = lowers_of(graph.lowers, graph.network)
    found = table.resolve(graph.table, batch, on_missing=args.on_missing, rounding=args.rounding)
    nothing = Change(NO_ROWS, NO_ROWS, NO_ROWS.astype(np.bool_), found.skipped, found.unchanged)
    return Changes(nothing, lower=found)


def vertex_change(graph: Graph, args: PatchArgs) -> Changes:
    """What a batch of capacities of vertices changes. Raises as `VertexTable.resolve`; nothing changes yet."""
    batch = [unpacked(operation) for operation in args.batch]
    table = vertices_of(graph.vertices, graph.network)
    found = table.resolve(batch, on_missing=args.on_missing, rounding=args.rounding)
    nothing = Change(NO_ROWS, NO_ROWS, NO_ROWS.astype(np.bool_), found.skipped, found.unchanged)
    return Changes(nothing, vertices=found)


CHANGE_OF: Final[Mapping[Kind, Callable[[Graph, PatchArgs], Changes]]] = {
    Kind.PATCH: capacity_change,
    Kind.PATCH_COSTS: cost_change,
    Kind.PATCH_LOWER: lower_change,
    Kind.PATCH_VERTICES: vertex_change,
}
"""The function that finds what a PATCH changes, by the kind of the PATCH."""
