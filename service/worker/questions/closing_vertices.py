"""Closures of vertices: each is one of all its edges, and costs no more than what of the flow passes it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Self

import numpy as np

from gpu_engine.checks.throughput import throughput
from gpu_engine.engine import Cut
from gpu_engine.errors import ROWS_SHOWN, shown
from gpu_engine.footprint import Footprint, Room
from gpu_engine.networks.network import Network
from gpu_engine.networks.refused import unknown_vertices
from gpu_engine.networks.terminals import Terminals
from gpu_engine.networks.updates import vertices_named
from gpu_engine.types import UnitArray, VertexArray
from service.worker.questions.closing import Candidates, Indices, bounded

WORKING_BYTES: Final = 100
"""Bytes of memory for each edge of the network while the edges of the vertices are looked for."""

ROW_BYTES: Final = 40
"""Bytes of memory for each edge of each candidate."""


@dataclass(frozen=True, slots=True)
class VertexCandidates(Candidates):
    """Candidate i closes the edges of ``vertices[vertex_offsets[i] : vertex_offsets[i + 1]]``, distinct vertices."""

    vertex_offsets: Indices
    vertices: VertexArray

    @classmethod
    def of(cls, network: Network, offsets: Indices, vertices: VertexArray, room: Room) -> Self:
        """Asks ``room`` before anything is built. O(n + m log m), and in all edges of all candidates."""
        room(Footprint(WORKING_BYTES * network.n_edges + 24 * network.n_vertices))
        live = network.live(np.arange(network.n_edges))
        tail, head = network.edge_ends(live)
        other = head != tail  # a loop is an edge of its vertex once
        ends, rows = np.concatenate([tail, head[other]]), np.concatenate([live, live[other]])
        rows = rows[np.lexsort((rows, ends))]
        starts = np.zeros(network.n_vertices + 1, np.int64)
        np.cumsum(np.bincount(ends, minlength=network.n_vertices), out=starts[1:])
        lengths = starts[vertices + 1] - starts[vertices]
        room(Footprint(ROW_BYTES * int(lengths.sum())))
        until = np.cumsum(np.concatenate([[0], lengths]))
        places = np.repeat(starts[vertices] - until[:-1], lengths) + np.arange(until[-1])
        edges, ends_at = rows[places], until[offsets]
        if (np.diff(offsets) > 1).any():  # some candidates close several vertices, which may share edges
            distinct = [np.unique(edges[begin:end]) for begin, end in pairwise(ends_at.tolist())]
            ends_at = np.cumsum([0, *map(len, distinct)])
            edges = np.concatenate(distinct) if distinct else edges
        return cls(ends_at, edges, offsets, vertices)

    @classmethod
    def single_vertices(cls, network: Network, vertices: VertexArray, room: Room) -> Self:
        """Each of these vertices by itself."""
        return cls.of(network, np.arange(len(vertices) + 1), vertices, room)

    @classmethod
    def all_but(cls, network: Network, terminals: Terminals, room: Room) -> Self:
        """All vertices that were not deleted, without the terminals, since no flow is left without these."""
        chosen = network.there
        chosen[terminals.sources] = chosen[terminals.sinks] = False
        return cls.single_vertices(network, np.flatnonzero(chosen).astype(np.int32), room)

    @classmethod
    def of_cut(cls, network: Network, cut: Cut, terminals: Terminals, room: Room) -> Self:
        """The ends of the edges of a cut, and the vertices it pays for, without the terminals."""
        ends = *network.edge_ends(cut.edges), cut.vertices
        chosen = np.setdiff1d(np.concatenate(ends), np.concatenate([terminals.sources, terminals.sinks]))
        return cls.single_vertices(network, chosen.astype(np.int32), room)

    @classmethod
    def named_vertices(
        cls, network: Network, given: Sequence[int | str] | Sequence[Sequence[int | str]], room: Room
    ) -> Self:
        """Vertices one by one, or lists of them that are closed together. Raises `UnknownVertex`."""
        sets = [each if isinstance(each, list) else [each] for each in given]
        names: Any = [name for each in sets for name in each]
        found = vertices_named(network, names) if names else np.empty(0, np.int64)
        missing = np.flatnonzero(found < 0)
        if len(missing):
            first = missing[:ROWS_SHOWN].tolist()
            told = shown([names[i] for i in first])
            raise unknown_vertices(network, told, first, count=len(missing), field="/candidates")
        ends = np.cumsum([0, *map(len, sets)])
        distinct = [np.unique(found[begin:end]) for begin, end in pairwise(ends.tolist())]
        vertices = np.concatenate(distinct) if distinct else found
        return cls.of(network, np.cumsum([0, *map(len, distinct)]), vertices.astype(np.int32), room)

    @property
    def nbytes(self) -> int:
        return self.offsets.nbytes + self.rows.nbytes + self.vertex_offsets.nbytes + self.vertices.nbytes

    def told(self, network: Network, i: int) -> tuple[str, list[int] | list[str]]:
        closed = self.vertices[self.vertex_offsets[i] : self.vertex_offsets[i + 1]]
        return "vertices", network.vertex_labels.of(closed.astype(np.int64))

    def carried(self, network: Network, flow: UnitArray, value: int) -> UnitArray:
        """A flow comes apart into paths: without those through a vertex there is still one of what is left."""
        return bounded(throughput(network, flow)[self.vertices], self.vertex_offsets, value)
