"""DIMACS ``min``: ``p min N M``, ``n ID FLOW``, ``a TAIL HEAD LOWER CAPACITY COST``.

A positive FLOW is a supply, a negative one a demand; all of them add up to zero. Costs are whole numbers of either
sign. What a vertex supplies becomes the capacity of an arc to it from a source, what it demands
that of an arc to a sink, both added behind the other vertices: the cheapest flow of the largest value is the answer
to the problem, or there is none if that value is less than all that is supplied. Nothing is added where one vertex
supplies as much as its arcs carry, and one demands as much: they are source and sink themselves.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gpu_engine.errors import InvalidNetwork, NoCosts
from gpu_engine.formats import _capacity, _costs, _lower
from gpu_engine.formats._assemble import assemble
from gpu_engine.formats._dimacs import Problem
from gpu_engine.formats._dimacs_arcs import Arcs, written_arcs
from gpu_engine.formats._place import Place
from gpu_engine.formats._text import Fields
from gpu_engine.formats._vertices import refuse_limited
from gpu_engine.formats.limits import Limits
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.rounding import Precision
from gpu_engine.types import MAX_TOTAL, BoolArray

MINUS = ord("-")
Column = NDArray[np.int64]


def read_min(problem: Problem, limits: Limits, precision: Precision) -> EdgeList:
    """The network of a ``min`` problem; `InvalidNetwork` names the line."""
    place = problem.arcs.place
    tail, head, lower, capacity, cost = problem.columns(problem.arcs, 5)
    least = lower.integers(place, "lower bound")
    ends = _vertices(tail, "tail", place, problem), _vertices(head, "head", place, problem)
    carried = capacity.integers(place, "capacity")
    vertices, flows = _flows(problem)
    added, source, sink = _terminals(problem.n_vertices, ends, carried, vertices, flows)
    rows = np.flatnonzero(flows) if added else np.zeros(0, np.int64)
    supplies = flows[rows] > 0
    place = Place("line", numbers=np.concatenate([problem.arcs.number, problem.nodes.number[rows]]))
    amounts = _capacity.from_whole(np.concatenate([carried, np.abs(flows[rows])]), place, precision)
    signed = np.concatenate([_signed(cost, problem.arcs.place, "cost"), np.zeros(len(rows), np.int64)])
    bounds = np.concatenate([least, np.zeros(len(rows), np.int64)])
    has_bounds = _capacity.from_whole(bounds, place, precision) if least.any() else None
    amounts, _, lower_units = _lower.in_same_units(amounts, None, has_bounds)
    return assemble(
        np.concatenate([ends[0], np.where(supplies, problem.n_vertices + 1, vertices[rows])]),
        np.concatenate([ends[1], np.where(supplies, vertices[rows], problem.n_vertices + 2)]),
        amounts.units,
        n_vertices=problem.n_vertices + (2 if added else 0),
        decimals=amounts.decimals,
        source=source,
        sink=sink,
        place=place,
        first_vertex=1,
        costs=_costs.from_numbers(signed, place, None, precision.of_costs(None)),
        lower=lower_units,
        limits=limits,
    )


def write_dimacs_min(edges: EdgeList) -> bytes:
    """The network as a ``min`` problem, with what `dimacs.write_dimacs` says of its arcs, and costs in units."""
    return b"".join(dimacs_min_pieces(edges))


def dimacs_min_pieces(edges: EdgeList) -> Iterator[bytes]:
    """What `write_dimacs_min` gives, some arcs at a time. Raises `NoCosts` or `HasVertexCapacities`."""
    refuse_limited(edges, "DIMACS")
    if edges.cost is None:
        raise NoCosts("the edges of this graph have no costs, which a DIMACS min problem needs; write it as max")
    arcs = Arcs(edges)
    head = [*arcs.comments]
    if edges.cost_decimals:
        head.append(f"c costs are in units of 1e-{edges.cost_decimals}")
    value = _balanced(edges, arcs)
    if value is None:
        for name, vertex in (("source", edges.source), ("sink", edges.sink)):
            if vertex is not None:
                head.append(f"c the {name} is {vertex + 1}: write an n line with the flow that is wanted")
    head.append(f"p min {edges.n_vertices} {arcs.count}")
    if value is not None and edges.source is not None and edges.sink is not None:
        head += [f"n {edges.source + 1} {value}", f"n {edges.sink + 1} {-value}"]
    yield "".join(f"{line}\n" for line in head).encode()
    for tail, end, capacity, rows in arcs:
        least = np.zeros(len(rows), np.int64) if edges.lower is None else edges.lower[rows]
        yield written_arcs(tail, end, least, capacity, edges.cost[rows])


def _balanced(edges: EdgeList, arcs: Arcs) -> int | None:
    """What all arcs of the source carry, if those of the sink carry as much: then it can be said what flows."""
    if edges.source is None or edges.sink is None or np.any(edges.undirected):
        return None
    leaves, arrives = edges.tail == edges.source, edges.head == edges.sink
    return _shared(arcs.capacity, leaves, arrives, (edges.head == edges.source) | (edges.tail == edges.sink))


def _shared(capacity: Column, leaves: BoolArray, arrives: BoolArray, others: BoolArray) -> int | None:
    """The sum of the capacities that leave, if as much arrives, no edge goes the other way, and none has no limit."""
    given, wanted = capacity[leaves], capacity[arrives]
    if np.any(others) or max(given.max(initial=0), wanted.max(initial=0)) > MAX_TOTAL:
        return None
    supply, demand = int(given.sum(dtype=object)), int(wanted.sum(dtype=object))
    return supply if supply == demand > 0 else None


def _flows(problem: Problem) -> tuple[Column, Column]:
    """The vertices of the ``n`` lines, from 1, and what each supplies."""
    place = problem.nodes.place
    vertex, flow = problem.columns(problem.nodes, 2)
    vertices, flows = _vertices(vertex, "vertex", place, problem), _signed(flow, place, "flow")
    repeated = np.ones(len(vertices), np.bool_)
    repeated[np.unique(vertices, return_index=True)[1]] = False
    place.refuse(repeated, "has a second line", what="vertex", value_of=vertices.__getitem__)
    place.refuse(np.abs(flows) > MAX_TOTAL, "is too large", what="flow")
    supply, demand = (int(flows[flows * sign > 0].sum(dtype=object)) * sign for sign in (1, -1))
    if supply != demand:
        raise InvalidNetwork(f"the supplies add up to {supply} and the demands to {demand}: they must be equal")
    return vertices, flows


def _vertices(column: Fields, what: str, place: Place, problem: Problem) -> Column:
    """Vertices of the problem, from 1: none of those that are added."""
    found, last = column.integers(place, what), problem.n_vertices
    place.refuse((found < 1) | (found > last), f"is no vertex 1 .. {last}", what=what, value_of=found.__getitem__)
    return found


def _terminals(
    n_vertices: int, ends: tuple[Column, Column], capacity: Column, vertices: Column, flows: Column
) -> tuple[bool, int | None, int | None]:
    """Whether a source and a sink are added, and which these are, from 0."""
    givers, takers = vertices[flows > 0], vertices[flows < 0]
    if not len(givers):
        return False, None, None
    if len(givers) == len(takers) == 1:
        (tail, head), giver, taker = ends, givers[0], takers[0]
        shared = _shared(capacity, tail == giver, head == taker, (head == giver) | (tail == taker))
        if shared == flows.max():
            return False, int(giver) - 1, int(taker) - 1
    return True, n_vertices, n_vertices + 1


def _signed(column: Fields, place: Place, what: str) -> Column:
    """Whole numbers with a minus sign or without."""
    first = column.text[np.minimum(column.start, max(len(column.text) - 1, 0))] if len(column.start) else column.start
    below = np.asarray(first == MINUS)
    place.refuse(column.stop - column.start == below, "is not a whole number", what=what)
    sizes = Fields(column.text, column.start + below, column.stop).integers(place, what)
    return np.where(below, -sizes, sizes)
