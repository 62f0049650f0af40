"""Edges as GeoJSON (RFC 7946): a feature for each, a line from its tail to its head. Written by Arrow's kernels, which
leave the interpreter free; no Python object is made of a row unless its name has to be escaped."""

import json
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpu_engine.formats._names import Names, as_arrow, from_arrow
from gpu_engine.networks.coordinates import Floats
from gpu_engine.text.json_text import write_amounts
from gpu_engine.text.texts import Texts
from gpu_engine.types import BoolArray, UnitArray

TO_ESCAPE: Final = r'[\x00-\x1f"\\]'


def write_floats(column: Floats) -> bytes:
    """Finite floats as JSON numbers with commas between them, each the shortest that stands for it. O(k)."""
    return _joined(_floats(column))


def write_lines(
    ids: Names,
    tails: tuple[Floats, Floats],
    heads: tuple[Floats, Floats],
    flow: UnitArray,
    capacity: UnitArray,
    in_cut: BoolArray,
    decimals: int,
) -> bytes:
    """Features with commas between them: x and y of tails and heads, amounts in units of ``10 ** -decimals``. O(k)."""
    (x1, y1), (x2, y2) = (map(_floats, ends) for ends in (tails, heads))
    parts: list[Any] = [
        '{"type":"Feature","geometry":{"type":"LineString","coordinates":[[',
        *(x1, ",", y1, "],[", x2, ",", y2, ']]},"properties":{"id":', _json_names(ids)),
        *(',"flow":', _amounts(flow, decimals), '"capacity":', _amounts(capacity, decimals)),
        *('"in_cut":', pc.if_else(pa.array(in_cut), "true", "false"), "}}"),
    ]
    return _joined(*parts)


def _floats(column: Floats) -> pa.Array:
    return pc.cast(pa.array(np.ascontiguousarray(column)), pa.large_string())


def _amounts(units: UnitArray, decimals: int) -> pa.Array:
    """Each with the comma behind it."""
    data = np.frombuffer(write_amounts(units, decimals) + b",", np.uint8)
    offsets = np.concatenate([np.zeros(1, np.int64), np.flatnonzero(data == ord(",")) + 1])
    return as_arrow(Texts(data, offsets))


def _json_names(ids: Names) -> pa.Array:
    names = as_arrow(ids)
    if pa.types.is_integer(names.type):
        return names.cast(pa.large_string())
    whole = _concatenated('"', names, '"')
    odd = pc.match_substring_regex(names, TO_ESCAPE)
    if not pc.any(odd).as_py():
        return whole
    escaped = [json.dumps(name, ensure_ascii=False) for name in names.filter(odd).to_pylist()]
    return pc.replace_with_mask(whole, odd, pa.array(escaped, pa.large_string()))


def _joined(*parts: Any) -> bytes:
    """The rows with commas between them."""
    rows = from_arrow(_concatenated(*parts, ","), "rows")
    assert isinstance(rows, Texts)
    return rows.copy().data[:-1].tobytes()


def _concatenated(*parts: Any) -> pa.Array:
    """Text for each row of columns of text, and of texts that are the same in all rows."""
    kind = pa.large_string()
    texts = [pa.scalar(part, kind) if isinstance(part, str) else part.cast(kind) for part in parts]
    return pc.binary_join_element_wise(*texts, pa.scalar("", kind))
