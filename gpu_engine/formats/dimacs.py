"""DIMACS ``max``: the challenge format of 1991, ``p max N M``, ``n ID s|t``, ``a TAIL HEAD CAPACITY``.

Vertices count from 1, capacities are whole numbers; ``c`` lines and empty lines are skipped.
"""

import io
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyarrow import csv

from gpu_engine.errors import InvalidNetwork
from gpu_engine.formats import _capacity
from gpu_engine.formats._assemble import assemble, check_edge_count, check_vertex_count
from gpu_engine.formats._text import (
    Bytes,
    Lines,
    as_text,
    blank_lines,
    first_bytes,
    split_fields,
    split_lines,
)
from gpu_engine.formats.limits import DEFAULT_LIMITS, Limits, Source, load
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.rounding import AS_WRITTEN, Precision
from gpu_engine.types import INFINITE, UnitArray, VertexArray

KNOWN = b"cpna"
STEP = 1 << 16
"""Arcs that are written at a time."""


def read_dimacs(source: Source, limits: Limits = DEFAULT_LIMITS, precision: Precision = AS_WRITTEN) -> EdgeList:
    """Read a ``max`` problem; `InvalidNetwork` names the line. Linear, about a second for a million arcs."""
    precision = precision.of_body(None)
    text = as_text(load(source))
    lines = split_lines(text)
    kind = first_bytes(text, lines)
    known = np.isin(kind, list(KNOWN)) | blank_lines(text, lines)
    lines.place.refuse(~known, "starts with none of c, p, n, a")
    n_vertices, n_arcs = _problem(text, lines, kind)
    check_vertex_count(n_vertices, limits)
    check_edge_count(n_arcs, limits)
    source_vertex, sink_vertex = _terminals(text, lines.where(kind == ord("n")))
    arcs = lines.where(kind == ord("a"))
    if len(arcs) != n_arcs:
        raise InvalidNetwork(f"line {len(lines)}: the text ends after {len(arcs)} of {n_arcs} arcs", lines=[len(lines)])
    columns = split_fields(text, arcs, 3, skip=1)
    names = ("tail", "head", "capacity")
    tail, head, capacity = (column.integers(arcs.place, name) for column, name in zip(columns, names, strict=True))
    amounts = _capacity.from_whole(capacity, arcs.place, precision)
    return assemble(
        tail,
        head,
        amounts.units,
        n_vertices=n_vertices,
        decimals=amounts.decimals,
        source=source_vertex,
        sink=sink_vertex,
        place=arcs.place,
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
    """What `write_dimacs` gives, some arcs at a time."""
    flags = np.broadcast_to(edges.undirected, edges.n_edges)
    backward = np.flatnonzero(flags)
    capacity = edges.effective
    unlimited = capacity == INFINITE
    total = int(capacity[~unlimited].sum()) + int(capacity[flags & ~unlimited].sum())
    yield "".join(f"{line}\n" for line in _head(edges, edges.n_edges + len(backward), unlimited.any())).encode()
    for at in range(0, edges.n_edges, STEP):
        rows = np.arange(at, min(at + STEP, edges.n_edges))
        yield _arcs(edges.tail[rows], edges.head[rows], capacity[rows], total + 1)
    for at in range(0, len(backward), STEP):
        rows = backward[at : at + STEP]
        yield _arcs(edges.head[rows], edges.tail[rows], capacity[rows], total + 1)


def _head(edges: EdgeList, n_arcs: int, is_unlimited: bool) -> Iterator[str]:
    """What goes before the arcs."""
    if edges.decimals:
        yield f"c capacities are in units of 1e-{edges.decimals}"
    if is_unlimited:
        yield "c edges without limit have one more than all capacities together"
    if np.any(edges.undirected):
        yield "c undirected edges are two arcs: the second ones stand at the end"
    if edges.closed is not None:
        yield f"c {int(edges.closed.sum())} closed edges have capacity 0"
    if edges.cost is not None:
        yield "c arcs have costs, which are not here"
    if edges.vertex_labels is not None or edges.edge_ids is not None:
        yield "c vertices and arcs are numbered in order: their names are not here"
    yield f"p max {edges.n_vertices} {n_arcs}"
    for vertex, letter in ((edges.source, "s"), (edges.sink, "t")):
        if vertex is not None:
            yield f"n {vertex + 1} {letter}"


def _arcs(tail: VertexArray, head: VertexArray, capacity: UnitArray, unlimited: int) -> bytes:
    """One line for each arc, at least one."""
    mark = pa.DictionaryArray.from_arrays(np.zeros(len(tail), np.int8), ["a"])
    columns = [mark, tail.astype(np.int64) + 1, head.astype(np.int64) + 1]
    columns.append(np.where(capacity == INFINITE, unlimited, capacity))
    table = pa.table(dict(zip("athc", columns, strict=True)))
    text = io.BytesIO()
    options = csv.WriteOptions(include_header=False, delimiter=" ", quoting_style="none")
    csv.write_csv(table, text, options)
    return text.getvalue()


def _problem(text: Bytes, lines: Lines, kind: Bytes) -> tuple[int, int]:
    """The two counts of the only ``p`` line, which must stand before ``n`` and ``a`` lines."""
    problems = lines.where(kind == ord("p"))
    if len(problems) != 1:
        raise InvalidNetwork(
            f"{len(problems)} 'p max' lines where one is needed: 'p max VERTICES ARCS'",
            lines=problems.number[:10].tolist(),
        )
    number = int(problems.number[0])
    fields = _fields(text, problems, 0)
    if len(fields) != 4 or fields[:2] != ["p", "max"] or not all(map(_is_count, fields[2:])):
        raise InvalidNetwork(f"line {number}: 'p max VERTICES ARCS' expected", lines=[number])
    early = lines.where((lines.number < number) & np.isin(kind, list(b"na")))
    early.place.refuse(np.ones(len(early), dtype=bool), "stands before the 'p' line")
    return int(fields[2]), int(fields[3])


def _terminals(text: Bytes, lines: Lines) -> tuple[int | None, int | None]:
    found: dict[str, int] = {}
    for k in range(min(len(lines), 3)):
        number, fields = int(lines.number[k]), _fields(text, lines, k)
        if len(fields) != 3 or fields[0] != "n" or not _is_count(fields[1]) or fields[2] not in ("s", "t"):
            raise InvalidNetwork(f"line {number}: 'n VERTEX s' or 'n VERTEX t' expected", lines=[number])
        if fields[2] in found:
            raise InvalidNetwork(f"line {number}: a second '{fields[2]}' terminal", lines=[number])
        found[fields[2]] = int(fields[1]) - 1
    return found.get("s"), found.get("t")


def _fields(text: Bytes, lines: Lines, k: int) -> list[str]:
    return text[lines.start[k] : lines.stop[k]].tobytes().decode().split()


def _is_count(field: str) -> bool:
    return field.isdigit() and len(field) <= 18
