"""Adjacency matrices: entry ``[i, j]`` above zero is an edge from `i` to `j` of that capacity.

Dense as text (a row per line, blanks or commas between), as an ``.npy`` file or as an array; sparse as any
object with SciPy's ``tocoo()``.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_engine.errors import InvalidNetwork
from gpu_engine.formats import _capacity
from gpu_engine.formats._assemble import assemble, check_edge_count, check_vertex_count
from gpu_engine.formats._infinity import as_inf
from gpu_engine.formats._npy import read_array
from gpu_engine.formats._place import Place, refusing
from gpu_engine.formats._text import SPACE, Fields, as_text, blank_lines, split_lines, words_of_width
from gpu_engine.formats.limits import DEFAULT_LIMITS, Limits, Source, load
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.rounding import AS_WRITTEN, Precision

ENTRIES = Place("entry")
"""Sparse and dense arrays have no rows of edges; the number is that of the non-zero entry, row by row."""


def read_adjacency(source: Source, limits: Limits = DEFAULT_LIMITS, precision: Precision = AS_WRITTEN) -> EdgeList:
    """Read a dense matrix of text; `InvalidNetwork` names the line."""
    precision = precision.of_body(None)
    text = as_text(load(source))
    text = np.where(text == ord(","), np.uint8(SPACE), text)
    lines = split_lines(text)
    lines = lines.where(~blank_lines(text, lines))
    n = len(lines)
    check_vertex_count(n, limits)
    if n == 0:
        raise InvalidNetwork("the matrix is empty")
    fields = Fields(text, *words_of_width(text, lines, n))
    place = Place("line", numbers=np.repeat(lines.number, n))
    amounts = _capacity.from_text(as_inf(fields.strings()), place, precision)
    tail, head = np.divmod(np.flatnonzero(amounts.units), n)
    check_edge_count(len(tail), limits)
    units = amounts.units[amounts.units != 0]
    return assemble(tail, head, units, n_vertices=n, decimals=amounts.decimals, rounded=amounts.rounded, limits=limits)


def read_npy(source: Source, limits: Limits = DEFAULT_LIMITS, precision: Precision = AS_WRITTEN) -> EdgeList:
    """Read a dense matrix from an ``.npy`` file."""
    data = load(source)
    with refusing("not an npy array", ValueError, EOFError, OSError):
        matrix = read_array(data, "matrix")
    return from_matrix(matrix, limits=limits, precision=precision)


def from_matrix(
    matrix: Any,
    *,
    undirected: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    precision: Precision = AS_WRITTEN,
) -> EdgeList:
    """The network of a 2-D array or of a sparse matrix with ``tocoo()``.

    With `undirected` the matrix must be symmetric and each pair of equal entries is one undirected edge.
    Explicit zeros are no edges. Integer entries are whole amounts, floats the decimals they are nearest to.
    """
    shape = getattr(matrix, "shape", None)
    if shape is None or len(shape) != 2 or shape[0] != shape[1]:
        raise InvalidNetwork(f"a square matrix is expected, not one of shape {shape}")
    n = int(shape[0])
    check_vertex_count(n, limits)
    tail, head, entry = _entries(matrix)
    check_edge_count(len(tail), limits)
    if entry.dtype.kind not in "iuf":
        raise InvalidNetwork(f"entries must be integers or floats, not {entry.dtype}")
    convert = _capacity.from_floats if entry.dtype.kind == "f" else _capacity.from_whole
    amounts = convert(entry, ENTRIES, precision.of_body(None))
    units = amounts.units
    if undirected:
        _require_symmetric(n, tail, head, units)
        upper = tail <= head
        tail, head, units = tail[upper], head[upper], units[upper]
    return assemble(
        tail,
        head,
        units,
        n_vertices=n,
        undirected=undirected,
        decimals=amounts.decimals,
        rounded=amounts.rounded,
        place=ENTRIES,
        limits=limits,
    )


def _entries(matrix: Any) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
    """Row, column and value of the non-zero entries, row by row."""
    if not hasattr(matrix, "tocoo"):
        dense = np.asarray(matrix)
        tail, head = np.nonzero(dense)
        return tail, head, dense[tail, head]
    sparse = matrix.tocoo()
    row, column, data = (np.asarray(part) for part in (sparse.row, sparse.col, sparse.data))
    order = np.lexsort((column, row))
    order = order[data[order] != 0]
    return row[order].astype(np.int64), column[order].astype(np.int64), data[order]


def _require_symmetric(n: int, tail: NDArray[np.int64], head: NDArray[np.int64], units: NDArray[np.int64]) -> None:
    there, back = tail * n + head, head * n + tail
    if len(np.unique(there)) < len(there):
        raise InvalidNetwork("an entry occurs more than once")
    order = np.argsort(back, kind="stable")
    same = np.array_equal(np.sort(there), back[order])
    if not same or not np.array_equal(units[np.argsort(there, kind="stable")], units[order]):
        raise InvalidNetwork("an undirected network needs a symmetric matrix")
