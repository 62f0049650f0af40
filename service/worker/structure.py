"""Changes of structure of a resident graph: what a batch asks for, and what is said of it."""

from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np

from gpu_engine.networks.restructure import Limits, resolve
from gpu_engine.networks.structure import Structure
from gpu_engine.text.texts import Texts
from gpu_engine.types import VertexArray
from gpu_engine.vertices.table import VertexChange
from service.packed import unpack
from service.protocol import EdgesArgs, EdgesOperation
from service.store.applied import DeletedInfo, EndsInfo, InsertedInfo, SizeInfo
from service.worker.changes import Changes
from service.worker.graph import Graph


@dataclass(frozen=True, slots=True)
class Columns:
    """An `EdgesOperation` with columns in place of lists."""

    op: Literal["insert", "delete"]
    vertices: Any = None
    count: int | None = None
    edge_ids: Any = None
    edges: Any = None
    tail: Any = None
    head: Any = None
    capacity: Any = None
    vertex_capacity: Any = None
    cost: Any = None
    lower: Any = None
    undirected: Any = None
    x: Any = None
    y: Any = None

    @classmethod
    def of(cls, operation: EdgesOperation) -> "Columns":
        """The operation as the engine reads it."""
        if operation.packed is None:
            return cls(**operation.model_dump(exclude={"packed"}))
        columns = cast(dict[str, Any], unpack(operation.packed))
        if operation.undirected is not None:
            columns["undirected"] = operation.undirected
        columns |= {"x": operation.x, "y": operation.y}
        for name in ("capacity", "vertex_capacity", "cost", "lower"):
            assert isinstance(columns.get(name), Texts | None)
        return cls(op=operation.op, **columns)


def structure_change(graph: Graph, args: EdgesArgs, limits: Limits) -> Changes:
    """What a batch inserts and deletes. Raises as `gpu_engine.networks.restructure.resolve`; nothing changes yet."""
    batch = [Columns.of(operation) for operation in args.batch]
    options: dict[str, Any] = {"on_missing": args.on_missing, "rounding": args.rounding, "lowers": graph.lowers}
    found = resolve(graph.table, graph.costs, batch, limits, **options)
    gone = _limited(graph, found.structure.deleted_vertices)
    limited = np.concatenate([gone, found.limited])  # rising, as inserted vertices are the last ones
    capacity = np.concatenate([np.zeros(len(gone), np.int64), found.vertex_capacity])
    vertices = VertexChange(limited, capacity) if len(limited) else None
    return Changes(found.change, None, found.structure, vertices)


def _limited(graph: Graph, vertices: VertexArray) -> VertexArray:
    """Those of the vertices that have a capacity: a deleted one lets nothing pass, as a deleted edge."""
    return vertices[:0] if graph.vertices is None else vertices[graph.vertices.has(vertices)]


def inserted(graph: Graph, structure: Structure) -> InsertedInfo:
    """What the answer says of the vertices and edges that are about to be inserted."""
    network = graph.network
    numbered_vertices = structure.n_vertices and network.vertex_labels.column is None
    numbered_edges = structure.n_edges and network.edge_ids.column is None
    return InsertedInfo(
        vertices=structure.n_vertices,
        edges=structure.n_edges,
        first_vertex=network.n_vertices if numbered_vertices else None,
        first_edge=network.n_edges if numbered_edges else None,
    )


def deleted(structure: Structure) -> DeletedInfo:
    """What the answer says of the edges and vertices that are about to be deleted."""
    return DeletedInfo(edges=len(structure.deleted), vertices=len(structure.deleted_vertices))


def size(graph: Graph) -> SizeInfo:
    """How large the graph is, for the catalogue."""
    network = graph.network
    return SizeInfo(n_vertices=network.n_live_vertices, n_edges=network.n_live_edges, n_arcs=network.n_arcs)


def ends(graph: Graph, structure: Structure) -> EndsInfo | None:
    """The default terminals that the graph has after a change of structure; None: those of before."""
    if not len(structure.deleted_vertices) and not len(structure.revived_vertices):
        return None
    network, names = graph.network, graph.network.vertex_labels
    return EndsInfo(source=names.name(network.source), sink=names.name(network.sink))
