"""Which vertices and edges of a network are there: those that were deleted keep their numbers."""

import numpy as np

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
        self.deleted: BoolArray = np.empty(0, np.bool_)
        """bool[m] once an edge has been deleted: which edges are not there any more. Their capacities are 0."""
        self.deleted_vertices: BoolArray = np.empty(0, np.bool_)
        """bool[n] once a vertex has been deleted: which vertices are not there any more. They have no edges."""

    @property
    def n_live_edges(self) -> int:
        """Edges that are there: not those that were deleted."""
        return self.n_edges - int(np.count_nonzero(self.deleted))

    @property
    def n_live_vertices(self) -> int:
        """Vertices that are there: not those that were deleted."""
        return self.n_vertices - int(np.count_nonzero(self.deleted_vertices))

    @property
    def there(self) -> BoolArray:
        """bool[n]: vertices that are there. O(n)."""
        return ~self.deleted_vertices if len(self.deleted_vertices) else np.ones(self.n_vertices, np.bool_)

    def are_gone(self, vertices: VertexArray | EdgeArray) -> BoolArray:
        """bool[k]: which of these vertices were deleted."""
        return self.deleted_vertices[vertices] if len(self.deleted_vertices) else np.zeros(len(vertices), np.bool_)

    def live(self, rows: EdgeArray) -> EdgeArray:
        """Those of these edge rows that were not deleted."""
        return rows[~self.deleted[rows]] if len(self.deleted) else rows

    def mark(self, deleted: EdgeArray, revived: EdgeArray) -> None:
        """Note that edges are not there any more, or are there again; forks keep what they know. O(m)."""
        if len(deleted) or len(revived):
            marks = self.deleted.copy() if len(self.deleted) else np.zeros(self.n_edges, np.bool_)
            marks[deleted], marks[revived] = True, False
            self.deleted = marks

    def mark_vertices(self, deleted: VertexArray, revived: VertexArray) -> None:
        """The same of vertices. Without one that was its own default terminal the network has none. O(n)."""
        if len(deleted) or len(revived):
            marks = ~self.there
            marks[deleted], marks[revived] = True, False
            self.deleted_vertices = marks
            self.source, self.sink = (None if end is None or marks[end] else end for end in self.loaded_ends)
