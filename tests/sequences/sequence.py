"""One sequence: the graph as it should be, and what was said to the service about it."""

import json
import random
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import httpx

from tests.sequences.graph import UNLIMITED, Edge, Ends, Graph, Name

Answer: TypeAlias = dict[str, Any]


class Wrong(AssertionError):
    """The service has answered what is not so."""


class Run:
    """A graph of the service, and the model of it."""

    def __init__(self, http: httpx.Client, name: str, seed: int) -> None:
        self.http, self.name, self.seed = http, name, seed
        self.rng = random.Random(seed)
        self.said: list[Any] = []
        """Requests and answers, in order: what `Wrong` is told with."""
        self.graph = Graph()
        self.decimals = self.rng.choice([0, 0, 1, 3])
        self.version = 0
        self.history: dict[int, Graph] = {}
        """What the graph was at each version."""
        self.known_since: dict[Name, int] = {}
        """The version each vertex came with."""
        self.knows_capacities = False
        """Some vertex had a capacity once, and its place in their table stays."""
        self.asked: dict[object, list[Ends]] = {}
        """Terminals with which flow states may be kept."""
        self.costs, self.lowers = self.rng.random() < 0.4, self.rng.random() < 0.25
        self.has_names, self.has_ids = self.rng.random() < 0.6, self.rng.random() < 0.6
        self.undirected = self.rng.choice([0.0, 0.0, 0.5, 1.0])
        """The share of edges that are."""
        self.n_vertices = self.n_edges = 0
        """So many names were given."""

    def put(self, units: int) -> str:
        """An amount as it is sent."""
        return "inf" if units >= UNLIMITED else str(Decimal(units).scaleb(-self.decimals))

    def puts(self, amounts: Sequence[int]) -> list[str]:
        return [self.put(units) for units in amounts]

    def got(self, amount: object) -> int:
        """An amount as it came, in units."""
        if amount == "inf":
            return UNLIMITED
        units = Fraction(str(amount)) * 10**self.decimals
        self.check(units.denominator == 1, "an amount has more places than the graph", amount)
        return int(units)

    def check(self, holds: object, what: str, *details: object) -> None:
        if not holds:
            raise Wrong(f"seed {self.seed}: {what}: {details}; said: {json.dumps(self.said[-12:], default=str)[:6000]}")

    def send(self, method: str, path: str, body: object = None, **params: str) -> tuple[int, Answer]:
        """Status and answer; numbers with a point come as text."""
        response = self.http.request(method, f"/v1/graphs/{self.name}{path}", json=body, params=params)
        self.said.append((method, path, params, body, response.status_code, response.text[:800]))
        return response.status_code, json.loads(response.text, parse_float=str)

    def ask(self, path: str, body: Mapping[str, object], refusal: str | None = None) -> Answer:
        """The answer, or, if there should be a ``refusal`` of this code, nothing of use."""
        status, answer = self.send("POST", path, body)
        self.check((status, answer.get("code")) == ((200, None) if refusal is None else (422, refusal)), path, refusal)
        return answer

    def arrive(self, version: int, graph: Graph) -> None:
        """An update has made this version."""
        self.version, self.graph = version, graph
        self.history[version] = graph.copy()

    def new_vertex(self) -> Name:
        self.n_vertices += 1
        return f"v{self.n_vertices - 1}" if self.has_names else self.n_vertices - 1

    def new_edge(self) -> Name:
        self.n_edges += 1
        return f"e{self.n_edges - 1}" if self.has_ids else self.n_edges - 1

    def draw_edge(self, vertices: Sequence[Name]) -> Edge:
        rng, (tail, head) = self.rng, self.rng.choices(vertices, k=2)
        own = UNLIMITED if rng.random() < 0.05 else rng.choice([0, 1, rng.randint(1, 9), rng.randint(1, 40)])
        undirected = rng.random() < self.undirected
        cost = rng.randint(0 if undirected else -1, 6) if self.costs else 0
        lower = rng.randint(0, 3) if self.lowers and not undirected and rng.random() < 0.2 else 0
        return Edge(tail, head, own, undirected, cost=cost, lower=lower)

    def columns(self, edges: Sequence[Edge]) -> dict[str, Any]:
        """Members of a load, or of an insertion."""
        columns: dict[str, Any] = {
            "tail": [edge.tail for edge in edges],
            "head": [edge.head for edge in edges],
            "capacity": self.puts([edge.own for edge in edges]),
            "undirected": [edge.undirected for edge in edges],
        }
        if self.costs:
            columns["cost"] = [edge.cost for edge in edges]
        if self.lowers:
            columns["lower"] = self.puts([edge.lower for edge in edges])
        return columns

    def draw_ends(self) -> tuple[Ends, dict[str, Any]]:
        """Terminals, and the members of a body that say so."""
        rng = self.rng
        some = rng.sample(list(self.graph.vertices), min(len(self.graph.vertices), rng.randint(2, 4)))
        middle = rng.randint(1, len(some) - 1)
        supply, demand = (
            {vertex: UNLIMITED if rng.random() < 0.7 else rng.randint(0, 20) for vertex in part}
            for part in (some[:middle], some[middle:])
        )
        body: dict[str, Any] = {"sources": list(supply), "sinks": list(demand)}
        for name, caps in (("supply", supply), ("demand", demand)):
            if min(caps.values()) < UNLIMITED or rng.random() < 0.2:
                body[name] = self.puts(list(caps.values()))
        ends = Ends(supply, demand)
        self.asked.setdefault(ends.key, []).append(ends)
        return ends, body

    def some_edges(self, most: int) -> list[Name]:
        edges = list(self.graph.edges)
        return self.rng.sample(edges, min(len(edges), self.rng.randint(1, most)))
