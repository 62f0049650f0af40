"""What a graph is, as its callers were told: names, capacities, and what is closed. Amounts are whole units."""

from dataclasses import dataclass, field, replace
from typing import Final, Self, TypeAlias

Name: TypeAlias = str | int

UNLIMITED: Final = 10**15
"""In place of a capacity without limit; no sum of the others comes near it."""


@dataclass(frozen=True, slots=True)
class Edge:
    tail: Name
    head: Name
    own: int
    """Its capacity, also while it is closed."""
    undirected: bool = False
    closed: bool = False
    cost: int = 0
    lower: int = 0

    @property
    def capacity(self) -> int:
        """What it lets through."""
        return 0 if self.closed else self.own

    @property
    def is_loop(self) -> bool:
        return self.tail == self.head

    def joins(self, tail: Name, head: Name) -> bool:
        """Whether an update that names these end points means it."""
        return (self.tail, self.head) == (tail, head) or (self.undirected and (self.head, self.tail) == (tail, head))


@dataclass(slots=True)
class Graph:
    vertices: dict[Name, int | None] = field(default_factory=dict)
    """The capacity of each; None: it never had one."""
    edges: dict[Name, Edge] = field(default_factory=dict)

    def copy(self) -> Self:
        return replace(self, vertices=dict(self.vertices), edges=dict(self.edges))

    def change(self, edge: Name, own: int) -> None:
        self.edges[edge] = replace(self.edges[edge], own=min(own, UNLIMITED))

    def delete_vertex(self, vertex: Name) -> None:
        del self.vertices[vertex]
        for name, edge in list(self.edges.items()):
            if vertex in (edge.tail, edge.head):
                del self.edges[name]

    def without(self, edges: tuple[Name, ...] = (), vertices: tuple[Name, ...] = ()) -> Self:
        """With these edges, and all edges of these vertices, closed."""
        left = {
            name: edge
            for name, edge in self.edges.items()
            if name not in edges and edge.tail not in vertices and edge.head not in vertices
        }
        return replace(self, edges=left)

    @property
    def has_vertex_capacities(self) -> bool:
        return any(capacity is not None for capacity in self.vertices.values())

    @property
    def is_undirected(self) -> bool:
        return all(edge.undirected for edge in self.edges.values())


@dataclass(frozen=True, slots=True)
class Ends:
    """Sources with what they supply at most, and sinks with what they take."""

    supply: dict[Name, int]
    demand: dict[Name, int]

    @property
    def key(self) -> tuple[frozenset[Name], frozenset[Name]]:
        """Which vertices they are: what a flow state is named by in answers."""
        return frozenset(self.supply), frozenset(self.demand)
