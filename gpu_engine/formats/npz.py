"""NumPy archives, read without pickle and without trusting the sizes they claim.

Two sets of field names. Our own: ``tail, head, capacity`` and optionally ``n_vertices, decimals, undirected`` (one flag
or one per edge), ``unlimited`` and ``closed`` (a flag per edge: its capacity never limits; nothing passes until it is
reopened), ``edge_ids, vertex_labels, source, sink, cost, cost_decimals``; whole capacities count units of ``decimals``
(without it: of the caller's unit), and whole costs those of ``cost_decimals``. ``vertices`` are the indices of those
that have a ``vertex_capacity``, in the same unit, some of them perhaps ``vertex_unlimited``. ``x`` and ``y`` are where
each vertex lies, in the system that ``crs`` names. And that of the research data sets: ``n, src, dst, cap, s, t,
undirected``, where a true ``undirected`` says that arcs 2k and 2k+1 are the two directions of one edge of equal
capacity.
"""

import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_engine.errors import InvalidNetwork, pointer
from gpu_engine.formats import _capacity, _costs, _lower
from gpu_engine.formats._assemble import assemble, check_edge_count
from gpu_engine.formats._looks import seems_to_be
from gpu_engine.formats._names import Names
from gpu_engine.formats._npy import HEAD_BYTES, ArrayType, read_array, read_type, write_array
from gpu_engine.formats._place import ROWS, refusing, shown
from gpu_engine.formats._sink import Sink
from gpu_engine.formats._vertices import Limited, from_numbers
from gpu_engine.formats._zip import Archive
from gpu_engine.formats.limits import DEFAULT_LIMITS, Limits, Source, load
from gpu_engine.networks.coordinates import Coordinates, coordinates_of
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.rounding import AS_WRITTEN, Precision
from gpu_engine.text.counted import counted
from gpu_engine.text.near import did_you_mean
from gpu_engine.types import BoolArray

Arrays = Mapping[str, NDArray[Any]]

OWN = ("tail", "head", "capacity")
OWN_OPTIONAL = (
    *("n_vertices", "decimals", "undirected", "unlimited", "closed"),
    *("edge_ids", "vertex_labels", "source", "sink", "cost", "cost_decimals", "lower"),
    *("vertices", "vertex_capacity", "vertex_unlimited"),
    *("x", "y", "crs"),
)
RESEARCH = ("n", "src", "dst", "cap", "s", "t", "undirected")
MALFORMED = (zipfile.BadZipFile, zlib.error, ValueError, EOFError, OSError, struct.error, RuntimeError)
"""zipfile and NumPy raise these for archives that are cut, broken, encrypted or of unknown compression."""


def read_npz(source: Source, limits: Limits = DEFAULT_LIMITS, precision: Precision = AS_WRITTEN) -> EdgeList:
    """Read an archive with either set of field names; linear in its bytes."""
    data = load(source)
    with refusing("not an npz archive" + seems_to_be(data, "npz"), *MALFORMED):
        arrays = _arrays(data, limits)
    if set(OWN) <= set(arrays):
        return _own(arrays, limits, precision)
    if set(RESEARCH) == set(arrays):
        return _research(arrays, limits, precision)
    sets = (OWN, RESEARCH)
    wanted = max(sets, key=lambda names: len(set(names) & set(arrays)))
    missing = next(name for name in wanted if name not in arrays)
    expected = f"{', '.join(wanted)} are expected, not {', '.join(sorted(arrays)) or 'none'}"
    raise InvalidNetwork(f"the array {missing!r} is missing: {expected}", field=pointer(missing))


def write_npz(edges: EdgeList) -> bytes:
    """The network as a compressed archive with our own field names."""
    return b"".join(npz_pieces(edges))


def npz_pieces(edges: EdgeList) -> Iterator[bytes]:
    """What `write_npz` gives, some rows at a time. Raises `InvalidNetwork` for names that NumPy would change."""
    capacity, unlimited = _capacity.split_unlimited(edges.capacity)
    columns: dict[str, Any] = {
        "tail": edges.tail,
        "head": edges.head,
        "capacity": capacity,
        "n_vertices": np.int64(edges.n_vertices),
        "decimals": np.int64(edges.decimals),
        "undirected": edges.undirected,
        "unlimited": unlimited,
        "closed": edges.closed,
        "edge_ids": edges.edge_ids,
        "vertex_labels": edges.vertex_labels,
        "source": None if edges.source is None else np.int64(edges.source),
        "sink": None if edges.sink is None else np.int64(edges.sink),
        "cost": edges.cost,
        "cost_decimals": None if edges.cost is None else np.int64(edges.cost_decimals),
        "lower": edges.lower,
        "vertices": edges.limited,
    }
    if edges.vertex_capacity is not None:
        own, never = _capacity.split_unlimited(edges.vertex_capacity)
        columns |= {"vertex_capacity": own, "vertex_unlimited": never}
    if edges.coordinates is not None:
        places = edges.coordinates
        columns |= {"x": places.x, "y": places.y, "crs": np.str_(places.crs)}
    sink = Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, column in columns.items():
            if column is not None:
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    for piece in write_array(column, name):
                        member.write(piece)
                        yield sink.take()
    yield sink.take()


def read_types(data: bytes | memoryview, limits: Limits) -> dict[str, ArrayType]:
    """The types of the arrays; no more than the first bytes of each are decompressed."""
    with refusing("not an npz archive" + seems_to_be(data, "npz"), *MALFORMED):
        return _types(Archive(data, limits))


def _arrays(data: bytes | memoryview, limits: Limits) -> dict[str, NDArray[Any]]:
    """All arrays; the archive and every header are checked before the first is decompressed."""
    archive = Archive(data, limits)
    return {name: read_array(archive.read(name), name) for name in _types(archive)}


def _types(archive: Archive) -> dict[str, ArrayType]:
    unknown = sorted(set(archive.names) - {*OWN, *OWN_OPTIONAL, *RESEARCH})
    if unknown:
        raise _unknown(unknown[0], archive.names)
    return {name: read_type(archive.head(name, HEAD_BYTES), archive.n_bytes(name), name) for name in archive.names}


def _unknown(name: str, there: Iterable[str]) -> InvalidNetwork:
    others = [other for other in (*OWN, *OWN_OPTIONAL) if other not in there]
    return InvalidNetwork(f"unknown array {shown(name)}{did_you_mean(name, others)}", field=pointer(name))


def _own(arrays: Arrays, limits: Limits, precision: Precision) -> EdgeList:
    unknown = sorted(set(arrays) - {*OWN, *OWN_OPTIONAL})
    if unknown:
        raise _unknown(unknown[0], arrays)
    tail, head = _column(arrays, "tail", "iu"), _column(arrays, "head", "iu")
    check_edge_count(len(tail), limits)
    own = _scalar(arrays, "decimals")
    of_edges = _capacities(_column(arrays, "capacity", "iuf"), own, precision, _flags(arrays, "unlimited"))
    lower = None
    if "lower" in arrays:
        lower = _lower.from_numbers(_column(arrays, "lower", "iuf"), ROWS, own, precision.of_body(own))
    amounts, limited, lower_units = _lower.in_same_units(of_edges, _limited(arrays, own, precision), lower)
    labels = _names(arrays, "vertex_labels")
    n_vertices = _scalar(arrays, "n_vertices")
    return assemble(
        tail,
        head,
        amounts.units,
        n_vertices=len(labels) if n_vertices is None and labels is not None else n_vertices,
        undirected=_undirected(arrays),
        decimals=amounts.decimals,
        rounded=amounts.rounded,
        edge_ids=_names(arrays, "edge_ids"),
        vertex_labels=labels,
        source=_scalar(arrays, "source"),
        sink=_scalar(arrays, "sink"),
        closed=_flags(arrays, "closed"),
        costs=_cost(arrays, precision),
        lower=lower_units,
        limits=limits,
        limited=limited,
        coordinates=_coordinates(arrays),
    )


def _research(arrays: Arrays, limits: Limits, precision: Precision) -> EdgeList:
    tail, head = _column(arrays, "src", "iu"), _column(arrays, "dst", "iu")
    amounts = _capacities(_column(arrays, "cap", "iuf"), None, precision, None)
    units = amounts.units
    undirected = _undirected(arrays)
    if not isinstance(undirected, bool):
        raise InvalidNetwork("undirected must be one flag beside src, dst, cap")
    if not len(tail) == len(head) == len(units):
        raise InvalidNetwork(f"src has {counted(len(tail), 'row')}, dst has {len(head)}, cap has {len(units)}")
    if undirected:
        if len(tail) % 2:
            raise InvalidNetwork(f"undirected edges are pairs of arcs, but there are {len(tail)} arcs")
        paired = (tail[::2] == head[1::2]) & (head[::2] == tail[1::2]) & (units[::2] == units[1::2])
        ROWS.refuse(np.repeat(~paired, 2), "is no pair of opposite arcs of equal capacity", what="arc")
        tail, head, units = tail[::2], head[::2], units[::2]
    return assemble(
        tail,
        head,
        units,
        n_vertices=_scalar(arrays, "n"),
        undirected=undirected,
        decimals=amounts.decimals,
        rounded=amounts.rounded,
        source=_scalar(arrays, "s"),
        sink=_scalar(arrays, "t"),
        limits=limits,
    )


def _column(arrays: Arrays, name: str, kinds: str) -> NDArray[Any]:
    column = arrays[name]
    if column.ndim != 1 or column.dtype.kind not in kinds:
        numbers = "integers" if kinds == "iu" else "numbers"
        hint = "; labels go into vertex_labels, of which tail and head are indices" if column.dtype.kind == "U" else ""
        found = f"not {column.dtype} of shape {column.shape}"
        raise InvalidNetwork(f"{name} must be a column of {numbers}, {found}{hint}", field=pointer(name))
    if column.dtype.kind != "u" or kinds != "iu":
        return column
    # Unsigned numbers of vertices are widened or refused here, so that later subtractions cannot wrap around.
    ROWS.refuse(column > np.iinfo(np.int64).max, "is too large", what=name)
    return column.astype(np.int64)


def _cost(arrays: Arrays, precision: Precision) -> _capacity.Amounts | None:
    own = _scalar(arrays, "cost_decimals")
    if "cost" not in arrays:
        precision.refuse_costs(own)
        return None
    return _costs.from_numbers(_column(arrays, "cost", "iuf"), ROWS, own, precision.of_costs(own))


def _limited(arrays: Arrays, own_decimals: int | None, precision: Precision) -> Limited | None:
    named = [name for name in ("vertices", "vertex_capacity", "vertex_unlimited") if name in arrays]
    if not named:
        return None
    for name in ("vertices", "vertex_capacity"):
        if name not in named:
            raise InvalidNetwork(f"the array {name!r} is missing beside {named[0]!r}", field=pointer(name))
    vertices, amounts = _column(arrays, "vertices", "iu"), _column(arrays, "vertex_capacity", "iuf")
    return from_numbers(vertices, amounts, own_decimals, precision, _flags(arrays, "vertex_unlimited"))


def _coordinates(arrays: Arrays) -> Coordinates | None:
    x, y = (_column(arrays, name, "iuf").astype(np.float64) if name in arrays else None for name in ("x", "y"))
    crs = arrays.get("crs")
    if crs is not None and (crs.size != 1 or crs.dtype.kind != "U"):
        raise InvalidNetwork(f"crs must be one text, not {crs.dtype} of shape {crs.shape}", field="/crs")
    return coordinates_of(x, y, None if crs is None else str(crs.ravel()[0]))


def _capacities(
    column: NDArray[Any], own_decimals: int | None, precision: Precision, unlimited: BoolArray | None
) -> _capacity.Amounts:
    precision = precision.of_body(own_decimals)
    if column.dtype.kind == "f":
        return _capacity.from_floats(column, ROWS, precision, unlimited)
    return _capacity.from_units(column, ROWS, own_decimals, precision, unlimited)


def _scalar(arrays: Arrays, name: str) -> int | None:
    if name not in arrays:
        return None
    value = arrays[name]
    if value.size != 1 or value.dtype.kind not in "iu":
        raise InvalidNetwork(
            f"{name} must be one whole number, not {value.dtype} of shape {value.shape}", field=pointer(name)
        )
    return int(value.ravel()[0])


def _names(arrays: Arrays, name: str) -> Names | None:
    if name not in arrays:
        return None
    column = arrays[name]
    if column.ndim == 1 and column.dtype.kind == "U":
        names: list[str] = column.tolist()
        return names
    return _column(arrays, name, "iu").astype(np.int64)


def _flags(arrays: Arrays, name: str) -> BoolArray | None:
    flags = arrays.get(name)
    if flags is not None and flags.shape == (0,):
        return np.zeros(0, np.bool_)  # NumPy has no way to know of what nothing is
    if flags is not None and (flags.dtype.kind != "b" or flags.ndim != 1):
        found = f"not {flags.dtype}{list(flags.shape)}"
        raise InvalidNetwork(f"{name} must be a boolean for each edge, {found}", field=pointer(name))
    return flags


def _undirected(arrays: Arrays) -> bool | BoolArray:
    flags = arrays.get("undirected", np.array(False))
    if flags.shape == (0,):
        return np.zeros(0, np.bool_)
    if flags.dtype.kind != "b" or flags.ndim > 1:
        found = f"not {flags.dtype}{list(flags.shape)}"
        raise InvalidNetwork(f"undirected must be boolean, {found}", field="/undirected")
    return bool(flags) if flags.ndim == 0 else flags
