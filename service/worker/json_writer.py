"""JSON text with exact numbers: amounts are written from integers, never through floats.

A long answer is written in pieces, so that it takes no more memory than one of them, and the interpreter is free in
between for the threads that must not wait.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from service.worker.columns import Column

PIECE_BYTES: Final = 64 << 10
"""Shorter pieces are put together."""


@dataclass(frozen=True, slots=True)
class Raw:
    """JSON text that is put in as it stands."""

    text: str


def pieces(value: object) -> Iterator[bytes]:
    """JSON of dicts, lists and plain values, any of which may hold `Raw` and `Column`, as UTF-8.

    A plain list is written in one call of C, and is to be short.
    """
    gathered = bytearray()
    for part in _parts(value):
        gathered += part
        if len(gathered) >= PIECE_BYTES:
            yield bytes(gathered)
            gathered.clear()
    yield bytes(gathered)


def dumps(value: object) -> str:
    """What `pieces` gives as one text, for values that are short."""
    return b"".join(_parts(value)).decode()


def _parts(value: object) -> Iterator[bytes]:
    if isinstance(value, Raw):
        yield value.text.encode()
    elif isinstance(value, Column):
        yield from _array(value)
    elif isinstance(value, dict):
        yield b"{"
        for i, (key, item) in enumerate(value.items()):
            yield f"{',' if i else ''}{json.dumps(key)}:".encode()
            yield from _parts(item)
        yield b"}"
    elif isinstance(value, list) and any(isinstance(item, (Raw, Column, dict, list)) for item in value):
        yield b"["
        for i, item in enumerate(value):
            if i:
                yield b","
            yield from _parts(item)
        yield b"]"
    else:
        yield json.dumps(value, separators=(",", ":")).encode()


def _array(column: Column) -> Iterator[bytes]:
    yield b"["
    begun = False
    for part in column.texts():
        if part:
            yield b"," + part if begun else part
            begun = True
    yield b"]"
