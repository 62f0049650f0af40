"""Networks in and out: every format reads into an `EdgeList`, most are written from one.

Readers take bytes, a path or an open binary file, and `Limits`. Malformed or truncated input raises
`InvalidNetwork` (`TooLarge`, `CapacityOverflow`) with the line or row, never anything else, and nothing is
left half loaded. ``read(data, media_type)`` picks the reader for an HTTP body, ``read_file(path)`` by the
suffix.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import PurePath
from types import MappingProxyType
from typing import TypeAlias

from gpu_engine.errors import InvalidNetwork
from gpu_engine.formats._place import shown
from gpu_engine.formats.adjacency import from_matrix, read_adjacency, read_npy
from gpu_engine.formats.arrow import arrow_pieces, pack, pack_into, read_arrow, unpack, write_arrow
from gpu_engine.formats.column_files import Columns, Part, arrow_columns, npz_columns
from gpu_engine.formats.columnar_json import from_columns, read_json, write_json
from gpu_engine.formats.csv_table import read_csv, write_csv
from gpu_engine.formats.dimacs import dimacs_pieces, read_dimacs, write_dimacs
from gpu_engine.formats.dimacs_min import dimacs_min_pieces, write_dimacs_min
from gpu_engine.formats.limits import DEFAULT_LIMITS, FREE_BYTES, Limits, Source
from gpu_engine.formats.matrix_market import read_matrix_market
from gpu_engine.formats.npz import npz_pieces, read_npz, write_npz
from gpu_engine.formats.reading import reading_bytes
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.rounding import AS_WRITTEN, Precision

__all__ = [
    "DEFAULT_LIMITS",
    "FREE_BYTES",
    "MEDIA_TYPES",
    "SUFFIXES",
    "Columns",
    "Limits",
    "Part",
    "Reader",
    "Source",
    "arrow_columns",
    "arrow_pieces",
    "dimacs_min_pieces",
    "dimacs_pieces",
    "from_columns",
    "from_matrix",
    "npz_columns",
    "npz_pieces",
    "pack",
    "pack_into",
    "read",
    "read_adjacency",
    "read_arrow",
    "read_csv",
    "read_dimacs",
    "read_file",
    "read_json",
    "read_matrix_market",
    "read_npy",
    "read_npz",
    "reading_bytes",
    "unpack",
    "write_arrow",
    "write_csv",
    "write_dimacs",
    "write_dimacs_min",
    "write_floats",
    "write_json",
    "write_lines",
    "write_npz",
]

Reader: TypeAlias = Callable[[Source, Limits, Precision], EdgeList]

MEDIA_TYPES: Mapping[str, Reader] = MappingProxyType(
    {
        "application/json": read_json,
        "application/vnd.apache.arrow.stream": read_arrow,
        "application/x-npz": read_npz,
        "application/x-npy": read_npy,
        "text/x-dimacs": read_dimacs,
        "text/csv": read_csv,
        "text/x-matrix-market": read_matrix_market,
        "text/x-adjacency-matrix": read_adjacency,
    }
)
"""Body media type to reader; parameters such as ``charset`` are to be cut off before."""

SUFFIXES: Mapping[str, str] = MappingProxyType(
    {
        ".json": "application/json",
        ".arrow": "application/vnd.apache.arrow.stream",
        ".arrows": "application/vnd.apache.arrow.stream",
        ".npz": "application/x-npz",
        ".npy": "application/x-npy",
        ".max": "text/x-dimacs",
        ".min": "text/x-dimacs",
        ".dimacs": "text/x-dimacs",
        ".csv": "text/csv",
        ".mtx": "text/x-matrix-market",
        ".adj": "text/x-adjacency-matrix",
    }
)
"""File name suffix to media type."""


def read(
    source: Source, media_type: str, limits: Limits = DEFAULT_LIMITS, precision: Precision = AS_WRITTEN
) -> EdgeList:
    """Read a body of the given media type; parameters after ``;`` are ignored.

    `precision` counts for more than what the body says of its own decimals, which then says no more than what its
    whole numbers are units of.
    """
    essence = media_type.partition(";")[0].strip().lower()
    if essence not in MEDIA_TYPES:
        raise InvalidNetwork(f"media type {shown(essence)} is not read; known are {', '.join(MEDIA_TYPES)}")
    edges = MEDIA_TYPES[essence](source, limits, precision)
    if edges.cost is None:
        precision.refuse_costs()
    return edges


def read_file(
    path: str | os.PathLike[str], limits: Limits = DEFAULT_LIMITS, precision: Precision = AS_WRITTEN
) -> EdgeList:
    """Read a file by its suffix; `OSError` if it cannot be opened."""
    suffix = PurePath(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise InvalidNetwork(f"suffix {shown(suffix)} is not read; known are {', '.join(SUFFIXES)}")
    return read(path, SUFFIXES[suffix], limits, precision)
