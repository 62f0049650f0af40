"""DIMACS ``max``: the challenge format of 1991, ``p max N M``, ``n ID s|t``, ``a TAIL HEAD CAPACITY``.

Vertices count from 1, capacities are whole numbers; ``c`` lines and empty lines are skipped.
"""

import io

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
from gpu_engine.types import INFINITE

KNOWN = b"cpna"


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
        raise InvalidNetwork(f"line {len(lines)}: the text ends after {len(arcs)} of {n_arcs} arcs", [len(lines)])
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

    The format knows no decimals (capacities are written in units), no undirected edges (written as two arcs),
    no names, and no infinity: that becomes the total of all other capacities plus one, which no flow fills.
    """
    flags = np.broadcast_to(edges.undirected, edges.n_edges)
    tail = np.concatenate([edges.tail, edges.head[flags]])
    head = np.concatenate([edges.head, edges.tail[flags]])
    capacity = np.concatenate([edges.capacity, edges.capacity[flags]])
    finite = capacity != INFINITE
    total = int(capacity[finite].sum())
    text = io.BytesIO()
    if edges.decimals:
        text.write(f"c capacities are in units of 1e-{edges.decimals}\n".encode())
    text.write(f"p max {edges.n_vertices} {len(tail)}\n".encode())
    for vertex, letter in ((edges.source, "s"), (edges.sink, "t")):
        if vertex is not None:
            text.write(f"n {vertex + 1} {letter}\n".encode())
    mark = pa.array(np.zeros(len(tail), dtype=np.int8)).dictionary_encode()
    mark = pa.DictionaryArray.from_arrays(mark.indices, ["a"]) if len(tail) else pa.array([], pa.string())
    columns = [
        mark,
        tail.astype(np.int64) + 1,
        head.astype(np.int64) + 1,
        np.where(finite, capacity, total + 1),
    ]
    table = pa.table(dict(zip("athc", columns, strict=True)))
    options = csv.WriteOptions(include_header=False, delimiter=" ", quoting_style="none")
    csv.write_csv(table, text, options)
    return text.getvalue()


def _problem(text: Bytes, lines: Lines, kind: Bytes) -> tuple[int, int]:
    """The two counts of the only ``p`` line, which must stand before ``n`` and ``a`` lines."""
    problems = lines.where(kind == ord("p"))
    if len(problems) != 1:
        raise InvalidNetwork(f"{len(problems)} 'p max' lines where one is needed", problems.number[:10].tolist())
    number = int(problems.number[0])
    fields = _fields(text, problems, 0)
    if len(fields) != 4 or fields[:2] != ["p", "max"] or not all(map(_is_count, fields[2:])):
        raise InvalidNetwork(f"line {number}: 'p max VERTICES ARCS' expected", [number])
    early = lines.where((lines.number < number) & np.isin(kind, list(b"na")))
    early.place.refuse(np.ones(len(early), dtype=bool), "stands before the 'p' line")
    return int(fields[2]), int(fields[3])


def _terminals(text: Bytes, lines: Lines) -> tuple[int | None, int | None]:
    found: dict[str, int] = {}
    for k in range(min(len(lines), 3)):
        number, fields = int(lines.number[k]), _fields(text, lines, k)
        if len(fields) != 3 or fields[0] != "n" or not _is_count(fields[1]) or fields[2] not in ("s", "t"):
            raise InvalidNetwork(f"line {number}: 'n VERTEX s' or 'n VERTEX t' expected", [number])
        if fields[2] in found:
            raise InvalidNetwork(f"line {number}: a second '{fields[2]}' terminal", [number])
        found[fields[2]] = int(fields[1]) - 1
    return found.get("s"), found.get("t")


def _fields(text: Bytes, lines: Lines, k: int) -> list[str]:
    return text[lines.start[k] : lines.stop[k]].tobytes().decode().split()


def _is_count(field: str) -> bool:
    return field.isdigit() and len(field) <= 18
