"""Long columns of a JSON body, read straight from its text: no Python object is made of a row.

Only the plain form is read: an object whose members are short scalars, and columns of integers, of decimals without
exponents or of texts without escapes. Whatever else a body has in it is left to the exact parser
(`service.models.numbers`), which reads the same of the plain form and says what is wrong with the rest.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpu_engine.text.texts import Texts

Kind: TypeAlias = Literal["ids", "amounts"]
Bytes: TypeAlias = NDArray[np.uint8]
Column: TypeAlias = NDArray[np.int64] | Texts

LEAST_BYTES: Final = 1 << 14
"""Shorter bodies are parsed as fast by the exact parser."""
LEAST_ROWS: Final = 1000
"""Shorter columns travel as lists (`service.packed.PACKED_ROWS`)."""
MAX_DIGITS: Final = 18
"""Of an id; int64 holds all of them."""
MAX_LITERAL: Final = 40
"""Characters of an amount."""
MAX_LABEL_BYTES: Final = 1024

SCALAR_BYTES: Final = 200
"""Within so many a scalar has to end."""

_BLANKS: Final = re.compile(rb"[ \t\r\n]+")
_NAME: Final = re.compile(rb'"([a-z_]{1,32})"')
_JSON: Final = json.JSONDecoder()
_QUOTE, _COMMA, _MINUS, _POINT, _ZERO, _NINE, _BACKSLASH, _SPACE, _BRACKET = b'",-.09\\ ]'
_IN_NUMBERS: Final = np.isin(np.arange(256), list(b"0123456789-.,"))
_BLANK: Final = np.isin(np.arange(256), list(b" \t\r\n"))


class _NotPlain(Exception):
    """The exact parser is to read the body."""


def read_flat(body: bytes | bytearray | memoryview, kinds: Mapping[str, Kind]) -> dict[str, Any] | None:
    """The members of a body by their names: columns of the `kinds` as arrays, int64[k] or `Texts`, the rest as
    `json.loads` has them. None if the exact parser is to read it. O(bytes), a few milliseconds a megabyte."""
    view = memoryview(body).cast("B")
    if len(view) < LEAST_BYTES:
        return None
    try:
        return _members(view, np.frombuffer(view, np.uint8), kinds)
    except _NotPlain:
        return None


def _members(view: memoryview, text: Bytes, kinds: Mapping[str, Kind]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    at, going = _past(view, _past_blanks(view, 0), b"{"), True
    while going:
        found = _NAME.match(view, _past_blanks(view, at))
        if found is None or (name := found[1].decode()) in members:
            raise _NotPlain
        at = _past_blanks(view, _past(view, _past_blanks(view, found.end()), b":"))
        members[name], at = _column(view, text, at, kinds[name]) if name in kinds else _scalar(view, at)
        at = _past_blanks(view, at)
        going = bytes(view[at : at + 1]) == b","
        at = _past(view, at, b"," if going else b"}")
    if _past_blanks(view, at) != len(view):
        raise _NotPlain
    return members


def _past_blanks(view: memoryview, at: int) -> int:
    found = _BLANKS.match(view, at)
    return at if found is None else found.end()


def _past(view: memoryview, at: int, sign: bytes) -> int:
    """The place behind a sign that must be there."""
    if bytes(view[at : at + 1]) != sign:
        raise _NotPlain
    return at + 1


def _scalar(view: memoryview, at: int) -> tuple[Any, int]:
    """A short value that is no array, object, fraction, or text with an escape or beyond ASCII, and where it ends."""
    some = bytes(view[at : at + SCALAR_BYTES]).decode("latin-1")  # of which each byte is one character
    try:
        value, length = _JSON.raw_decode(some)
    except ValueError:
        raise _NotPlain from None
    text = some[:length]
    if isinstance(value, float | list | dict) or "\\" in text or not text.isascii() or length == SCALAR_BYTES:
        raise _NotPlain
    return value, at + length


def _column(view: memoryview, text: Bytes, at: int, kind: Kind) -> tuple[Column, int]:
    """The column that begins at a bracket, and where it ends."""
    at = _past_blanks(view, _past(view, at, b"["))
    if at == len(text):
        raise _NotPlain
    if text[at] == _QUOTE and kind == "ids":
        return _texts(view, text, at)
    end = at + _first(text[at:] == _BRACKET)
    blanks = int(_first(~_BLANK[text[at:end][::-1]]))  # before the bracket
    return _numbers(text[at : end - blanks], kind), end + 1


def _first(flags: NDArray[np.bool_]) -> int:
    at = int(flags.argmax()) if len(flags) else 0
    if not len(flags) or not flags[at]:
        raise _NotPlain
    return at


def _numbers(content: Bytes, kind: Kind) -> Column:
    """What lies between the brackets, by the grammar of JSON numbers (RFC 8259, section 6) without exponents."""
    kept = _without_blanks(content)
    if not _IN_NUMBERS[kept].all():
        raise _NotPlain
    commas = np.flatnonzero(kept == _COMMA)
    starts, ends = np.append(0, commas + 1), np.append(commas, len(kept))
    lengths = ends - starts
    if len(starts) < LEAST_ROWS or lengths.min() < 1 or lengths.max() > MAX_LITERAL:
        raise _NotPlain
    kept = np.append(kept, np.full(2, _COMMA, np.uint8))  # so that each literal, if only a sign, has two bytes after it
    negative = kept[starts] == _MINUS
    first = starts + negative
    digit = (kept >= _ZERO) & (kept <= _NINE)
    zero, longer = kept[first] == _ZERO, digit[first + 1]
    if np.count_nonzero(kept == _MINUS) > np.count_nonzero(negative) or not digit[first].all() or (zero & longer).any():
        raise _NotPlain
    if (negative & zero & (first + 1 == ends)).any():  # as an integer it has no sign
        raise _NotPlain
    points = np.flatnonzero(kept == _POINT)
    rows = np.searchsorted(ends, points)
    if (np.diff(rows) < 1).any() or not (digit[points - 1] & digit[points + 1]).all():
        raise _NotPlain
    if kind == "amounts":
        return Texts(kept[kept != _COMMA], np.append(0, np.cumsum(lengths)))
    if len(points) or negative.any() or lengths.max() > MAX_DIGITS:
        raise _NotPlain
    return np.fromstring(kept[:-2].tobytes(), np.int64, sep=",")


def _without_blanks(content: Bytes) -> Bytes:
    """The bytes that are no blanks, which lie behind commas only; else one might lie within a number."""
    blank = _BLANK[content]
    if not blank.any():
        return content
    begins = blank[1:] & ~blank[:-1]
    if (begins & (content[:-1] != _COMMA)).any():
        raise _NotPlain
    return content[~blank]


def _texts(view: memoryview, text: Bytes, at: int) -> tuple[Texts, int]:
    """Texts with the same separator between all of them, from the first quote on."""
    quotes = np.flatnonzero(text[at:] == _QUOTE) + at
    count = len(quotes) // 2
    if count < LEAST_ROWS:
        raise _NotPlain
    opening, closing = quotes[0 : 2 * count : 2], quotes[1 : 2 * count : 2]
    count = 1 + _first(text[np.minimum(closing + 1, len(text) - 1)] != _COMMA)
    if count < LEAST_ROWS:
        raise _NotPlain
    opening, closing = opening[:count], closing[:count]
    separator = bytes(view[int(closing[0]) + 1 : int(opening[1])])
    if len(separator) > SCALAR_BYTES or separator.strip(b" \t\r\n") != b"," or separator[0] != _COMMA:
        raise _NotPlain
    if (opening[1:] - closing[:-1] != 1 + len(separator)).any():
        raise _NotPlain
    first, last = int(opening[0]), int(closing[-1])
    inside = np.ones(last + 1 - first, np.bool_)
    inside[opening - first] = inside[closing - first] = False
    for place, byte in enumerate(separator, start=1):
        if (text[closing[:-1] + place] != byte).any():
            raise _NotPlain
        inside[closing[:-1] + place - first] = False
    data, lengths = text[first : last + 1][inside], closing - opening - 1
    if (data == _BACKSLASH).any() or (data < _SPACE).any() or lengths.max() > MAX_LABEL_BYTES:
        raise _NotPlain
    offsets = np.append(0, np.cumsum(lengths))
    begins = data[offsets[:-1][lengths > 0]]
    if (begins & 0xC0 == 0x80).any():  # the second half of a character, the first of which ends the text before
        raise _NotPlain
    try:
        data.tobytes().decode()
    except UnicodeDecodeError:
        raise _NotPlain from None
    return Texts(data, offsets), _past(view, _past_blanks(view, last + 1), b"]")
