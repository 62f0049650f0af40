"""The pairs that a question names, in whichever of three ways."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpu_engine.errors import EngineError, SourceIsSink
from gpu_engine.networks.network import Network
from gpu_engine.networks.refused import unknown_vertices
from gpu_engine.networks.updates import vertices_named
from gpu_engine.types import VertexArray
from service.errors import ServiceError
from service.protocol import PairsArgs
from service.worker.questions.terminals import read_distinct_vertices, read_vertices


@dataclass(frozen=True, eq=False, slots=True)
class ListedPairs:
    """A row for each pair."""

    sources: VertexArray
    """-1 where the graph has no vertex of that name."""
    sinks: VertexArray
    given: tuple[Sequence[int] | Sequence[str], Sequence[int] | Sequence[str]] | None = None
    """The names of both, where the caller has written each row."""

    @property
    def known(self) -> VertexArray:
        """The vertices of all pairs, each once."""
        vertices = np.unique(np.concatenate((self.sources, self.sinks)))
        return vertices[vertices >= 0]

    def names(self, network: Network, rows: range) -> tuple[Sequence[object], Sequence[object]]:
        """The sources and the sinks of some rows that follow each other, as the caller wrote them."""
        some = slice(rows.start, rows.stop)
        if self.given is not None:
            return self.given[0][some], self.given[1][some]
        labels = network.vertex_labels
        return labels.of(self.sources[some].astype(np.int64)), labels.of(self.sinks[some].astype(np.int64))

    def fault(self, network: Network, row: int) -> EngineError:
        """What is wrong with a pair that has no answer."""
        names = [column[0] for column in self.names(network, range(row, row + 1))]
        ends = zip(names, (self.sources[row], self.sinks[row]), ("source", "sink"), strict=True)
        unknown = [(name, side) for name, at, side in ends if at < 0]
        if unknown:
            missing, (_, side) = [name for name, _ in unknown], unknown[0]
            return unknown_vertices(network, missing, [row], kind=side, count=len(missing), field=f"/{side}")
        return SourceIsSink("a vertex is both source and sink", vertices=[names[0]])


def list_pairs(network: Network, args: PairsArgs) -> ListedPairs:
    """Raises `UnknownVertex` for lists of which every vertex is in many rows, and too_large for too many rows."""
    if args.source is not None and args.sink is not None:
        sources, sinks = (vertices_named(network, given) for given in (args.source, args.sink))
        return ListedPairs(sources.astype(np.int32), sinks.astype(np.int32), (args.source, args.sink))
    if args.among is not None:
        vertices = read_distinct_vertices(network, args.among, "terminal", "/among")
        undirected = not network.has_directed_edges
        _refuse_many(len(vertices) * (len(vertices) - 1) // (2 if undirected else 1), args.most)
        first, second = np.triu_indices(len(vertices), 1)
        if not undirected:
            first, second = np.nonzero(~np.eye(len(vertices), dtype=np.bool_))
        return ListedPairs(vertices[first], vertices[second])
    from_each = read_vertices(network, args.sources or [], "source", "/sources")
    to_each = read_vertices(network, args.sinks or [], "sink", "/sinks")
    _refuse_many(len(from_each) * len(to_each), args.most)
    return ListedPairs(np.repeat(from_each, len(to_each)), np.tile(to_each, len(from_each)))


def _refuse_many(count: int, most: int) -> None:
    if count > most:
        limit = f"a question has at most {most} pairs (HEADRACE_MAX_QUESTION_ROWS)"
        raise ServiceError("too_large", f"{limit}, not {count}: ask several")
