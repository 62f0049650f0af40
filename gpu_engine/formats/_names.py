"""Vertex names and edge ids: integers or strings, numbered without a loop over edges."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpu_engine.errors import ROWS_SHOWN, InvalidNetwork, pointer
from gpu_engine.formats._place import ROWS, Place, refusing, shown
from gpu_engine.text.near import alike, did_you_mean
from gpu_engine.text.texts import Texts

Names: TypeAlias = NDArray[np.int64] | Sequence[str]
"""As `EdgeList` holds them."""


def as_arrow(names: Names) -> pa.Array:
    """int64 or large_string array."""
    if isinstance(names, np.ndarray):
        return pa.array(names.astype(np.int64, copy=False))
    if isinstance(names, Texts):
        buffers = [None, pa.py_buffer(names.offsets), pa.py_buffer(names.data)]
        return pa.Array.from_buffers(pa.large_string(), len(names), buffers)
    with refusing("names must be text", pa.ArrowException, UnicodeError, TypeError):
        return pa.array(names, type=pa.large_string())


def from_arrow(column: pa.Array, what: str) -> Names:
    """An integer or text column, nulls refused."""
    if column.null_count:
        raise InvalidNetwork(f"{what} has {column.null_count} nulls")
    if pa.types.is_integer(column.type):
        with refusing(what, pa.ArrowInvalid):
            integers: NDArray[np.int64] = pc.cast(column, pa.int64()).to_numpy(zero_copy_only=False)
        return integers
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return _texts(column.cast(pa.large_string()))
    raise InvalidNetwork(f"{what} must be integers or text, not {column.type}")


def _texts(column: pa.LargeStringArray) -> Texts:
    """The column as one of ours, in its own memory."""
    _, offsets, data = column.buffers()
    ends = np.zeros(1, np.int64) if offsets is None else np.frombuffer(offsets, np.int64)
    text = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return Texts(text, ends[column.offset : column.offset + len(column) + 1])


def as_list(names: Names) -> list[Any]:
    """The names as Python integers or strings. O(n)."""
    return names.tolist() if isinstance(names, np.ndarray) else list(names)


def refuse_repeats(names: Names, what: str, member: str, place: Place = ROWS) -> None:
    """Raise `InvalidNetwork` with the first names that occur more than once, as a `member` of its `Where`, and where
    they are."""
    # Python's set is five times faster on text than Arrow's kernel.
    n_distinct = len(np.unique(names)) if isinstance(names, np.ndarray) else len(set(names))
    column = as_arrow(names)
    if n_distinct == len(column):
        return
    counts = pc.value_counts(column)
    repeated = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    first = repeated.slice(0, ROWS_SHOWN)
    rows = np.flatnonzero(pc.is_in(column, value_set=first))
    repeats = {member: first.to_pylist()} | place.members(rows)
    raise InvalidNetwork(f"{what} {shown(repeats[member][0])} occurs more than once", **repeats)


def number_by_appearance(tail: pa.Array, head: pa.Array) -> tuple[NDArray[np.int64], Names]:
    """Number the names in reading order: the first edge's tail, its head, the next edge's tail ...

    Text, or dictionaries of it. Returns int64[m, 2] vertex indices (tail, head) and the names of the vertices.
    """
    ends = [pc.dictionary_encode(end) for end in (tail, head)]
    words = pc.dictionary_encode(pa.concat_arrays([end.dictionary.cast(pa.large_string()) for end in ends]))
    # A word of both ends, or twice in one dictionary, is one vertex; one that is null is used by no row.
    same = words.indices.fill_null(0).to_numpy()
    codes = [end.indices.to_numpy().astype(np.int64) for end in ends]
    pairs = np.stack([same[codes[0]], same[codes[1] + len(ends[0].dictionary)]], axis=1)
    appeared = pc.dictionary_encode(pa.array(pairs.ravel()))
    numbers = appeared.indices.to_numpy().astype(np.int64).reshape(-1, 2)
    return numbers, from_arrow(words.dictionary.take(appeared.dictionary), "vertices")


def find_label(name: int | str, labels: Names, what: str) -> int:
    """The position of one name among `labels`; raises `InvalidNetwork` if there is none."""
    known = as_arrow(labels)
    are_integers = pa.types.is_integer(known.type)
    if isinstance(name, int) != are_integers:
        hint = f": these are {'integers' if are_integers else 'text'}"
    else:
        with refusing(what, pa.ArrowException, UnicodeError, OverflowError):
            place = pc.index(known, pa.scalar(name, known.type)).as_py()
        if place >= 0:
            return int(place)
        hint = _near(name, known)
    raise InvalidNetwork(f"{what} {shown(name)} is no vertex label{hint}", vertices=[name], field=pointer(what))


def _near(name: int | str, known: pa.Array) -> str:
    """The end of a refusal: the one of the known labels, of the same kind as the name, that is probably meant."""
    return did_you_mean(name, alike(_texts(known), name)) if isinstance(name, str) else ""


def look_up(names: pa.Array, labels: Names, what: str) -> NDArray[np.int64]:
    """int64[m], the position of each name among `labels`; unknown names are refused."""
    if not len(names):
        return np.zeros(0, dtype=np.int64)
    known = as_arrow(labels) if len(labels) else pa.array([], names.type)  # labels that are none have no kind
    if names.type != known.type:
        kind = "integers" if pa.types.is_integer(known.type) else "text"
        raise InvalidNetwork(f"{what} must name vertices as vertex_labels does, by {kind}", field=pointer(what))
    found = pc.index_in(names, value_set=known)
    unknown = found.is_null().to_numpy(zero_copy_only=False)
    if unknown.any():
        first = names[int(np.argmax(unknown))].as_py()
        hint = _near(first, known)
        ROWS.refuse(unknown, "is no vertex label", what=what, value_of=lambda row: names[row].as_py(), hint=hint)
    index: NDArray[np.int64] = found.to_numpy(zero_copy_only=False).astype(np.int64)
    return index
