"""Matrix Market coordinate files: an entry ``i j value`` is an edge from `i` to `j`, counting from 1.

Boisvert, Pozo and Remington, "The Matrix Market exchange formats", NISTIR 5935 (1996). Read are square
``coordinate`` matrices, ``integer``, ``real`` or ``pattern`` (capacity 1), ``general`` or ``symmetric``
(every entry is one undirected edge).
"""

import numpy as np

from gpu_engine.errors import InvalidNetwork
from gpu_engine.formats import _capacity
from gpu_engine.formats._assemble import assemble, check_edge_count, check_vertex_count
from gpu_engine.formats._infinity import as_inf
from gpu_engine.formats._looks import LOOKED_AT, seems_to_be
from gpu_engine.formats._place import shown
from gpu_engine.formats._text import (
    Bytes,
    Lines,
    as_text,
    blank_lines,
    fields_of,
    first_bytes,
    split_fields,
    split_lines,
)
from gpu_engine.formats.limits import DEFAULT_LIMITS, Limits, Source, load
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.rounding import AS_WRITTEN, Precision

BANNER = ["%%matrixmarket", "matrix", "coordinate"]
VALUES = ("integer", "real", "pattern")
SYMMETRIES = ("general", "symmetric")


def read_matrix_market(source: Source, limits: Limits = DEFAULT_LIMITS, precision: Precision = AS_WRITTEN) -> EdgeList:
    """Read a coordinate matrix; real values become exact decimals, `InvalidNetwork` names the line."""
    precision = precision.of_body(None)
    text = as_text(load(source), comment="%")
    lines = split_lines(text)
    value, symmetry = _banner(text, lines)
    comment = first_bytes(text, lines) == ord("%")
    content = lines.where(~comment & ~blank_lines(text, lines))
    size = _size(text, content)
    check_vertex_count(size[0], limits)
    check_edge_count(size[2], limits)
    entries = content.where(np.arange(len(content)) > 0)
    if len(entries) != size[2]:
        raise InvalidNetwork(f"line {len(lines)}: {len(entries)} of {size[2]} entries", lines=[len(lines)])
    columns = split_fields(text, entries, 2 if value == "pattern" else 3)
    if value == "pattern":
        amounts = _capacity.from_whole(np.ones(len(entries), dtype=np.int64), entries.place, precision)
    else:
        amounts = _capacity.from_text(as_inf(columns[2].strings()), entries.place, precision)
        broken = (amounts.units % 10**amounts.decimals != 0) & (value == "integer")
        entries.place.refuse(broken, "is no whole number, as the first line says")
    return assemble(
        columns[0].integers(entries.place, "row index"),
        columns[1].integers(entries.place, "column index"),
        amounts.units,
        n_vertices=size[0],
        undirected=symmetry == "symmetric",
        decimals=amounts.decimals,
        rounded=amounts.rounded,
        place=entries.place,
        first_vertex=1,
        limits=limits,
    )


def _banner(text: Bytes, lines: Lines) -> tuple[str, str]:
    fields = fields_of(text, lines, 0) if len(lines) else []
    if [field.lower() for field in fields[:3]] != BANNER or len(fields) != 5:
        other = seems_to_be(text[:LOOKED_AT].tobytes(), "Matrix Market") if len(text) else ""
        raise InvalidNetwork(f"line 1: '%%MatrixMarket matrix coordinate VALUE SYMMETRY' expected{other}", lines=[1])
    value, symmetry = fields[3].lower(), fields[4].lower()
    if value not in VALUES or symmetry not in SYMMETRIES:
        known = f"{', '.join(VALUES)} and {', '.join(SYMMETRIES)}"
        raise InvalidNetwork(f"line 1: only {known} are read, not {shown(value)} {shown(symmetry)}", lines=[1])
    return value, symmetry


def _size(text: Bytes, content: Lines) -> tuple[int, int, int]:
    fields = fields_of(text, content, 0) if len(content) else []
    number = int(content.number[0]) if len(content) else 1
    if len(fields) != 3 or not all(field.isdigit() and len(field) <= 18 for field in fields):
        raise InvalidNetwork(f"line {number}: 'ROWS COLUMNS ENTRIES' expected", lines=[number])
    rows, columns, entries = map(int, fields)
    if rows != columns:
        raise InvalidNetwork(f"line {number}: the matrix must be square, not {rows} x {columns}", lines=[number])
    return rows, columns, entries
