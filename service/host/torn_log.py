"""What Redis leaves wrong in its append-only files, mended before it reads them: an end, holes, files half written.

After a torn write Redis cuts the file behind the last whole command, even within a transaction, and goes on
appending. The MULTI that stays open in the file takes in whatever comes next: at the start after that one, half of
a transaction that never was is done, or acknowledged writes up to the next EXEC are taken back.
Seen with Redis 6.2; ``redis-check-aof --fix`` cuts at the MULTI, as is done here.

When the disk is full Redis takes back what it wrote of a command, and writes it again when there is room. A file that
was begun by a rewrite is not opened for appending, so it goes on behind what was taken back: zeros are left between two
commands, and at its next start Redis refuses the file. Seen with Valkey 9.1; ``valkey-check-aof --fix`` would drop all
that comes after the zeros, though it was acknowledged.

When the disk is full again, Redis cuts such a file in the middle of a command, and goes on behind that. What stands
there nobody has acknowledged: the service waits until another file has been written (`service.store.durable`).

A server that is killed while it writes another file leaves what it has of that, up to as much as all data, and no later
start of it takes that away: a server that is out of memory at each rewrite fills its disk. Seen with Valkey 9.1.
"""

import mmap
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from service.host.manifest import manifest_of

MULTI: Final = b"*1\r\n$5\r\nMULTI\r\n"
EXEC: Final = b"*1\r\n$4\r\nEXEC\r\n"
LONGEST_NUMBER: Final = 32
"""Bytes within which the length of an array or a string ends."""

HOLE: Final = re.compile(rb"(?:\A|\r\n)\0+\*[0-9]{1,10}\r\n\$")
"""Zeros between commands, or bytes within a value that look so: which of both, only reading from the start tells."""

ZEROS: Final = re.compile(rb"\0+")
TEAR: Final = re.compile(rb"\0\*[0-9]{1,10}\r\n\$")
"""What follows a command that does not come to its end: zeros, of which the last is looked for, and the next command.
A graph has long runs of zeros, and a search for a whole run would go through each of them from each of its bytes."""

IN_USE: Final = re.compile(r"^file (\S+) seq (\d+) type i(?: .*)?$", re.MULTILINE)
"""A line of a manifest that names a file of commands; some servers write offsets behind it. Other types are dumps, and
files that a rewrite made useless."""

LEFT: Final = re.compile(r"temp-rewriteaof-(?:bg-)?[0-9]+\.aof")
"""Names of files that a rewrite had begun."""

MENDED: Final = ".mended"
"""The end of the name under which a file without its holes is written first."""

COPY_BYTES: Final = 1 << 20


def mend_all(data_dir: Path) -> dict[str, int]:
    """Mend all that is known to be left wrong, in the files of a server that is down; what was done, and to how many
    bytes, which are gone. Cost: see each."""
    done = {
        "unfinished_files_removed": remove_unfinished(data_dir),
        "cut_after_full_disk": cut_tears(data_dir),
        "holes_removed": close_holes(data_dir),
        "unfinished_transaction_removed": mend(data_dir),
    }
    return {event: removed for event, removed in done.items() if removed}


def remove_unfinished(data_dir: Path) -> int:
    """Remove what rewrites and mending that were killed have left, which nothing reads; the bytes removed. First of
    all, as the others may need the room.

    A child of the dead server may still be writing one: it finds the name gone, and ends.
    """
    left = [path for path in data_dir.glob("temp-rewriteaof-*.aof") if LEFT.fullmatch(path.name)]
    removed = 0
    for path in [*left, *data_dir.glob(f"appendonlydir/*{MENDED}")]:
        removed += path.stat().st_size
        path.unlink()
    return removed


def cut_tears(data_dir: Path) -> int:
    """Cut the append-only files of a server that is down where a disk that was full again has torn them; the bytes
    removed. What was written behind a tear, or into files that were begun since, is gone, as after a power loss.

    Cost: a search through each file.
    """
    manifest = manifest_of(data_dir)
    if manifest is None:
        return 0
    found = sorted(IN_USE.findall(manifest.read_text()), key=lambda file: int(file[1]))
    paths = [path for name, _ in found if (path := manifest.with_name(name)).is_file()]
    tears = (_tear(path) for path in paths)
    first = next(((number, at) for number, at in enumerate(tears) if at is not None), None)
    if first is None:
        return 0
    removed = 0
    for path, at in zip(paths[first[0] :], [first[1], *[0] * len(paths)], strict=False):
        removed += path.stat().st_size - at
        os.truncate(path, at)
    return removed


def _tear(path: Path) -> int | None:
    """Where a command begins that does not come to its end, though others follow."""
    if not path.stat().st_size:
        return None
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if not TEAR.search(data):
            return None
        at = end = 0  # of the last whole command
        while at < len(data):
            with suppress(ValueError):
                for _, after in _commands(data, at):
                    at = end = after
            zeros = ZEROS.match(data, at)
            if zeros is None:
                return end if TEAR.search(data, at) else None
            at = zeros.end()
    return None


def close_holes(data_dir: Path) -> int:
    """Take the zeros between commands out of the append-only files of a server that is down; the bytes removed.

    Cost: a search through each file; one that has holes is written anew beside the old one.
    """
    return sum(_close_holes(path) for path in data_dir.glob("appendonlydir/*.incr.aof") if path.stat().st_size)


def _close_holes(path: Path) -> int:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        spans = _between_holes(data) if HOLE.search(data) else []
        removed = len(data) - sum(end - start for start, end in spans)
        if not spans or not removed:
            return 0
        new = path.with_suffix(MENDED)
        with new.open("wb") as out:
            for start, end in spans:
                for at in range(start, end, COPY_BYTES):
                    out.write(data[at : min(at + COPY_BYTES, end)])
            out.flush()
            os.fsync(out.fileno())
    new.replace(path)
    return removed


def _between_holes(data: mmap.mmap) -> list[tuple[int, int]]:
    """Begin and end of each stretch of whole commands; none if there is anything but commands and zeros."""
    spans: list[tuple[int, int]] = []
    begin = at = 0
    while True:
        try:
            for _, after in _commands(data, at):
                at = after
            return [*spans, (begin, len(data))]
        except ValueError:
            zeros = ZEROS.match(data, at)
            if zeros is None:
                return []
            spans.append((begin, at))
            begin = at = zeros.end()


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
