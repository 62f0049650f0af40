"""Which vertices and edges of a network are there: those that were deleted keep their numbers."""

import numpy as np

from gpu_engine.networks.marks import Marks
from gpu_engine.types import BoolArray, EdgeArray, VertexArray


class Presence:
    """What is there of a network, and its default terminals, which may be deleted as any vertex.

    ``n_vertices`` and ``n_edges`` count what was deleted too.
    """

    def __init__(self, n_vertices: int, n_edges: int, source: int | None, sink: int | None) -> None:
        self.n_vertices = n_vertices
        self.n_edges = n_edges
        self.source, self.sink = self.loaded_ends = source, sink
        """Its default terminals; of `loaded_ends`, which it was made with, those that are there."""
        self.edge_marks = Marks(n_edges)
        """The capacities of edges that are gone are 0."""
        self.vertex_marks = Marks(n_vertices)
        """Vertices that are gone have no edges."""

    @property
    def deleted(self) -> BoolArray:
        """bool[m] once an edge has been deleted: which edges are not there any more."""
        return self.edge_marks.column

    @property
    def deleted_vertices(self) -> BoolArray:
        """bool[n] once a vertex has been deleted: which vertices are not there any more."""
        return self.vertex_marks.column

    @property
    def n_live_edges(self) -> int:
        """Edges that are there: not those that were deleted."""
        return self.n_edges - self.edge_marks.n_gone

    @property
    def n_live_vertices(self) -> int:
        """Vertices that are there: not those that were deleted."""
        return self.n_vertices - self.vertex_marks.n_gone

    @property
    def there(self) -> BoolArray:
        """bool[n]: vertices that are there. O(n)."""
        return ~self.deleted_vertices if len(self.deleted_vertices) else np.ones(self.n_vertices, np.bool_)

    def are_gone(self, vertices: VertexArray | EdgeArray) -> BoolArray:
        """bool[k]: which of these vertices were deleted."""
        return self.vertex_marks.of(vertices)

    def live(self, rows: EdgeArray) -> EdgeArray:
        """Those of these edge rows that were not deleted."""
        return rows[~self.deleted[rows]] if len(self.deleted) else rows

    def mark(self, deleted: EdgeArray, revived: EdgeArray) -> None:
        """Note that edges are not there any more, or are there again; forks keep what they know. O(m)."""
        self.edge_marks = self.edge_marks.changed(deleted, revived)

    def mark_vertices(self, deleted: VertexArray, revived: VertexArray) -> None:
        """The same of vertices. Without one that was its own default terminal the network has none. O(n)."""
        before, self.vertex_marks = self.vertex_marks, self.vertex_marks.changed(deleted, revived)
        if self.vertex_marks is not before:
            marks = self.deleted_vertices
            self.source, self.sink = (None if end is None or marks[end] else end for end in self.loaded_ends)
