"""Lines and fields of an ASCII text as arrays of offsets: millions of lines without a Python loop."""

import codecs
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_engine.errors import CapacityOverflow, InvalidNetwork
from gpu_engine.formats._place import Place
from gpu_engine.text.json_fault import UTF_16
from gpu_engine.types import BoolArray

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]

NEWLINE = ord("\n")
SPACE = ord(" ")
MAX_DIGITS = 19
"""Digits that always fit an unsigned 64-bit integer."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Byte ranges ``start[k] : stop[k]`` of some lines (their newline excluded) and their numbers from 1."""

    start: Offsets
    stop: Offsets
    number: Offsets

    def __len__(self) -> int:
        return len(self.start)

    def where(self, chosen: BoolArray) -> "Lines":
        return Lines(self.start[chosen], self.stop[chosen], self.number[chosen])

    @property
    def place(self) -> Place:
        return Place("line", numbers=self.number)


@dataclass(frozen=True, slots=True)
class Fields:
    """One column of fields: byte ranges in `text`, one per line."""

    text: Bytes
    start: Offsets
    stop: Offsets

    def integers(self, place: Place, what: str) -> NDArray[np.int64]:
        """Whole numbers without sign; anything else is refused with its line."""
        longest = int((self.stop - self.start).max(initial=0))
        value = np.zeros(len(self.start), dtype=np.uint64)
        bad = np.zeros(len(self.start), dtype=bool)
        power = 1
        for from_right in range(min(longest, MAX_DIGITS)):
            position = self.stop - 1 - from_right
            inside = position >= self.start
            digit = self.text[np.maximum(position, 0)] - np.uint8(ord("0"))  # below '0' wraps to 250 and more
            bad |= inside & (digit > 9)
            value += np.where(inside, digit, 0) * np.uint64(power)
            power *= 10
        place.refuse(bad, "is not a whole number of 0 or more", what=what)
        too_long = (self.stop - self.start > MAX_DIGITS) | (value > np.uint64(2**63 - 1))
        place.refuse(too_long, "is too large", CapacityOverflow if what == "capacity" else InvalidNetwork, what)
        return value.astype(np.int64)

    def strings(self) -> pa.StringArray:
        """The fields as an Arrow text column."""
        length = self.stop - self.start
        offset = np.concatenate([[0], np.cumsum(length)])
        byte = np.repeat(self.start - offset[:-1], length) + np.arange(offset[-1])
        buffers = [None, pa.py_buffer(offset.astype(np.int64).tobytes()), pa.py_buffer(self.text[byte])]
        return pa.Array.from_buffers(pa.large_string(), len(length), buffers)


def as_text(data: bytes | memoryview, comment: str = "") -> Bytes:
    """uint8 view of an ASCII text, without the mark of UTF-8 before it that editors of Windows write. Lines that begin
    with the letter ``comment`` may be in any encoding. A byte of 0, which a crash leaves where the text ended on the
    disk, is refused."""
    begins = bytes(data[: len(codecs.BOM_UTF8)])
    text = np.frombuffer(data, dtype=np.uint8)[len(begins) if begins == codecs.BOM_UTF8 else 0 :]
    foreign = (text > 127) | (text == 0)
    if comment and foreign.any():
        lines, places = split_lines(text), np.flatnonzero(text > 127)
        line_of = np.searchsorted(lines.start, places, side="right") - 1
        foreign[places[first_bytes(text, lines)[line_of] == ord(comment)]] = False
    if foreign.any():
        at = int(np.argmax(foreign))
        line = 1 + int(np.count_nonzero(text[:at] == NEWLINE))
        told = "is not ASCII" if text[at] else "is no text: the file is damaged, or not what it is said to be"
        if begins.startswith(UTF_16):
            told = "is not ASCII, but the text begins like UTF-16: save it as UTF-8"
        raise InvalidNetwork(f"line {line}: byte {int(text[at])} {told}", lines=[line])
    return text


def split_lines(text: Bytes) -> Lines:
    """All lines; a last one without newline counts, an empty rest does not."""
    newline = np.flatnonzero(text == NEWLINE)
    start = np.concatenate([[0], newline + 1])
    stop = np.concatenate([newline, [len(text)]])
    number = np.arange(1, len(start) + 1)
    if start[-1] == len(text):
        start, stop, number = start[:-1], stop[:-1], number[:-1]
    return Lines(start, stop, number)


def fields_of(text: Bytes, lines: Lines, k: int) -> list[str]:
    """The blank-separated fields of line k, as Python strings."""
    return text[lines.start[k] : lines.stop[k]].tobytes().decode("ascii", "replace").split()


def first_bytes(text: Bytes, lines: Lines) -> Bytes:
    """uint8[lines], the first byte of each; a space for an empty line."""
    empty = lines.start == lines.stop
    first: Bytes = np.where(empty, SPACE, text[np.minimum(lines.start, len(text) - 1)])
    return first


def words(text: Bytes, lines: Lines, skip: int = 0) -> tuple[Offsets, Offsets]:
    """Byte ranges of the maximal runs of non-blank bytes of these lines, the first `skip` bytes left out."""
    if not len(lines):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    begin, end = int(lines.start[0]), int(lines.stop[-1])
    word = np.zeros(end - begin + 2, dtype=bool)
    word[1:-1] = text[begin:end] > SPACE
    if len(lines) <= lines.number[-1] - lines.number[0]:  # other lines lie between
        word[1:-1] &= _inside(lines, begin, end)
    for k in range(skip):
        word[np.minimum(lines.start + k, lines.stop) - begin + 1] = False
    change = np.flatnonzero(word[1:] != word[:-1]) + begin
    return change[0::2], change[1::2]


def _inside(lines: Lines, begin: int, end: int) -> BoolArray:
    """bool[end - begin], true on the bytes of these lines."""
    step = np.zeros(end - begin + 1, dtype=np.int8)
    step[lines.start - begin] += 1
    step[lines.stop - begin] -= 1
    inside: BoolArray = np.cumsum(step[:-1], dtype=np.int8) > 0
    return inside


def blank_lines(text: Bytes, lines: Lines) -> BoolArray:
    """bool[lines]: nothing but blanks."""
    blank: BoolArray = first_bytes(text, lines) <= SPACE
    start, _ = words(text, lines.where(blank))
    blank[np.searchsorted(lines.start, start, side="right") - 1] = False
    return blank


def words_of_width(text: Bytes, lines: Lines, width: int, skip: int = 0) -> tuple[Offsets, Offsets]:
    """`words`, line by line, where every line must have `width` of them; others are refused."""
    start, stop = words(text, lines, skip)
    regular = (
        len(start) == width * len(lines)
        and bool(np.all(start[0::width] >= lines.start))
        and bool(np.all(stop[width - 1 :: width] <= lines.stop))
    )
    if not regular:
        owner = np.searchsorted(lines.start, start, side="right") - 1
        count = np.bincount(owner, minlength=len(lines))
        lines.place.refuse(count != width, f"{width} fields expected")
    return start, stop


def split_fields(text: Bytes, lines: Lines, width: int, skip: int = 0) -> list[Fields]:
    """The `width` columns of blank-separated fields; a line with more or fewer is refused."""
    start, stop = words_of_width(text, lines, width, skip)
    return [Fields(text, start[k::width], stop[k::width]) for k in range(width)]
