"""The end of an append-only file, mended before Redis reads it.

After a torn write Redis cuts the file behind the last whole command, even within a transaction, and goes on
appending. The MULTI that stays open in the file takes in whatever comes next: at the start after that one, half of
a transaction that never was is done, or acknowledged writes up to the next EXEC are taken back.
Seen with Redis 6.2; ``redis-check-aof --fix`` cuts at the MULTI, as is done here.
"""

import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

MULTI: Final = b"*1\r\n$5\r\nMULTI\r\n"
EXEC: Final = b"*1\r\n$4\r\nEXEC\r\n"
LONGEST_NUMBER: Final = 32
"""Bytes within which the length of an array or a string ends."""


def mend(data_dir: Path) -> int:
    """Cut a transaction without its EXEC off the append-only files of a server that is down; the bytes removed.

    Cost: a look at the end of each file, from its last EXEC on.
    """
    files = [*data_dir.glob("appendonly.aof"), *data_dir.glob("appendonlydir/*.incr.aof")]
    return sum(_mend(path) for path in files if path.stat().st_size)


def _mend(path: Path) -> int:
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            open_at = _unfinished(data)
        if open_at is None:
            return 0
        file.truncate(open_at)
        os.fsync(file.fileno())
        return size - open_at


def _unfinished(data: mmap.mmap) -> int | None:
    """Where the first MULTI after the last EXEC begins. An EXEC within a value is known by what follows it."""
    end = len(data)
    while (found := data.rfind(EXEC, 0, end)) >= 0:
        try:
            return _first_multi(data, found + len(EXEC))
        except ValueError:
            end = found + len(EXEC) - 1
    try:
        return _first_multi(data, 0)
    except ValueError:  # a dump at the start, and not one transaction since
        return None


def _first_multi(data: mmap.mmap, start: int) -> int | None:
    found = [at for at, after in _commands(data, start) if data[at:after] == MULTI]
    return found[0] if found else None


def _commands(data: mmap.mmap, at: int) -> Iterator[tuple[int, int]]:
    """Begin and end of each whole command from `at` on; raises ValueError at what is none."""
    while at < len(data):
        count, after = _number(data, at, b"*")
        for _ in range(count or 0):
            if after >= len(data):
                return
            size, start = _number(data, after, b"$")
            if size is None:
                return
            after = start + size + 2
            if after <= len(data) and data[after - 2 : after] != b"\r\n":
                raise ValueError(f"a string does not end at byte {after}")
        if count is None or after > len(data):
            return
        yield at, after
        at = after


def _number(data: mmap.mmap, at: int, sign: bytes) -> tuple[int | None, int]:
    """The number after `sign`, and where it ends; None if the file ends before."""
    if data[at : at + 1] != sign:
        raise ValueError(f"no {sign!r} at byte {at}")
    end = data.find(b"\r\n", at, at + LONGEST_NUMBER)
    if end < 0:
        if at + LONGEST_NUMBER > len(data):
            return None, len(data)
        raise ValueError(f"no number at byte {at}")
    return int(data[at + 1 : end]), end + 2
