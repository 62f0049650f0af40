"""A graph from the pages of its capacities, for other libraries."""

from collections.abc import Iterator
from itertools import repeat
from typing import Any

from headrace._amounts import INFINITY, Exact
from headrace._errors import InvalidInput, VersionConflict
from headrace._results import Capacities, EdgeId, GraphInfo, Vertex


class Pages:
    """The edges of one version of a graph, page by page."""

    def __init__(self, info: GraphInfo) -> None:
        self._info = info
        self._pages: list[Capacities] = []
        self.rows = 0
        """Edges that are here."""

    @property
    def etag(self) -> str:
        """The version of which all of them are to be."""
        return self._info.etag

    @property
    def missing(self) -> bool:
        return self.rows < self._info.n_edges

    def add(self, page: Capacities) -> None:
        """The next page. Raises `VersionConflict` if it is of another version."""
        if page.version != self._info.version or not page.edge_ids:
            raise VersionConflict(
                f"the graph was at version {self._info.version}, and is at {page.version} now; read it again",
                code="version_conflict",
                status=412,
            )
        self._pages.append(page)
        self.rows += len(page.edge_ids)

    def networkx(self) -> Any:
        """The NetworkX graph that `Graph.to_networkx` describes."""
        try:
            import networkx as nx
        except ImportError as error:
            raise InvalidInput("to_networkx() needs NetworkX: pip install networkx") from error
        undirected = [flag for page in self._pages for flag in page.undirected]
        directed = not undirected or not all(undirected)
        edges = [edge for page in self._pages for row in _rows(page) for edge in _edges(*row, both_ways=directed)]
        ends = [(tail, head) if directed else (min(tail, head), max(tail, head)) for tail, head, _ in edges]
        parallel = len(set(ends)) < len(ends)
        kind: Any = {
            (True, False): nx.DiGraph,
            (True, True): nx.MultiDiGraph,
            (False, False): nx.Graph,
            (False, True): nx.MultiGraph,
        }[directed, parallel]
        graph = kind(name=self._info.name)
        named = [vertex for page in self._pages for vertex in (*page.tail, *page.head)]
        if all(isinstance(vertex, int) and vertex < self._info.n_vertices for vertex in named):
            graph.add_nodes_from(range(self._info.n_vertices))
        graph.add_edges_from(edges)
        return graph


def _rows(page: Capacities) -> Iterator[tuple[Vertex, Vertex, EdgeId, Exact, bool, bool, Exact | None]]:
    columns = page.tail, page.head, page.edge_ids, page.capacity, page.closed, page.undirected
    return zip(*columns, repeat(None) if page.cost is None else page.cost, strict=page.cost is not None)


def _edges(
    tail: Vertex,
    head: Vertex,
    edge_id: EdgeId,
    capacity: Exact,
    closed: bool,
    undirected: bool,
    cost: Exact | None,
    *,
    both_ways: bool,
) -> list[tuple[Any, Any, dict[str, Any]]]:
    """The edges that one of ours becomes."""
    data: dict[str, Any] = {"id": edge_id} if cost is None else {"id": edge_id, "cost": cost}
    if closed:
        data |= {"capacity": 0, "closed": True}
    elif capacity != INFINITY:
        data["capacity"] = capacity
    if not (undirected and both_ways):
        return [(tail, head, data)]
    data["undirected"] = True
    return [(tail, head, data), (head, tail, dict(data))]
