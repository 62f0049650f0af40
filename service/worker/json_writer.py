"""JSON text with exact numbers: amounts are written from integers, never through floats.

A long answer is written in pieces, so that it takes no more memory than one of them, and the interpreter is free in
between for the threads that must not wait.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from service.worker.columns import AmountColumn, Column

PIECE_BYTES: Final = 64 << 10
"""Shorter pieces are put together."""


@dataclass(frozen=True, slots=True)
class Raw:
    """JSON text that is put in as it stands."""

    text: str


def pieces(value: object, *, strings: bool = False) -> Iterator[bytes]:
    """JSON of dicts, lists and plain values, any of which may hold `Raw` and `Column`, as UTF-8.

    ``strings``: amounts, which are all that is `Raw` or an `AmountColumn`, are decimal strings.

    A plain list is written in one call of C, and is to be short.
    """
    gathered = bytearray()
    for part in _parts(value, strings):
        gathered += part
        if len(gathered) >= PIECE_BYTES:
            yield bytes(gathered)
            gathered.clear()
    yield bytes(gathered)


def dumps(value: object, *, strings: bool = False) -> str:
    """What `pieces` gives as one text, for values that are short."""
    return b"".join(_parts(value, strings)).decode()


def _parts(value: object, strings: bool) -> Iterator[bytes]:
    if isinstance(value, Raw):
        text = value.text.encode()
        yield _quoted(text) if strings else text
    elif isinstance(value, Column):
        yield from _array(value, strings and isinstance(value, AmountColumn))
    elif isinstance(value, dict):
        yield b"{"
        for i, (key, item) in enumerate(value.items()):
            yield f"{',' if i else ''}{json.dumps(key)}:".encode()
            yield from _parts(item, strings)
        yield b"}"
    elif isinstance(value, list) and any(isinstance(item, (Raw, Column, dict, list)) for item in value):
        yield b"["
        for i, item in enumerate(value):
            if i:
                yield b","
            yield from _parts(item, strings)
        yield b"]"
    else:
        yield json.dumps(value, separators=(",", ":")).encode()


def _array(column: Column, quoted: bool) -> Iterator[bytes]:
    yield b"["
    begun = False
    for part in column.texts():
        if part:
            text = _quoted(part) if quoted else part
            yield b"," + text if begun else text
            begun = True
    yield b"]"


def _quoted(numbers: bytes) -> bytes:
    """Numbers with commas between them, each as a string; what has no limit is one already."""
    return b'"' + numbers.replace(b'"', b"").replace(b",", b'","') + b'"'
