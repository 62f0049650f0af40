"""An edge list as bytes. A stand-in for `gpu_engine.formats.pack` and `unpack`, to be dropped for them."""

import io
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

from gpu_engine.edgelist import EdgeList
from gpu_engine.errors import InvalidNetwork


def pack(edges: EdgeList) -> bytes:
    """A compressed npz of plain arrays; string columns travel as JSON."""
    scalars = {"n": edges.n_vertices, "decimals": edges.decimals, "source": edges.source, "sink": edges.sink}
    arrays: dict[str, NDArray[Any]] = {
        "tail": edges.tail,
        "head": edges.head,
        "capacity": edges.capacity,
        "undirected": np.asarray(edges.undirected),
        "scalars": _json_array(scalars),
    }
    for name, column in (("edge_ids", edges.edge_ids), ("vertex_labels", edges.vertex_labels)):
        if isinstance(column, np.ndarray):
            arrays[name] = column
        elif column is not None:
            arrays[f"{name}_json"] = _json_array(list(column))
    plain = io.BytesIO()
    np.savez(plain, allow_pickle=False, **arrays)
    return zstandard.ZstdCompressor(level=1, write_checksum=True).compress(plain.getvalue())


def unpack(data: bytes) -> EdgeList:
    """The inverse; raises `InvalidNetwork`."""
    try:
        raw = zstandard.ZstdDecompressor().decompress(data)
        with np.load(io.BytesIO(raw), allow_pickle=False) as arrays:
            scalars = json.loads(arrays["scalars"].tobytes())
            undirected = arrays["undirected"]
            return EdgeList(
                n_vertices=scalars["n"],
                tail=arrays["tail"],
                head=arrays["head"],
                capacity=arrays["capacity"],
                undirected=undirected if undirected.ndim else bool(undirected),
                decimals=scalars["decimals"],
                edge_ids=_column(arrays, "edge_ids"),
                vertex_labels=_column(arrays, "vertex_labels"),
                source=scalars["source"],
                sink=scalars["sink"],
            )
    except (KeyError, ValueError, OSError, zstandard.ZstdError) as error:
        raise InvalidNetwork(f"the packed edge list cannot be read: {error}") from error


def _json_array(value: object) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps(value).encode(), np.uint8)


def _column(arrays: Any, name: str) -> NDArray[np.int64] | Sequence[str] | None:
    if f"{name}_json" in arrays:
        strings: list[str] = json.loads(arrays[f"{name}_json"].tobytes())
        return strings
    found: NDArray[np.int64] | None = arrays.get(name)
    return found
