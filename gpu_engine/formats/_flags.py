"""Columns of an Arrow stream that say yes or no."""

import numpy as np
import pyarrow as pa

from gpu_engine.errors import ROWS_SHOWN, InvalidNetwork, pointer
from gpu_engine.formats._metadata import Metadata
from gpu_engine.types import BoolArray


def flags(column: pa.Array, name: str) -> BoolArray:
    """bool[m]. Raises `InvalidNetwork` for any other type than boolean, unless there is nothing in the column: an empty
    list has no type of its own."""
    if not len(column):
        return np.zeros(0, np.bool_)
    if not pa.types.is_boolean(column.type):
        raise InvalidNetwork(f"{name} must be boolean, not {column.type}", field=pointer(name))
    found: BoolArray = column.to_numpy(zero_copy_only=False)
    return found


def undirected_of(column: pa.Array | None, metadata: Metadata) -> bool | BoolArray:
    """Which edges are undirected: what the metadata says of all, or bool[m]. Raises `InvalidNetwork` if the metadata
    says that all are, and the column that some are not."""
    of_all = metadata.flag("undirected")
    if column is None:
        return of_all
    found = flags(column, "undirected")
    if of_all and not found.all():
        directed = np.flatnonzero(~found)[:ROWS_SHOWN].tolist()
        detail = "schema metadata undirected is true, and the column undirected has other rows"
        raise InvalidNetwork(detail, directed, field="/undirected")
    return found
