"""Long columns of a command as one text, so that neither side makes or reads a Python object for each row.

A line of JSON with the columns' names and kinds, then each column's bytes: integers as int64, texts as their lengths,
uint16, and their UTF-8. All of it in base64, as commands are JSON.
"""

import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from gpu_engine.text.texts import Texts
from service.protocol import Operation

PACKED_ROWS: Final = 1000
"""Shorter columns travel as plain lists: they can be read by eye, and cost nothing."""

STEP: Final = 1 << 18
"""Characters of base64 that are read or written at a time."""

Column: TypeAlias = Sequence[int] | Sequence[str] | NDArray[np.int64]
Unpacked: TypeAlias = NDArray[np.int64] | Texts


@dataclass(frozen=True, slots=True)
class Columns:
    """An `Operation` with columns in place of lists."""

    op: Literal["set", "add", "scale", "close", "reopen"]
    edges: Unpacked | None
    tail: Unpacked | None
    head: Unpacked | None
    amounts: Texts | None


def pack(columns: dict[str, Column | None]) -> str:
    """Columns of one kind each, all integers or all texts of up to 65,535 bytes; None is left out."""
    described: list[tuple[str, str, int, int]] = []
    parts: list[bytes] = []
    for name, column in columns.items():
        if column is None:
            continue
        if len(column) and isinstance(column[0], str):
            texts = Texts.of(cast(Sequence[str], column))
            parts += [np.diff(texts.offsets).astype("<u2").tobytes(), texts.data.tobytes()]
            described.append((name, "text", len(column), len(texts.data)))
        else:
            parts.append(np.array(column, "<i8").tobytes())
            described.append((name, "integers", len(column), 0))
    return "".join(_encoded(json.dumps(described).encode() + b"\n" + b"".join(parts)))


def _encoded(raw: bytes) -> Iterator[str]:
    """In steps: the interpreter's lock is held during each."""
    step = STEP // 4 * 3
    return (base64.b64encode(raw[at : at + step]).decode() for at in range(0, len(raw), step))


def unpack(packed: str) -> dict[str, Unpacked]:
    """The inverse."""
    raw = b"".join(base64.b64decode(packed[at : at + STEP]) for at in range(0, len(packed), STEP))
    head, _, _ = raw.partition(b"\n")
    at = len(head) + 1
    columns: dict[str, Unpacked] = {}
    for name, kind, rows, n_bytes in json.loads(head):
        if kind == "integers":
            columns[name] = np.frombuffer(raw, "<i8", rows, at).astype(np.int64)
            at += 8 * rows
            continue
        offsets = np.zeros(rows + 1, np.int64)
        np.cumsum(np.frombuffer(raw, "<u2", rows, at), out=offsets[1:])
        columns[name] = Texts(np.frombuffer(raw, np.uint8, n_bytes, at + 2 * rows).copy(), offsets)
        at += 2 * rows + n_bytes
    return columns


def unpacked(operation: Operation) -> Operation | Columns:
    """The operation as the worker runs it."""
    if operation.packed is None:
        return operation
    columns = unpack(operation.packed)
    amounts = columns.get("amounts")
    assert amounts is None or isinstance(amounts, Texts)
    return Columns(operation.op, columns.get("edges"), columns.get("tail"), columns.get("head"), amounts)
