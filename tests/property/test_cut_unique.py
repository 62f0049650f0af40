"""`cut.unique` says whether one minimum cut is all there is: held against a list of all cuts of small networks."""

from itertools import product

import numpy as np
import pytest

from gpu_engine.cpu import derive
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.errors import Unbounded
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import INFINITE
from tests.cases import cases
from tests.graphs import drawn

SEEDS_A_CASE = 250
LARGEST = 7
"""Vertices of a random network: it has at most 128 cuts."""


def minimum_cuts(edges: EdgeList, terminals: Terminals) -> tuple[int, set[frozenset[tuple[str, int]]]]:
    """The value of the minimum cuts, and what each of them pays: rows of edges, and terminals by vertex."""
    undirected = np.broadcast_to(np.asarray(edges.undirected), len(edges.tail))
    rows = list(zip(edges.tail.tolist(), edges.head.tolist(), edges.capacity.tolist(), undirected, strict=True))
    least, found = INFINITE, set()
    for side in product((False, True), repeat=edges.n_vertices):
        pays = {
            ("edge", row): capacity
            for row, (tail, head, capacity, either) in enumerate(rows)
            if (side[tail] and not side[head]) or (either and side[head] and not side[tail])
        }
        pays |= {("source", v): cap for v, cap in _caps(terminals.sources, terminals.supply) if not side[v]}
        pays |= {("sink", v): cap for v, cap in _caps(terminals.sinks, terminals.demand) if side[v]}
        total = INFINITE if INFINITE in pays.values() else sum(pays.values())
        if total < least:
            least, found = total, set()
        if total == least:
            found.add(frozenset(paid for paid, amount in pays.items() if amount))
    return least, found


def _caps(vertices: np.ndarray, caps: np.ndarray) -> list[tuple[int, int]]:
    return list(zip(vertices.tolist(), caps.tolist(), strict=True))


def random_case(seed: int) -> tuple[EdgeList, Terminals]:
    """Capacities and caps of so few values that ties are common; a cap of zero and no cap at all are among them."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, LARGEST + 1))
    m = int(rng.integers(0, 2 * n + 1))
    tail, head = rng.integers(0, n, (2, m)).astype(np.int32)
    capacity = rng.integers(0, 3, m).astype(np.int64)
    capacity[rng.random(m) < 0.05] = INFINITE
    undirected = (False, True, rng.random(m) < 0.5)[int(rng.integers(3))]
    vertices = rng.permutation(n)
    n_sources = int(rng.integers(1, n))
    n_sinks = int(rng.integers(1, n - n_sources + 1))
    share_without = rng.choice([0, 0, 0.5])
    supply, demand = (rng.integers(0, 3, count).astype(np.int64) for count in (n_sources, n_sinks))
    for caps in (supply, demand):
        caps[rng.random(len(caps)) < share_without] = INFINITE
    sinks = vertices[n_sources : n_sources + n_sinks]
    return EdgeList(n, tail, head, capacity, undirected), Terminals.of(vertices[:n_sources], sinks, supply, demand)


def check(edges: EdgeList, terminals: Terminals, at: str) -> bool | None:
    """Whether the minimum cut is the only one; None where the flow has no bound."""
    engine = CpuEngine(Network(edges))
    value, cuts = minimum_cuts(edges, terminals)
    try:
        state = engine.open(terminals)
    except Unbounded:
        assert value == INFINITE, at
        return None
    engine.solve(state)
    cut = engine.cut(state)
    assert cut.value == value, at
    assert cut.unique is (len(cuts) == 1), f"{at}: the minimum cuts pay {sorted(map(sorted, cuts))}"
    return cut.unique


@pytest.mark.parametrize("many", [0, derive.MANY], ids=["from each end", "all of T"])
@pytest.mark.parametrize("first", range(0, cases(2000), SEEDS_A_CASE))
def test_unique_is_what_all_cuts_say(first: int, many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derive, "MANY", many)
    found = [check(*random_case(seed), f"seed {seed}") for seed in range(first, first + SEEDS_A_CASE)]
    assert min(found.count(True), found.count(False)) > SEEDS_A_CASE // 20, "both answers are tried often"


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize(
    ("capacity", "supply", "demand", "unique"),
    [(1, 1, 1, False), (1, 1, 2, False), (1, 2, 1, False), (1, 2, 2, True), (2, 1, 1, False), (2, 1, 2, True)],
)
def test_one_edge_between_capped_ends(capacity: int, supply: int, demand: int, unique: bool, undirected: bool) -> None:
    """The edge, the supply and the demand are three cuts: the only minimum is the one that is below the others."""
    terminals = Terminals.of([0], [1], [supply], [demand])
    assert check(drawn(2, [(0, 1, capacity)], undirected), terminals, "one edge") is unique


@pytest.mark.parametrize("undirected", [False, True])
def test_two_cuts_of_the_same_edges_that_pay_other_caps(undirected: bool) -> None:
    """No edge can be cut: one cut pays the supply of 2, the other the demand of 2."""
    terminals = Terminals.of([0], [2], [2], [2])
    edges = drawn(3, [(0, 1, INFINITE), (1, 2, INFINITE)], undirected)
    assert check(edges, terminals, "a path without limits") is False
