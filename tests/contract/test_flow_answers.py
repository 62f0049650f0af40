"""Answers about flows and cuts of random networks, added up again from what was sent: this file knows no solver."""

import json
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import httpx
import networkx as nx
import numpy as np
import pytest

JSON = {"Content-Type": "application/json"}
SEEDS_A_CASE = 15


@dataclass
class Asked:
    """A network and its terminals as they were sent; amounts are exact, None is no limit."""

    tail: list[Any]
    head: list[Any]
    capacity: list[Decimal | None]
    undirected: list[bool]
    ids: list[Any]
    supply: dict[Any, Decimal | None]
    demand: dict[Any, Decimal | None]
    vertices: list[Any]
    places: int = 1
    """Decimals of the amounts, at most."""
    row: dict[Any, int] = field(init=False)

    def __post_init__(self) -> None:
        self.row = {name: row for row, name in enumerate(self.ids)}

    def graph(self) -> dict[str, Any]:
        labels = {"vertex_labels": self.vertices} if isinstance(self.vertices[0], str) else {}
        ids = {"edge_ids": self.ids} if isinstance(self.ids[0], str) else {}
        columns = {"tail": self.tail, "head": self.head, "undirected": self.undirected, "decimals": self.places}
        return columns | ids | labels | {"n_vertices": len(self.vertices), "capacity": texts(self.capacity)}

    def question(self, fields: list[str], **options: object) -> dict[str, Any]:
        ends = {"sources": list(self.supply), "sinks": list(self.demand)}
        caps = {"supply": texts(self.supply.values()), "demand": texts(self.demand.values())}
        return {**ends, **caps, "fields": fields, **options}


def texts(amounts: Any) -> list[str]:
    return ["inf" if amount is None else str(amount) for amount in amounts]


def random_case(seed: int) -> Asked:
    """Parallel, opposite, undirected and looped edges; capped and uncapped terminals; decimals; labels or numbers.

    No edge without limit touches a terminal without limit, so every flow has a bound.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    m = int(rng.integers(1, 4 * n))
    named = bool(rng.integers(2))
    vertices: list[Any] = [f'v"{i}' for i in range(n)] if named else list(range(n))
    ids: list[Any] = [f"edge {i}" for i in range(m)] if rng.integers(2) else list(range(m))
    places = int(rng.integers(0, 4))

    def amount() -> Decimal:
        return Decimal(int(rng.integers(0, 30))).scaleb(-places)

    tail, head = rng.integers(0, n, (2, m)).tolist()
    shuffled = rng.permutation(n).tolist()
    n_sources = int(rng.integers(1, n))
    n_sinks = int(rng.integers(1, n - n_sources + 1))
    capped = rng.random() < 0.5
    caps = [amount() if capped or rng.random() < 0.5 else None for _ in range(n_sources + n_sinks)]
    ends = [vertices[v] for v in shuffled[: n_sources + n_sinks]]
    return Asked(
        tail=[vertices[v] for v in tail],
        head=[vertices[v] for v in head],
        capacity=[None if capped and rng.random() < 0.1 else amount() for _ in range(m)],
        undirected=[bool(some) for some in rng.integers(0, 2, m)] if rng.integers(2) else [bool(rng.integers(2))] * m,
        ids=ids,
        supply=dict(zip(ends[:n_sources], caps[:n_sources], strict=True)),
        demand=dict(zip(ends[n_sources:], caps[n_sources:], strict=True)),
        vertices=vertices,
        places=places,
    )


def ask(http: httpx.Client, asked: Asked, fields: list[str], **options: object) -> Any:
    body = json.dumps(asked.graph())
    assert http.put("/v1/graphs/random", content=body, headers=JSON).status_code in (200, 201)
    response = http.post("/v1/graphs/random/max-flow", json=asked.question(fields, **options))
    assert response.status_code == 200, response.text
    return json.loads(response.text, parse_float=Decimal, parse_int=Decimal)


def names(listed: list[Any]) -> list[Any]:
    return [int(name) if isinstance(name, Decimal) else name for name in listed]


def column(answer: Any, name: str, amounts: str) -> dict[Any, Decimal]:
    """Amounts by name."""
    found = dict(zip(names(answer[name]), answer[amounts], strict=True))
    assert len(found) == len(answer[name]), f"{name} are listed once each"
    return found


def check_cut(asked: Asked, answer: Any, at: str) -> None:
    cut = answer["cut"]
    inside = set(names(cut["source_side"]))
    assert inside.isdisjoint(names(cut["sink_side"])), at
    assert inside | set(names(cut["sink_side"])) == set(asked.vertices), at
    crossed = {}
    for row, edge in enumerate(asked.ids):
        leaves, enters = asked.tail[row] in inside, asked.head[row] in inside
        if leaves != enters and (leaves or asked.undirected[row]) and asked.capacity[row] != 0:
            crossed[edge] = asked.capacity[row]
    assert column(cut, "edges", "pays") == crossed, at
    beyond = {v: cap for v, cap in asked.supply.items() if v not in inside and cap}
    before = {v: cap for v, cap in asked.demand.items() if v in inside and cap}
    assert column(cut, "sources", "source_pays") == beyond, at
    assert column(cut, "sinks", "sink_pays") == before, at
    paid = sum(cut["pays"]) + sum(cut["source_pays"]) + sum(cut["sink_pays"])
    assert paid == cut["value"] == answer["value"], at


def net_outflow(asked: Asked, flow: Any, at: str) -> Counter[Any]:
    """What leaves each vertex, less what comes in; no edge carries more than it may."""
    net: Counter[Any] = Counter()
    for edge, amount in column(flow, "edges", "amount").items():
        row = asked.row[edge]
        capacity = asked.capacity[row]
        assert capacity is None or abs(amount) <= capacity, at
        assert amount >= 0 or asked.undirected[row], at
        net[asked.tail[row]] += amount
        net[asked.head[row]] -= amount
    return net


def carrying(asked: Asked, flow: Any) -> list[tuple[Any, Any]]:
    """From where to where each edge that is listed carries its flow."""
    found = []
    for edge, amount in column(flow, "edges", "amount").items():
        ends = asked.tail[asked.row[edge]], asked.head[asked.row[edge]]
        found.append(ends if amount > 0 else ends[::-1])
    return found


def check_paths(asked: Asked, answer: Any, at: str) -> None:
    """All paths are listed: each leads from its source to its sink, and together they are the flow."""
    paths, carried = answer["paths"], column(answer["flow"], "edges", "amount")
    offsets = list(map(int, paths["offsets"]))
    edges = names(paths["edges"])
    used: Counter[Any] = Counter()
    given: Counter[Any] = Counter()
    got: Counter[Any] = Counter()
    assert len(offsets) == len(paths["amount"]) + 1, at
    for i, (source, sink, amount) in enumerate(
        zip(names(paths["source"]), names(paths["sink"]), paths["amount"], strict=True)
    ):
        place = source
        assert amount > 0, at
        for edge in edges[offsets[i] : offsets[i + 1]]:
            tail, head = asked.tail[asked.row[edge]], asked.head[asked.row[edge]]
            begin, end, sign = (tail, head, 1) if carried[edge] > 0 else (head, tail, -1)
            assert begin == place, at
            used[edge] += sign * amount
            place = end
        assert place == sink, at
        given[source] += amount
        got[sink] += amount
    assert used == Counter(carried), at
    assert (paths["of"], paths["rest"]) == (len(paths["amount"]), 0), at
    assert paths["of"] <= len(carried), f"{at}: more paths than edges"
    assert list(paths["amount"]) == sorted(paths["amount"], reverse=True), at
    for found, listed in ((given, ("sources", "supplied")), (got, ("sinks", "delivered"))):
        assert +found == +Counter(column(answer["terminals"], *listed)), at


def check_terminals(asked: Asked, answer: Any, at: str) -> None:
    net = net_outflow(asked, answer["flow"], at)
    supplied = column(answer["terminals"], "sources", "supplied")
    delivered = column(answer["terminals"], "sinks", "delivered")
    for vertex in asked.vertices:
        assert net[vertex] == supplied.get(vertex, 0) - delivered.get(vertex, 0), at
    for caps, found in ((asked.supply, supplied), (asked.demand, delivered)):
        assert {vertex for vertex, cap in caps.items() if cap is not None} <= found.keys() <= caps.keys(), at
        assert all(amount >= 0 and (caps[v] is None or amount <= caps[v]) for v, amount in found.items()), at
        assert all(amount or caps[v] is not None for v, amount in found.items()), f"{at}: nothing is listed"
        assert sum(found.values()) == answer["value"], at


@pytest.mark.parametrize("first", range(0, 60, SEEDS_A_CASE))
def test_all_that_a_cut_pays_adds_up_to_its_capacity(http: httpx.Client, first: int) -> None:
    for seed in range(first, first + SEEDS_A_CASE):
        asked = random_case(seed)
        check_cut(asked, ask(http, asked, ["value", "cut"]), f"seed {seed}")


@pytest.mark.parametrize("first", range(1000, 1060, SEEDS_A_CASE))
def test_what_terminals_give_and_get_is_what_the_edges_carry(http: httpx.Client, first: int) -> None:
    for seed in range(first, first + SEEDS_A_CASE):
        asked = random_case(seed)
        check_terminals(asked, ask(http, asked, ["value", "flow"]), f"seed {seed}")


@pytest.mark.parametrize("first", range(2000, 2060, SEEDS_A_CASE))
def test_flows_are_acyclic_and_made_of_their_paths(http: httpx.Client, first: int) -> None:
    for seed in range(first, first + SEEDS_A_CASE):
        asked = random_case(seed)
        answer = ask(http, asked, ["value", "flow", "paths"], paths={"top": 1000})
        check_terminals(asked, answer, f"seed {seed}")
        assert answer["flow"]["acyclic"] is True
        graph = nx.DiGraph(carrying(asked, answer["flow"]))
        assert nx.is_directed_acyclic_graph(graph), f"seed {seed}"
        check_paths(asked, answer, f"seed {seed}")
        raw = ask(http, asked, ["value", "flow"], flow={"acyclic": False})
        assert raw["flow"]["acyclic"] is False
        check_terminals(asked, raw, f"seed {seed}")


def test_the_largest_paths_and_what_the_others_carry(http: httpx.Client) -> None:
    """
    ::

        s --4--> a --9--> t      s --1--> t
        s --2--> b --3--> t
    """
    asked = Asked(
        tail=["s", "a", "s", "b", "s"],
        head=["a", "t", "b", "t", "t"],
        capacity=[Decimal(4), Decimal(9), Decimal(2), Decimal(3), Decimal("0.5")],
        undirected=[False] * 5,
        ids=["s-a", "a-t", "s-b", "b-t", "s-t"],
        supply={"s": None},
        demand={"t": None},
        vertices=["s", "a", "b", "t"],
    )
    answer = ask(http, asked, ["paths"], paths={"top": 2})
    assert answer["paths"] == {
        "source": ["s", "s"],
        "sink": ["t", "t"],
        "amount": [4, 2],
        "offsets": [0, 2, 4],
        "edges": ["s-a", "a-t", "s-b", "b-t"],
        "of": 3,
        "rest": Decimal("0.5"),
    }
    assert "flow" not in answer
    refused = http.post("/v1/graphs/random/max-flow", json=asked.question(["paths"], flow={"acyclic": False}))
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_body")
    for top in (0, 1_000_001, True, "2"):
        refused = http.post("/v1/graphs/random/max-flow", json=asked.question(["paths"], paths={"top": top}))
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_body"), top


def test_the_amounts_of_terminals_alone(http: httpx.Client) -> None:
    """
    ::

        w1 (3) --5--> a --4--> s1 (2.5)
        w2 (-) --1--> a --9--> s2 (-)       w3 has no road
    """
    asked = Asked(
        tail=["w1", "w2", "a", "a"],
        head=["a", "a", "s1", "s2"],
        capacity=[Decimal(5), Decimal(1), Decimal(4), Decimal(9)],
        undirected=[False] * 4,
        ids=["p", "q", "r", "z"],
        supply={"w1": Decimal(3), "w2": None, "w3": None},
        demand={"s1": Decimal("2.5"), "s2": None},
        vertices=["w1", "w2", "w3", "a", "s1", "s2"],
    )
    answer = ask(http, asked, ["terminals"])
    assert "flow" not in answer
    assert (answer["terminals"]["sources"], answer["terminals"]["supplied"]) == (["w1", "w2"], [3, 1])
    assert sum(answer["terminals"]["delivered"]) == 4
    cut = ask(http, asked, ["cut"])["cut"]
    assert (cut["edges"], cut["pays"], cut["sources"], cut["source_pays"]) == (["q"], [1], ["w1"], [3])
