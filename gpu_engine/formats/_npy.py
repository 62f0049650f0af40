"""One ``.npy`` array from bytes: the header is checked against the bytes before anything is allocated."""

import io
import math
import tokenize
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from gpu_engine.errors import InvalidNetwork

PLAIN_KINDS = "biufU"
"""Booleans, integers, floats and text; never objects, which would need pickle."""

NOT_A_HEADER = (tokenize.TokenError, SyntaxError, TypeError, RecursionError, MemoryError)
"""What NumPy lets through beside `ValueError`, as it reads a header the way Python reads a literal."""

HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def read_array(data: bytes | memoryview, what: str) -> NDArray[Any]:
    """A read-only view of `data`; `ValueError` or `InvalidNetwork` if it is not one whole plain array."""
    stream = io.BytesIO(data)
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
    if min(shape, default=1) < 0 or expected != len(data):
        raise InvalidNetwork(f"{what}: {len(data)} bytes where shape and type need {expected}")
    flat = np.frombuffer(data, dtype=dtype, offset=stream.tell())
    array = flat.reshape(shape, order="F" if fortran_order else "C")
    return array if dtype.isnative else array.astype(dtype.newbyteorder("="))
