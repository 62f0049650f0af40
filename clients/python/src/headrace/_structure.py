# Made by scripts/synchronous_client.py from _async_structure.py: change that one.
"""Changes of structure of one graph: edges and vertices come and go."""

from collections.abc import Sequence
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from headrace._amounts import Amounts
from headrace._calls import Ids
from headrace._handle import Handle
from headrace._structures import Floats, NewEdges, Restructuring, StructureOptions, StructureResult, restructure


class Structure(Handle):
    """What inserts and deletes. The flows that the service keeps solved are carried over, and repaired."""

    def insert_edges(
        self,
        tail: Ids,
        head: Ids,
        capacity: Amounts,
        *,
        edge_ids: Ids | None = None,
        cost: Amounts | None = None,
        lower: Amounts | None = None,
        undirected: bool | Sequence[bool] | NDArray[np.bool_] = False,
        timeout_s: float | None = None,
        **options: Unpack[StructureOptions],
    ) -> StructureResult:
        """Insert edges between vertices that are there. A graph whose edges have ids wants new ones in `edge_ids`;
        else they get the next numbers, `edges` of the result. `lower` is what they carry at least in a circulation.
        Raises `AlreadyExists`, `UnknownVertex`."""
        edges = NewEdges(
            tail=tail,
            head=head,
            capacity=capacity,
            edge_ids=edge_ids,
            cost=cost,
            lower=lower,
            undirected=undirected,
        )
        return self.restructure(edges=edges, timeout_s=timeout_s, **options)

    def insert_vertices(
        self,
        vertices: Ids | int,
        *,
        capacity: Amounts | None = None,
        x: Floats | None = None,
        y: Floats | None = None,
        timeout_s: float | None = None,
        **options: Unpack[StructureOptions],
    ) -> StructureResult:
        """Insert vertices by their names; where vertices are numbered, so many. With a `capacity`, one for all or one
        for each, no more than that passes them. With `x` and `y`, a number for each, if and only if the graph has
        coordinates. Raises `AlreadyExists`."""
        return self.restructure(vertices=vertices, vertex_capacity=capacity, x=x, y=y, timeout_s=timeout_s, **options)

    def delete_edges(
        self, edges: Ids, *, timeout_s: float | None = None, **options: Unpack[StructureOptions]
    ) -> StructureResult:
        """Delete edges by id. Their ids are never given again. Raises `UnknownEdge`."""
        return self.restructure(delete=edges, timeout_s=timeout_s, **options)

    def delete_vertices(
        self, vertices: Ids, *, timeout_s: float | None = None, **options: Unpack[StructureOptions]
    ) -> StructureResult:
        """Delete vertices by name, with all of their edges. Their names are never given again. Flows of which one is a
        terminal are dropped. Raises `UnknownVertex`."""
        return self.restructure(delete_vertices=vertices, timeout_s=timeout_s, **options)

    def restructure(
        self,
        *,
        vertices: Ids | int | None = None,
        vertex_capacity: Amounts | None = None,
        edges: NewEdges | None = None,
        delete: Ids | None = None,
        delete_vertices: Ids | None = None,
        x: Floats | None = None,
        y: Floats | None = None,
        timeout_s: float | None = None,
        **options: Unpack[StructureOptions],
    ) -> StructureResult:
        """Insert and delete vertices and edges as one version: all or nothing. `vertex_capacity` is that of the
        `vertices`, one for all or one for each; without it they are unlimited. `x` and `y` are where they lie. `delete`
        names edges."""
        change = Restructuring(vertices, vertex_capacity, edges, delete, delete_vertices, x, y)
        call = restructure(self.name, change, options, self.info.generation)
        return self._caller.command(call, timeout_s)
