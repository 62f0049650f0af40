"""Answers that come as npz: read into the same body that JSON gives, with arrays where it has lists."""

import io
import struct
import tokenize
import zipfile
import zlib
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from headrace._amounts import loads
from headrace._sequences import Texts

NPZ: Final = "application/x-npz"
ACCEPT: Final = {"Accept": f"{NPZ}, application/json;q=0.5"}
"""What a question with columns asks for; a service that has no npz answers JSON."""

UTF8, OFFSETS = ".utf8", ".offsets"
WRONG_ZIP: Final = (EOFError, OSError, RuntimeError, struct.error, zipfile.BadZipFile, zlib.error)
WRONG_COLUMNS: Final = (ValueError, LookupError, TypeError, AttributeError, SyntaxError, tokenize.TokenError)
"""What libraries raise for a header of NumPy that is none, too."""


def read_npz(content: bytes) -> dict[str, Any]:
    """The body of an answer. Raises ValueError for what is none."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays: dict[str, NDArray[Any]] = dict(archive)
        body: dict[str, Any] = loads(arrays.pop("answer").tobytes())
        for name, column in arrays.items():
            if name.endswith(UTF8):
                stem = name.removesuffix(UTF8)
                _put(body, stem, Texts(column, arrays[stem + OFFSETS]))
            elif name.removesuffix(OFFSETS) + UTF8 not in arrays:
                _put(body, name, column)
    except (*WRONG_ZIP, *WRONG_COLUMNS) as error:
        raise ValueError(f"no answer in npz: {error}") from error
    return body


def _put(body: dict[str, Any], name: str, column: object) -> None:
    *places, last = name.split(".")
    for place in places:
        body = body.setdefault(place, {})
    body[last] = column
