"""Changes of structure as bytes, for the log of a graph and for its snapshots."""

import io
from typing import Any, Final

import numpy as np
import zstandard

from gpu_engine.networks.structure import Structure
from gpu_engine.text.texts import Texts

NAMES: Final = ("vertex_labels", "edge_ids")
COLUMNS: Final = ("tail", "head", "undirected", "deleted", "revived")
OPTIONAL: Final = ("cost", "x", "y")


def pack_structure(structure: Structure) -> bytes:
    """An npz of plain arrays, compressed, with a checksum."""
    arrays: dict[str, Any] = {"n_vertices": np.int64(structure.n_vertices)}
    arrays |= {name: getattr(structure, name) for name in COLUMNS}
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
        read: dict[str, Any] = {name: arrays[name] for name in COLUMNS}
        for name in NAMES:
            if name in arrays.files:
                read[name] = arrays[name]
            elif f"{name}.data" in arrays.files:
                read[name] = Texts(arrays[f"{name}.data"], arrays[f"{name}.offsets"])
        read |= {name: arrays[name] for name in OPTIONAL if name in arrays.files}
        return Structure(n_vertices=int(arrays["n_vertices"]), **read)
