"""JSON text with exact numbers: amounts are written from integers, never through floats.

A long answer is written in pieces, so that it takes no more memory than one of them, and the interpreter is free in
between for the threads that must not wait.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from service.worker.columns import AmountColumn, Column

PIECE_BYTES: Final = 64 << 10
"""Pieces of fewer bytes are joined."""

ENCODE: Final = json.JSONEncoder(separators=(",", ":")).encode
"""JSON of plain values, in one call of C."""

PLAIN: Final = frozenset({str, int, float, bool, type(None)})


@dataclass(frozen=True, slots=True)
class Raw:
    """JSON text that is put in as it stands."""

    text: str


def pieces(value: object, *, strings: bool = False) -> Iterator[bytes]:
    """JSON of dicts, lists and plain values, any of which may hold `Raw` and `Column`, as UTF-8.

    ``strings``: amounts, which are all that is `Raw` or an `AmountColumn`, are decimal strings.

    What is no `Column` is to be short: it is written at once, and a plain list in one call of C.
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
    flat: list[str | Column] = []
    _flatten(value, strings, flat)
    for part in flat:
        if isinstance(part, str):
            yield part.encode()
        else:
            yield from _array(part, strings and isinstance(part, AmountColumn))


def _flatten(value: object, strings: bool, flat: list[str | Column]) -> None:
    """Append the text of a value, and the columns that stand in it, in their order."""
    if isinstance(value, dict) and not PLAIN.issuperset(map(type, value.values())):
        mark = "{"
        for key, item in value.items():
            flat.append(f"{mark}{_key(key)}")
            _flatten(item, strings, flat)
            mark = ","
        flat.append("}")
    elif isinstance(value, Raw):
        flat.append(_quoted(value.text.encode()).decode() if strings else value.text)
    elif isinstance(value, Column):
        flat.append(value)
    elif isinstance(value, list) and any(isinstance(item, (Raw, Column, dict, list)) for item in value):
        mark = "["
        for item in value:
            flat.append(mark)
            _flatten(item, strings, flat)
            mark = ","
        flat.append("]")
    else:
        flat.append(str(value) if type(value) is int else ENCODE(value))


@lru_cache(maxsize=1024)
def _key(key: str) -> str:
    return f"{ENCODE(key)}:"


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
