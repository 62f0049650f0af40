"""Changes of structure as bytes, for the log of a graph and for its snapshots."""

import io
from typing import Any, Final

import numpy as np
import zstandard

from gpu_engine.networks.structure import Structure
from gpu_engine.text.texts import Texts

NAMES: Final = ("vertex_labels", "edge_ids")
COLUMNS: Final = ("tail", "head", "undirected", "deleted", "revived")
OPTIONAL: Final = ("cost", "lower", "x", "y")
OF_VERTICES: Final = ("deleted_vertices", "revived_vertices")
"""Where there are any, the number of inserted vertices has another name: an earlier release, which looks for
`n_vertices`, must not take the rest for the whole change."""
OF_BOUNDED: Final = "n_beside"
"""The name of that number if inserted edges have lower bounds, for the same reason."""


def pack_structure(structure: Structure) -> bytes:
    """An npz of plain arrays, compressed, with a checksum."""
    arrays: dict[str, Any] = {name: getattr(structure, name) for name in COLUMNS}
    of_vertices = {name: getattr(structure, name) for name in OF_VERTICES}
    is_newer = structure.lower is not None or any(len(column) for column in of_vertices.values())
    arrays |= of_vertices if is_newer else {}
    count = OF_BOUNDED if structure.lower is not None else "n_inserted" if is_newer else "n_vertices"
    arrays[count] = np.int64(structure.n_vertices)
    for name in NAMES:
        column = getattr(structure, name)
        if isinstance(column, np.ndarray):
            arrays[name] = column.astype(np.int64)
        elif column is not None:
            texts = Texts.of(column).copy()
            arrays |= {f"{name}.data": texts.data, f"{name}.offsets": texts.offsets}
    arrays |= {name: column for name in OPTIONAL if (column := getattr(structure, name)) is not None}
    plain = io.BytesIO()
    np.savez(plain, **arrays)
    return zstandard.ZstdCompressor(level=1, write_checksum=True).compress(plain.getvalue())


def unpack_structure(data: bytes) -> Structure:
    """The inverse. Raises ValueError, KeyError, OSError or ZstdError."""
    with np.load(io.BytesIO(zstandard.ZstdDecompressor().decompress(data)), allow_pickle=False) as arrays:
        count = next((name for name in (OF_BOUNDED, "n_inserted") if name in arrays.files), "n_vertices")
        is_newer = count != "n_vertices"
        read: dict[str, Any] = {name: arrays[name] for name in (*COLUMNS, *(OF_VERTICES if is_newer else ()))}
        for name in NAMES:
            if name in arrays.files:
                read[name] = arrays[name]
            elif f"{name}.data" in arrays.files:
                read[name] = Texts(arrays[f"{name}.data"], arrays[f"{name}.offsets"])
        read |= {name: arrays[name] for name in OPTIONAL if name in arrays.files}
        return Structure(n_vertices=int(arrays[count]), **read)
