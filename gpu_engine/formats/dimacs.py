"""DIMACS ``max``: the challenge format of 1991, ``p max N M``, ``n ID s|t``, ``a TAIL HEAD CAPACITY``.

Vertices count from 1, capacities are whole numbers; ``c`` lines and empty lines are skipped. ``read_dimacs`` reads
``p min`` as well, which `dimacs_min` describes.
"""

from collections.abc import Iterator

from gpu_engine.errors import InvalidNetwork
from gpu_engine.formats import _capacity
from gpu_engine.formats._assemble import assemble
from gpu_engine.formats._dimacs import Problem, is_count, read_problem
from gpu_engine.formats._dimacs_arcs import Arcs, written_arcs
from gpu_engine.formats._text import fields_of
from gpu_engine.formats._vertices import refuse_limited
from gpu_engine.formats.dimacs_min import read_min
from gpu_engine.formats.limits import DEFAULT_LIMITS, Limits, Source
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.rounding import AS_WRITTEN, Precision


def read_dimacs(source: Source, limits: Limits = DEFAULT_LIMITS, precision: Precision = AS_WRITTEN) -> EdgeList:
    """Read a problem; `InvalidNetwork` names the line. Linear, about a second for a million arcs."""
    precision = precision.of_body(None)
    problem = read_problem(source, limits)
    if problem.kind == "min":
        return read_min(problem, limits, precision)
    source_vertex, sink_vertex = _terminals(problem)
    place, names = problem.arcs.place, ("tail", "head", "capacity")
    columns = zip(problem.columns(problem.arcs, 3), names, strict=True)
    tail, head, capacity = (column.integers(place, name) for column, name in columns)
    amounts = _capacity.from_whole(capacity, place, precision)
    return assemble(
        tail,
        head,
        amounts.units,
        n_vertices=problem.n_vertices,
        decimals=amounts.decimals,
        source=source_vertex,
        sink=sink_vertex,
        place=place,
        first_vertex=1,
        limits=limits,
    )


def write_dimacs(edges: EdgeList) -> bytes:
    """The network as a ``max`` problem.

    The format knows no decimals (capacities are written in units), no undirected edges (written as two arcs), no
    closed edges (their capacity is 0), no names, and no infinity: that becomes the total of all other capacities plus
    one, which no flow fills. What is lost is said in ``c`` lines.
    """
    return b"".join(dimacs_pieces(edges))


def dimacs_pieces(edges: EdgeList) -> Iterator[bytes]:
    """What `write_dimacs` gives, some arcs at a time. Raises `HasVertexCapacities`."""
    refuse_limited(edges, "DIMACS")
    arcs = Arcs(edges)
    head = [*arcs.comments]
    if edges.cost is not None:
        head.append("c arcs have costs, which are not here")
    head.append(f"p max {edges.n_vertices} {arcs.count}")
    for vertex, letter in ((edges.source, "s"), (edges.sink, "t")):
        if vertex is not None:
            head.append(f"n {vertex + 1} {letter}")
    yield "".join(f"{line}\n" for line in head).encode()
    for tail, end, capacity, _ in arcs:
        yield written_arcs(tail, end, capacity)


def _terminals(problem: Problem) -> tuple[int | None, int | None]:
    lines = problem.nodes
    found: dict[str, int] = {}
    for k in range(min(len(lines), 3)):
        number, fields = int(lines.number[k]), fields_of(problem.text, lines, k)
        if len(fields) != 3 or fields[0] != "n" or not is_count(fields[1]) or fields[2] not in ("s", "t"):
            raise InvalidNetwork(f"line {number}: 'n VERTEX s' or 'n VERTEX t' expected", lines=[number])
        if fields[2] in found:
            raise InvalidNetwork(f"line {number}: a second '{fields[2]}' terminal", lines=[number])
        found[fields[2]] = int(fields[1]) - 1
    return found.get("s"), found.get("t")
