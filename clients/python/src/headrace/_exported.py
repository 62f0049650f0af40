"""A graph from the pages of its edges and vertices, for other libraries."""

from collections.abc import Iterator
from functools import cached_property
from itertools import repeat
from typing import Any

from headrace._amounts import INFINITY, Exact
from headrace._errors import InvalidInput, VersionConflict
from headrace._results import Capacities, EdgeId, GraphInfo, Vertex
from headrace._vertices import VertexCapacities


class Pages:
    """The edges of one version of a graph, page by page, the capacities of its vertices, and, if it has coordinates or
    the edges do not say which of its vertices are there, all of these."""

    def __init__(self, info: GraphInfo) -> None:
        self._info = info
        self._pages: list[Capacities] = []
        self._places: list[VertexCapacities] = []
        self._limits: list[VertexCapacities] = []

    @property
    def etag(self) -> str:
        """The version of which all of them are to be."""
        return self._info.etag

    @property
    def next_edge(self) -> int | None:
        """The offset of the page of edges that is missing; None: there is none. Deleted edges count in offsets."""
        if not self._info.n_edges:
            return None
        return self._pages[-1].next if self._pages else 0

    @property
    def next_vertex(self) -> int | None:
        """The same of vertices, once all edges are here."""
        if self._info.coordinates is None and not self._has_others:
            return None
        return self._places[-1].next if self._places else 0

    @property
    def next_limit(self) -> int | None:
        """The same of the vertices that have a capacity."""
        return self._limits[-1].next if self._limits else 0

    def add(self, page: Capacities) -> None:
        """The next page. Raises `VersionConflict` if it is of another version."""
        self._refuse(page.version)
        self._pages.append(page)

    def add_vertices(self, page: VertexCapacities) -> None:
        """The next page of vertices. Raises as `add`."""
        self._refuse(page.version)
        self._places.append(page)

    def add_limits(self, page: VertexCapacities) -> None:
        """The next page of vertices that have a capacity. Raises as `add`."""
        self._refuse(page.version)
        self._limits.append(page)

    def _refuse(self, version: int) -> None:
        if version != self._info.version:
            raise VersionConflict(
                f"the graph was at version {self._info.version}, and is at {version} now; read it again",
                code="version_conflict",
                status=412,
            )

    def networkx(self, *, multigraph: bool = False) -> Any:
        """The NetworkX graph that `Graph.to_networkx` describes."""
        try:
            import networkx as nx
        except ImportError as error:
            raise InvalidInput("to_networkx() needs NetworkX: pip install networkx") from error
        directed, edges = self._edges()
        ends = [(tail, head) if directed else (min(tail, head), max(tail, head)) for tail, head, _ in edges]
        parallel = multigraph or len(set(ends)) < len(ends)
        kind: Any = {
            (True, False): nx.DiGraph,
            (True, True): nx.MultiDiGraph,
            (False, False): nx.Graph,
            (False, True): nx.MultiGraph,
        }[directed, parallel]
        graph = kind(name=self._info.name)
        if self._info.coordinates is not None:
            graph.graph["crs"] = self._info.coordinates
            graph.add_nodes_from((vertex, {"x": x, "y": y}) for vertex, x, y in self._placed())
        elif self._places:
            graph.add_nodes_from(self._listed())
        elif self._are_integers:
            graph.add_nodes_from(sorted(self._ends))
        graph.add_edges_from(edges)
        graph.add_nodes_from((vertex, {"capacity": amount}) for vertex, amount in self._limited())
        return graph

    def igraph(self) -> Any:
        """The igraph graph that `Graph.to_igraph` describes."""
        try:
            import igraph
        except ImportError as error:
            raise InvalidInput("to_igraph() needs igraph: pip install igraph") from error
        directed, edges = self._edges()
        placed = [*self._placed()]
        if placed:
            names: list[Any] = [vertex for vertex, _, _ in placed]
        elif self._places:
            names = [*self._listed()]
        elif self._are_integers:
            names = sorted(self._ends)
        else:
            names = [*dict.fromkeys(vertex for tail, head, _ in edges for vertex in (tail, head))]
        index = {name: at for at, name in enumerate(names)}
        graph = igraph.Graph(len(names), [(index[a], index[b]) for a, b, _ in edges], directed=directed)
        graph["name"] = self._info.name
        if names != [*range(len(names))]:
            graph.vs["name"] = names
        if placed:
            graph["crs"] = self._info.coordinates
            graph.vs["x"], graph.vs["y"] = [x for _, x, _ in placed], [y for _, _, y in placed]
        if limits := dict(self._limited()):
            graph.vs["capacity"] = [limits.get(name) for name in names]
        unlimited = {"capacity": INFINITY}
        for name in dict.fromkeys(name for _, _, data in edges for name in ("id", "capacity", *data)):
            graph.es[name] = [data.get(name, unlimited.get(name)) for _, _, data in edges]
        return graph

    def _edges(self) -> tuple[bool, list[tuple[Any, Any, dict[str, Any]]]]:
        """Whether the graph is directed, and its edges; two for an undirected one in a directed graph."""
        undirected = [flag for page in self._pages for flag in page.undirected]
        directed = not undirected or not all(undirected)
        return directed, [
            edge for page in self._pages for row in _rows(page) for edge in _edges(*row, both_ways=directed)
        ]

    def _placed(self) -> Iterator[tuple[Vertex, float, float]]:
        for page in self._places:
            if page.x is not None and page.y is not None:
                yield from zip(page.vertices, page.x, page.y, strict=True)

    def _limited(self) -> Iterator[tuple[Vertex, Exact]]:
        for page in self._limits:
            yield from zip(page.vertices, page.capacity, strict=True)

    def _listed(self) -> Iterator[Vertex]:
        return (vertex for page in self._places for vertex in page.vertices)

    @cached_property
    def _ends(self) -> set[Any]:
        """The vertices that have edges."""
        return {vertex for page in self._pages for vertex in (*page.tail, *page.head)}

    @property
    def _are_integers(self) -> bool:
        """Whether all vertices that have edges are called by integers: their numbers, or labels."""
        return all(isinstance(vertex, int) for vertex in self._ends)

    @property
    def _has_others(self) -> bool:
        """Whether there are vertices beside these, or numbers of some that have been deleted."""
        return len(self._ends) < self._info.n_vertices


def _rows(
    page: Capacities,
) -> Iterator[tuple[Vertex, Vertex, EdgeId, Exact, bool, bool, Exact | None, Exact | None]]:
    columns = page.tail, page.head, page.edge_ids, page.capacity, page.closed, page.undirected
    beside = (repeat(None, len(page.tail)) if column is None else column for column in (page.cost, page.lower))
    return zip(*columns, *beside, strict=True)


def _edges(
    tail: Vertex,
    head: Vertex,
    edge_id: EdgeId,
    capacity: Exact,
    closed: bool,
    undirected: bool,
    cost: Exact | None,
    lower: Exact | None,
    *,
    both_ways: bool,
) -> list[tuple[Any, Any, dict[str, Any]]]:
    """The edges that one of ours becomes."""
    data: dict[str, Any] = {"id": edge_id}
    data |= {name: amount for name, amount in (("cost", cost), ("lower", lower)) if amount is not None}
    if closed:
        data |= {"capacity": 0, "closed": True, "open_capacity": capacity}
    elif capacity != INFINITY:
        data["capacity"] = capacity
    if not (undirected and both_ways):
        return [(tail, head, data)]
    data["undirected"] = True
    return [(tail, head, data), (head, tail, dict(data))]
