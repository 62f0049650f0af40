# Made by scripts/synchronous_client.py from _async_graph.py: change that one.
"""`Graph`: the handle to a graph in the service."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

from headrace import _calls as calls
from headrace import _exported as exported
from headrace import _moves as moves
from headrace import _records as records
from headrace import _results as results
from headrace._amounts import Amounts
from headrace._calls import (
    Column,
    GraphFormat,
    Ids,
    PatchOptions,
    RestoreOptions,
    Update,
)
from headrace._files import format_of, whole_file
from headrace._limit_questions import LimitQuestions
from headrace._mistakes import counted, flag
from headrace._options import suggesting
from headrace._pair_questions import PairQuestions
from headrace._partition_questions import PartitionQuestions
from headrace._questions import Questions
from headrace._structure import Structure
from headrace._studies import Studies
from headrace._vertices import VertexCapacities
from headrace._watching import Watching


@suggesting
class Graph(
    Questions,
    Studies,
    PairQuestions,
    LimitQuestions,
    PartitionQuestions,
    Structure,
    Watching,
):
    """A graph in the service. Every method is one request; the handle keeps no columns."""

    def __repr__(self) -> str:
        vertices, edges = counted(self.info.n_vertices, "vertex", "vertices"), counted(self.info.n_edges, "edge")
        return f"<Graph {self.name}: {vertices}, {edges}>"

    def refresh(self) -> results.GraphInfo:
        """Read `info` again."""
        self.info = self._caller.ask(calls.graph(self.name))
        return self.info

    def delete(self, timeout_s: float | None = None, *, if_version: int | str | None = None) -> None:
        """Remove the graph and all its versions from the service; at another version, `VersionConflict`."""
        self._caller.command(calls.delete_graph(self.name, if_version, self.info.generation), timeout_s)

    def patch(
        self,
        *,
        edges: Ids | None = None,
        vertices: Ids | None = None,
        set: Amounts | None = None,
        add: Amounts | None = None,
        scale: Amounts | None = None,
        column: Column = "capacity",
        timeout_s: float | None = None,
        **options: Unpack[PatchOptions],
    ) -> results.PatchResult:
        """Set, add to or scale capacities of edges by id, or with `column="cost"` their costs, with "lower" their lower
        bounds: one amount for all, or one each. All or nothing. With `vertices` capacities of vertices; one without is
        unlimited, and its first one has all flows solved from zero once."""
        return self.apply(
            [Update(edges=edges, vertices=vertices, set=set, add=add, scale=scale)],
            column=column,
            timeout_s=timeout_s,
            **options,
        )

    def patch_endpoints(
        self,
        *,
        tail: Ids,
        head: Ids,
        set: Amounts | None = None,
        add: Amounts | None = None,
        scale: Amounts | None = None,
        column: Column = "capacity",
        timeout_s: float | None = None,
        **options: Unpack[PatchOptions],
    ) -> results.PatchResult:
        """As `patch`, edges by their end points. Raises `AmbiguousEdge` where parallel edges match."""
        update = Update(tail=tail, head=head, set=set, add=add, scale=scale)
        return self.apply([update], column=column, timeout_s=timeout_s, **options)

    def close(
        self, edges: Ids, *, timeout_s: float | None = None, **options: Unpack[PatchOptions]
    ) -> results.PatchResult:
        """Let nothing through these edges until they are reopened; their capacities are kept."""
        return self.apply([Update(edges=edges, op="close")], timeout_s=timeout_s, **options)

    def reopen(
        self, edges: Ids, *, timeout_s: float | None = None, **options: Unpack[PatchOptions]
    ) -> results.PatchResult:
        """Undo `close`."""
        return self.apply([Update(edges=edges, op="reopen")], timeout_s=timeout_s, **options)

    def apply(
        self,
        updates: Sequence[Update],
        *,
        column: Column = "capacity",
        timeout_s: float | None = None,
        **options: Unpack[PatchOptions],
    ) -> results.PatchResult:
        """Several operations in order, as one version: all or nothing. Raises `UnknownEdge`, `VersionConflict`."""
        call = calls.patch(self.name, updates, options, column, self.info.generation)
        return self._caller.command(call, timeout_s)

    def capacities(
        self,
        offset: int = 0,
        limit: int = 10_000,
        timeout_s: float | None = None,
        *,
        if_version: int | str | None = None,
    ) -> results.Capacities:
        """A page of edges with their present capacities; `limit` is at most 100,000. With `if_version` it is of that
        version, else `VersionConflict`."""
        call = calls.capacities(self.name, offset, limit, if_version, self.info.generation)
        return self._caller.command(call, timeout_s)

    def vertex_capacities(
        self,
        offset: int = 0,
        limit: int = 10_000,
        timeout_s: float | None = None,
        *,
        if_version: int | str | None = None,
    ) -> VertexCapacities:
        """A page of the vertices that have capacities; all others are unlimited. Raises as `capacities`."""
        call = calls.vertex_capacities(self.name, offset, limit, if_version, self.info.generation)
        return self._caller.command(call, timeout_s)

    def vertices(
        self,
        offset: int = 0,
        limit: int = 10_000,
        timeout_s: float | None = None,
        *,
        if_version: int | str | None = None,
    ) -> VertexCapacities:
        """A page of all vertices, with their coordinates if they have some. Raises as `capacities`."""
        call = calls.vertex_capacities(self.name, offset, limit, if_version, self.info.generation, every=True)
        return self._caller.command(call, timeout_s)

    def copy(self, to: str, timeout_s: float | None = None) -> "Graph":
        """A new graph of this name with the present edges of this one, closed ones too. Raises `AlreadyExists`."""
        return Graph(self._caller, self._caller.command(calls.copy(self.name, to), timeout_s))

    def restore(
        self, version: int, *, timeout_s: float | None = None, **options: Unpack[RestoreOptions]
    ) -> results.PatchResult:
        """A new version with the capacities and closed edges of an earlier one. Raises `VersionUnavailable`."""
        call = calls.restore(self.name, version, options, self.info.generation)
        return self._caller.command(call, timeout_s)

    def export(
        self,
        path: str | Path,
        *,
        format: GraphFormat | None = None,
        version: int | None = None,
        timeout_s: float | None = None,
    ) -> int:
        """Write the graph to a file that `put_graph` reads, and give the version that is in it: the present one, or the
        `version` that is asked for, as far as `restore` reaches.

        The format is told by the suffix (.npz, .arrow, .max) unless it is named. npz and Arrow hold everything:
        capacities, closed edges, names, terminals. The file is there whole, or as it was before. Raises
        `VersionUnavailable`.
        """
        path = Path(path)
        wanted = format or format_of(path)
        with whole_file(path) as file:
            return self._caller.download(calls.export(self.name, wanted, version, file), timeout_s)

    def to_networkx(self, *, multigraph: bool = False, page: int = 100_000, timeout_s: float | None = None) -> Any:
        """The graph with its present capacities for NetworkX, which must be installed; `page` edges at a time.

        A `DiGraph`, or a `Graph` if all edges are undirected, or their multigraphs if there are parallel edges. Edges
        have `id`, `capacity` and, if there are any, `cost` and `lower`, each an `int` or `Decimal`; unlimited ones have
        no `capacity`, as NetworkX means it, closed ones have 0, ``closed=True``, and as `open_capacity` what they let
        through once they are reopened (`math.inf` without a limit). Beside directed edges an undirected
        one is two with ``undirected=True``. Nodes whose vertex has a capacity have `capacity`, `math.inf` where it does
        not limit now; ``put_graph(..., vertex_capacities="capacity")`` reads it back. Where the graph has coordinates,
        nodes have `x` and `y`, and the graph its `crs`; with ``multigraph=True``, which makes a multigraph of any, it
        is what OSMnx takes. ``put_graph(..., edge_ids="id", closed="closed")`` reads the ids back, and which edges are
        closed, with their `open_capacity`.

        Raises `VersionConflict` if the graph changes meanwhile.
        """
        several = flag(multigraph, "multigraph")
        pages = self._pages(page, timeout_s)
        return pages.networkx(multigraph=several)

    def to_igraph(self, *, page: int = 100_000, timeout_s: float | None = None) -> Any:
        """The same for igraph, which must be installed: edges have the attributes `id`, `capacity` (unlimited ones
        `math.inf`), and `cost`, `lower`, `closed`, `open_capacity` and `undirected` if any has; vertices `name`, unless
        they are numbered, `capacity` if any has one (None: none), and `x` and `y`, with the `crs` of the graph, where
        it has coordinates."""
        pages = self._pages(page, timeout_s)
        return pages.igraph()

    def _pages(self, page: int, timeout_s: float | None) -> exported.Pages:
        pages = exported.Pages(self._caller.ask(calls.graph(self.name)))
        while (at := pages.next_edge) is not None:
            pages.add(self.capacities(at, page, timeout_s, if_version=pages.etag))
        while (at := pages.next_vertex) is not None:
            pages.add_vertices(self.vertices(at, page, timeout_s, if_version=pages.etag))
        while (at := pages.next_limit) is not None:
            pages.add_limits(self.vertex_capacities(at, page, timeout_s, if_version=pages.etag))
        return pages

    def move(self, worker: str, timeout_s: float | None = None) -> moves.Move:
        """Have another worker serve the graph; it is served meanwhile, but for the pause that is said.

        For keys of scope `admin` that are good for all graphs. Raises `UnknownWorker`.
        """
        return self._caller.command(moves.move(self.name, worker), timeout_s)

    def write_snapshot(self, timeout_s: float | None = None) -> records.Snapshot:
        """Write the present version to the store now."""
        return self._caller.command(calls.write_snapshot(self.name), timeout_s)

    def snapshots(self) -> tuple[records.Snapshot, ...]:
        """The snapshots the store has."""
        return self._caller.ask(calls.snapshots(self.name))
