"""DIMACS ``min``: what is read, what is refused and on which line, and what comes back from what is written."""

import random

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_engine.errors import CapacityOverflow, CostOverflow, EngineError, InvalidNetwork, NoCosts
from gpu_engine.formats import DEFAULT_LIMITS, read, read_dimacs, reading_bytes, write_dimacs_min
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.rounding import Precision
from gpu_engine.types import INFINITE

#   1 ---0..4 at 2---> 2        1 supplies 4, of which 3 can leave 3
#   |                  |        4 demands 4
#   0..2 at 2     0..2 at 1
#   v                  v
#   3 <--0..3 at 1---- 2 ---0..5 at 3---> 4 <---0..5 at 1--- 3
EXAMPLE = b"""c the example of the format
p min 4 5
n 1 4
n 4 -4
a 1 2 0 4 2
a 1 3 0 2 2
a 2 3 0 2 1
a 2 4 0 3 3
a 3 4 0 5 1
"""


def test_supplies_become_arcs_of_a_source_and_a_sink_that_are_added() -> None:
    edges = read_dimacs(EXAMPLE)
    assert (edges.n_vertices, edges.source, edges.sink, edges.cost_decimals) == (6, 4, 5, 0)
    assert edges.tail.tolist() == [0, 0, 1, 1, 2, 4, 3]
    assert edges.head.tolist() == [1, 2, 2, 3, 3, 0, 5]
    assert edges.capacity.tolist() == [4, 2, 2, 3, 5, 4, 4]
    assert edges.cost is not None
    assert edges.cost.tolist() == [2, 2, 1, 3, 1, 0, 0]


def test_nothing_is_added_where_the_arcs_say_it() -> None:
    """All that leaves vertex 1 is supplied, and all that arrives at 4 demanded."""
    for flow, ends in ((8, (0, 3, 4)), (7, (4, 5, 6))):
        text = EXAMPLE.replace(b"n 1 4", b"n 1 %d" % flow).replace(b"n 4 -4", b"n 4 -%d" % flow)
        edges = read_dimacs(text.replace(b"1 3 0 2 2", b"1 3 0 4 2"))
        assert (edges.source, edges.sink, edges.n_vertices) == ends
    edges = read_dimacs(EXAMPLE.replace(b"n 1 4\n", b"").replace(b"n 4 -4\n", b""))
    assert (edges.source, edges.sink, edges.n_vertices) == (None, None, 4)
    edges = read_dimacs(EXAMPLE.replace(b"n 1 4\n", b"n 1 0\n").replace(b"n 4 -4\n", b""))
    assert (edges.source, edges.sink, edges.n_vertices) == (None, None, 4)


def test_decimals_and_costs_below_zero() -> None:
    text = EXAMPLE.replace(b"a 3 4 0 5 1", b"a 3 4 0 5 -12")
    edges = read(text, "text/x-dimacs", precision=Precision(1, None, 2))
    assert (edges.decimals, edges.cost_decimals, edges.capacity.tolist()[-1]) == (1, 2, 40)
    assert edges.cost is not None
    assert edges.cost.tolist()[4] == -1200
    assert reading_bytes(text, "text/x-dimacs", DEFAULT_LIMITS) > reading_bytes(
        text.replace(b"p min", b"p max"), "text/x-dimacs", DEFAULT_LIMITS
    )


@pytest.mark.parametrize(
    ("change", "line", "words"),
    [
        ((b"2 4 0 3 3", b"2 4 -1 3 3"), 8, "lower bound is not a whole number"),
        ((b"2 4 0 3 3", b"2 4 0 -1 3"), 8, "capacity is not a whole number"),
        ((b"2 4 0 3 3", b"2 4 0 3 --3"), 8, "cost is not a whole number"),
        ((b"2 4 0 3 3", b"2 4 0 3 -"), 8, "cost is not a whole number"),
        ((b"2 4 0 3 3", b"2 4 0 3 1.5"), 8, "cost is not a whole number"),
        ((b"2 4 0 3 3", b"2 4 0 3"), 8, "5 fields expected"),
        ((b"2 4 0 3 3", b"2 5 0 3 3"), 8, "head is no vertex 1 .. "),
        ((b"n 4 -4", b"n 5 -4"), 4, "vertex is no vertex 1 .. 4"),
        ((b"n 4 -4", b"n 0 -4"), 4, "vertex is no vertex 1 .. 4"),
        ((b"n 4 -4", b"n 1 -4"), 4, "vertex has a second line"),
        ((b"n 4 -4", b"n 4 t"), 4, "flow is not a whole number"),
        ((b"n 4 -4", b"n 4 -1.5"), 4, "flow is not a whole number"),
        ((b"n 4 -4", b"n 4"), 4, "2 fields expected"),
        ((b"n 4 -4", b"n 4 -99999999999999999999"), 4, "flow is too large"),
        ((b"n 4 -4", b"n 4 -4000000000000000000"), 4, "flow is too large"),
        ((b"n 4 -4", b"n 4 -3"), None, "the supplies add up to 4 and the demands to 3"),
        ((b"n 4 -4\n", b""), None, "the supplies add up to 4 and the demands to 0"),
        ((b"a 3 4 0 5 1\n", b""), 8, "the text ends after 4 of 5 arcs"),
        ((b"p min 4 5", b"p min 4"), 2, "'p min VERTICES ARCS' expected"),
    ],
)
def test_refuses_with_the_line(change: tuple[bytes, bytes], line: int | None, words: str) -> None:
    assert change[0] in EXAMPLE
    with pytest.raises(InvalidNetwork, match=words) as refusal:
        read_dimacs(EXAMPLE.replace(*change, 1))
    assert refusal.value.where.lines[:1] == ([] if line is None else [line])


def test_numbers_beyond_the_limits() -> None:
    for number, refused in ((b"9223372036854775807", CapacityOverflow), (b"1152921504606846977", CapacityOverflow)):
        with pytest.raises(refused):
            read_dimacs(EXAMPLE.replace(b"2 4 0 3 3", b"2 4 0 %s 3" % number))
        with pytest.raises(CostOverflow):
            read_dimacs(EXAMPLE.replace(b"2 4 0 3 3", b"2 4 0 3 -%s" % number))


def test_truncation_at_each_byte_is_refused_or_read() -> None:
    for length in range(len(EXAMPLE)):
        try:
            read_dimacs(EXAMPLE[:length])
        except EngineError:
            continue
        assert length == len(EXAMPLE) - 1  # without its last newline


@pytest.mark.parametrize("seed", range(60))
def test_the_cheapest_largest_flow_answers_the_problem(seed: int) -> None:
    """Against NetworkX on the problem itself; where it has no answer, less flows than is supplied."""
    rng = random.Random(seed)
    n_vertices, n_arcs = rng.randint(2, 7), rng.randint(1, 16)
    pairs = [(a, b) for a in range(1, n_vertices + 1) for b in range(1, n_vertices + 1) if a != b]
    arcs = {pair: (rng.randint(0, 6), rng.randint(0, 9)) for pair in rng.choices(pairs, k=n_arcs)}
    supply = [rng.randint(-3, 3) for _ in range(n_vertices - 1)]
    supply.append(-sum(supply))
    lines = [f"n {vertex} {flow}" for vertex, flow in enumerate(supply, 1) if flow or rng.random() < 0.3]
    lines += [f"a {tail} {head} 0 {capacity} {cost}" for (tail, head), (capacity, cost) in arcs.items()]
    edges = read_dimacs("\n".join([f"p min {n_vertices} {len(arcs)}", *lines]).encode())
    problem, network = nx.DiGraph(), nx.DiGraph()
    problem.add_nodes_from((vertex, {"demand": -flow}) for vertex, flow in enumerate(supply, 1))
    problem.add_edges_from((tail, head, {"capacity": c, "weight": w}) for (tail, head), (c, w) in arcs.items())
    network.add_nodes_from(range(edges.n_vertices))
    assert edges.cost is not None
    for tail, head, capacity, cost in zip(edges.tail, edges.head, edges.capacity, edges.cost, strict=True):
        network.add_edge(int(tail), int(head), capacity=int(capacity), weight=int(cost))
    if not any(supply):
        assert edges.source is None
        return
    flow = nx.max_flow_min_cost(network, edges.source, edges.sink)
    value = sum(flow[edges.source].values())
    try:
        least = nx.min_cost_flow_cost(problem)
    except nx.NetworkXUnfeasible:
        assert value < sum(flow for flow in supply if flow > 0)
        return
    assert value == sum(flow for flow in supply if flow > 0)
    assert nx.cost_of_flow(network, flow) == least


EDGES = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 50), st.integers(-9, 9)), min_size=1, max_size=20
)


@settings(deadline=None)
@given(EDGES, st.integers(0, 3), st.one_of(st.none(), st.tuples(st.integers(0, 4), st.integers(0, 4))))
def test_what_is_written_is_read_back(
    rows: list[tuple[int, int, int, int]], decimals: int, ends: tuple[int, int] | None
) -> None:
    tail, head, capacity, cost = (np.array(column) for column in zip(*rows, strict=True))
    source, sink = (None, None) if ends is None or ends[0] == ends[1] else ends
    edges = EdgeList(
        5, tail.astype(np.int32), head.astype(np.int32), capacity, decimals=decimals, source=source, sink=sink,
        cost=cost, cost_decimals=1,
    )  # fmt: skip
    text = write_dimacs_min(edges)
    again = read_dimacs(text)
    assert (again.n_vertices, again.n_edges) == (5, len(rows))  # nothing was added
    assert again.cost is not None
    for name in ("tail", "head", "capacity", "cost"):
        assert np.array_equal(getattr(again, name), getattr(edges, name))
    assert b"c costs are in units of 1e-1" in text
    assert (b"c capacities are in units" in text) == (decimals > 0)
    if again.source is None and source is not None:
        assert b"c the source is %d: write an n line" % (source + 1) in text
    else:
        assert (again.source, again.sink) == (source, sink)
    assert write_dimacs_min(again).splitlines()[-len(rows) :] == text.splitlines()[-len(rows) :]


def test_a_problem_is_written_back_as_it_was_read() -> None:
    edges = read_dimacs(EXAMPLE)
    text = write_dimacs_min(edges)
    assert text.splitlines()[:3] == [b"p min 6 7", b"n 5 4", b"n 6 -4"]
    again = read_dimacs(text)
    assert (again.source, again.sink, again.n_vertices) == (4, 5, 6)
    assert write_dimacs_min(again) == text


def test_kinds_of_edges_that_the_format_does_not_know() -> None:
    edges = EdgeList(
        3,
        np.array([0, 1, 0], np.int32),
        np.array([1, 2, 2], np.int32),
        np.array([3, INFINITE, 7]),
        undirected=np.array([True, False, False]),
        closed=np.array([False, False, True]),
        cost=np.array([1, 2, 3]),
        source=0,
        sink=2,
    )
    again = read_dimacs(write_dimacs_min(edges))
    assert again.tail.tolist() == [0, 1, 0, 1]
    assert again.capacity.tolist() == [3, 7, 0, 3]
    assert again.cost is not None
    assert again.cost.tolist() == [1, 2, 3, 1]
    with pytest.raises(NoCosts, match="write it as max"):
        write_dimacs_min(EdgeList(1, edges.tail[:0], edges.head[:0], edges.capacity[:0]))
