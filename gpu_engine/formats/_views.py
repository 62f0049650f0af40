"""Columns of Arrow's text views, which Polars writes: read as texts that each have bytes of their own.

A view is 16 bytes: the length of its text, int32, and the text itself up to 12 bytes, else where it lies in a buffer
beside. So many views may show the same bytes, and a small stream may stand for texts without end (Arrow format 1.4,
variable-size binary view layout).
"""

import numpy as np
import pyarrow as pa

from gpu_engine.errors import TooLarge, pointer
from gpu_engine.formats._arrow_check import StreamSize, has_views, is_text_dictionary
from gpu_engine.formats._place import shown


def check_views(table: pa.Table, size: StreamSize) -> None:
    """Raises `TooLarge` where the texts of all columns come to more bytes than `measure` has found. Cost: O(rows)."""
    total = 0
    for at, field in enumerate(table.schema):
        if not has_views(field.type):
            continue
        words = is_text_dictionary(field.type)
        total += sum(_viewed_bytes(chunk.dictionary if words else chunk) for chunk in table.column(at).chunks)
        if total > size.text_bytes:
            detail = f"the texts of {shown(field.name)} share bytes, and are over {size.text_bytes} bytes written out"
            raise TooLarge(f"{detail}: send them as large_string, or as a dictionary", field=pointer(field.name))


def without_views(table: pa.Table) -> pa.Table:
    """The table with its views as large texts."""
    for at, field in enumerate(table.schema):
        if not has_views(field.type):
            continue
        to = pa.large_string()
        chunks = table.column(at).chunks
        if is_text_dictionary(field.type):
            plain = [pa.DictionaryArray.from_arrays(chunk.indices, chunk.dictionary.cast(to)) for chunk in chunks]
            to = pa.dictionary(field.type.index_type, to)
        else:
            plain = [chunk.cast(to) for chunk in chunks]
        table = table.set_column(at, field.name, pa.chunked_array(plain, to))
    return table


def _viewed_bytes(views: pa.Array) -> int:
    """Bytes of the texts that the views show; a length below 0, which is no text, counts as a large one."""
    end = views.offset + len(views)
    heads = np.frombuffer(views.buffers()[1] or b"", np.uint32, 4 * end).reshape(-1, 4)
    lengths = heads[views.offset :, 0]
    return int(lengths.sum(where=views.is_valid().to_numpy(zero_copy_only=False), dtype=np.int64))
