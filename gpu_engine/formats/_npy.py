"""One ``.npy`` array from bytes, the header checked against them before anything is allocated; and the way back."""

import io
import math
import sys
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from gpu_engine.errors import InvalidNetwork
from gpu_engine.formats._place import ROWS
from gpu_engine.types import BoolArray

PLAIN_KINDS = "biufU"
"""Booleans, integers, floats and text; never objects, which would need pickle."""

NOT_A_HEADER = (tokenize.TokenError, SyntaxError, TypeError, RecursionError, MemoryError)
"""NumPy lets these through beside `ValueError`, as it reads a header the way Python reads a literal."""

HEAD_BYTES = 16 << 10
"""More than the header of any plain array has; NumPy itself reads headers of up to 10,000 bytes."""

STEP = 1 << 16
"""Rows that are written at a time."""

HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


@dataclass(frozen=True, slots=True)
class ArrayType:
    """The header of an array."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran_order: bool
    offset: int
    """The place of the first item, in bytes."""

    @property
    def n_items(self) -> int:
        return math.prod(self.shape)


def read_type(head: bytes | memoryview, n_bytes: int, what: str) -> ArrayType:
    """The type of an array of `n_bytes` bytes, whose first ones are `head`.

    `ValueError` or `InvalidNetwork` if that is not one whole plain array.
    """
    stream = io.BytesIO(head)
    version = npy.read_magic(stream)
    if version not in HEADERS:
        raise InvalidNetwork(f"{what}: npy version {version} is not read")
    try:
        shape, fortran_order, dtype = HEADERS[version](stream)
    except NOT_A_HEADER as error:
        raise InvalidNetwork(f"{what}: the npy header cannot be read") from error
    if dtype.kind not in PLAIN_KINDS or dtype.itemsize == 0:
        raise InvalidNetwork(f"{what}: arrays of {dtype} are not read")
    expected = stream.tell() + math.prod(shape) * dtype.itemsize
    if any(isinstance(n, bool) or n < 0 for n in shape) or expected != n_bytes:  # NumPy reads `True` as an integer
        raise InvalidNetwork(f"{what}: {n_bytes} bytes where shape and type need {expected}")
    return ArrayType(dtype, shape, fortran_order, stream.tell())


def read_array(data: bytes | memoryview, what: str) -> NDArray[Any]:
    """A read-only view of `data`; `ValueError` or `InvalidNetwork` if it is not one whole plain array."""
    view = memoryview(data)
    found = read_type(view[:HEAD_BYTES], len(view), what)
    flat = np.frombuffer(view, dtype=found.dtype, offset=found.offset)
    if flat.dtype.kind == "U":
        _refuse_no_characters(flat, what)
    array = flat.reshape(found.shape, order="F" if found.fortran_order else "C")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _refuse_no_characters(texts: NDArray[np.str_], what: str) -> None:
    """Raises `InvalidNetwork` for numbers beyond those of characters, of which no string can be made."""
    numbers = texts.view(np.dtype(np.uint32).newbyteorder(texts.dtype.byteorder))
    if numbers.max(initial=0) > sys.maxunicode:
        bad: BoolArray = np.any((numbers > sys.maxunicode).reshape(len(texts), -1), axis=1)
        ROWS.refuse(bad, "is no text: it has a number that is no character", what=what)


def write_array(column: NDArray[Any] | np.generic | bool | Sequence[str], what: str) -> Iterator[bytes]:
    """A scalar, or a column of numbers, flags or text, with its header, `STEP` rows at a time.

    Raises `InvalidNetwork` for a text that NumPy would not give back.
    """
    if isinstance(column, np.ndarray | np.generic | bool):
        whole = np.asarray(column)
        yield header(whole.dtype, whole.shape)
        flat = np.ascontiguousarray(whole).reshape(-1)
        yield from (flat[at : at + STEP].tobytes() for at in range(0, len(flat), STEP))
        return
    dtype = np.dtype(f"<U{max(1, max(map(_width, _steps(column)), default=1))}")
    yield header(dtype, (len(column),))
    for texts in _steps(column):
        if any(text.endswith("\0") for text in texts):
            raise InvalidNetwork(f"NumPy text drops the NUL at the end of a name in {what}")
        yield np.array(texts, dtype).tobytes()


def _steps(column: Sequence[str]) -> Iterator[list[str]]:
    return (list(column[at : at + STEP]) for at in range(0, len(column), STEP))


def _width(texts: list[str]) -> int:
    return max(map(len, texts))


def header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """What stands before the items of an array."""
    stream = io.BytesIO()
    described = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    npy.write_array_header_1_0(stream, described)
    return stream.getvalue()
