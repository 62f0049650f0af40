"""The append-only file read as what it is: the one order in which everything was committed.

Reads the commands of a history, so that log entries trimmed since, and graphs deleted since, are seen as well.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from gpu_engine.formats import unpack
from service.store.keys import Keys
from service.store.log import Applied, unpack_change
from service.store.outcomes import CANCELLED


@dataclass(slots=True)
class Commit:
    """One entry of a graph's log."""

    version: int
    key: str
    rows: list[int]
    own: list[int]
    closed: list[bool]


@dataclass(slots=True)
class Load:
    """One graph from its load to its end."""

    graph: str
    graph_id: str
    number: int
    """Of the load, read from the mark in its edges."""
    commits: list[Commit] = field(default_factory=list)
    deleted: bool = False
    """By a DELETE; a graph may also end by being replaced."""


@dataclass(slots=True)
class Committed:
    """All loads, in the order of their commits, and the graph and job of every removal."""

    loads: list[Load] = field(default_factory=list)
    removals: list[tuple[str, str]] = field(default_factory=list)


def read_commands(data: bytes) -> Iterator[list[bytes]]:
    """The commands of an append-only file from the start of one; an incomplete one at the end is left out."""
    at = 0
    while at < len(data):
        if data[at : at + 1] != b"*":
            raise ValueError(f"no command at byte {at}: {data[at : at + 40]!r}")
        try:
            end = data.index(b"\r\n", at)
            count, at = int(data[at + 1 : end]), end + 2
            words = []
            for _ in range(count):
                end = data.index(b"\r\n", at)
                size = int(data[at + 1 : end])
                words.append(data[end + 2 : end + 2 + size])
                at = end + 4 + size
        except ValueError:
            return
        if at > len(data):
            return
        yield words


def read_committed(data: bytes, keys: Keys, unit: int) -> Committed:
    """Every load, log entry and removal; `unit` is what a load's number was multiplied by in its first edge.

    Raises ValueError if the file is not what Redis wrote, and would read, in whole transactions.
    """
    found = Committed()
    blobs: dict[str, dict[bytes, bytes]] = {}
    named: dict[str, Load] = {}
    by_id: dict[str, Load] = {}
    pending: list[list[bytes]] = []
    for words in _transactions(data):
        verb, key = words[0].upper(), words[1].decode(errors="replace") if len(words) > 1 else ""
        if verb == b"HSET" and key.startswith(keys.blob("")):
            blobs.setdefault(key, {}).update(zip(words[2::2], words[3::2], strict=True))
        elif verb in (b"HSET", b"HMSET") and key.startswith(keys.graph("")) and b"base" in words[2::2]:
            fields = dict(zip(words[2::2], words[3::2], strict=True))
            load = by_id[key.removeprefix(keys.graph(""))]
            load.number = _number(blobs[keys.blob(fields[b"base"].decode())], unit)
        elif verb == b"HSET" and key == keys.names:
            name, graph_id = words[2].decode(), words[3].decode()
            load = Load(name, graph_id, 0)
            named[name] = by_id[graph_id] = load
            found.loads.append(load)
        elif verb == b"HDEL" and key == keys.names:
            pending = [words]
        elif verb == b"SET" and key.startswith(keys.outcome("")) and words[2] != CANCELLED and pending:
            job = key.removeprefix(keys.outcome(""))
            load = named.pop(pending[0][2].decode())
            load.deleted = True
            found.removals.append((load.graph, job))
            pending = []
        elif verb == b"XADD" and key.startswith(keys.log("")):
            by_id[key.removeprefix(keys.log(""))].commits.append(_commit(words))
    return found


def _transactions(data: bytes) -> Iterator[list[bytes]]:
    """Commands outside of MULTI and those of complete ones: the others never happened.

    Raises ValueError for a MULTI within another: Redis, when it starts, would do part of the first.
    """
    held: list[list[bytes]] | None = None
    for words in read_commands(data):
        verb = words[0].upper()
        if verb == b"MULTI":
            if held is not None:
                raise ValueError(f"a transaction never came to its end: {held[:2]}")
            held = []
        elif verb == b"EXEC":
            yield from held or []
            held = None
        elif held is not None:
            held.append(words)
        else:
            yield words


def _number(blob: dict[bytes, bytes], unit: int) -> int:
    data = b"".join(blob[b"%d" % i] for i in range(int(blob[b"chunks"])))
    return int(unpack(data).capacity[0]) // unit


def _commit(words: list[bytes]) -> Commit:
    start = next(i for i in range(2, len(words)) if words[i].endswith(b"-0") and words[i][:-2].isdigit())
    fields = dict(zip(words[start + 1 :: 2], words[start + 2 :: 2], strict=True))
    change = unpack_change(fields[b"change"])
    key = Applied.model_validate_json(fields[b"applied"]).key
    version = int(words[start][:-2])
    return Commit(version, key, change.rows.tolist(), change.own.tolist(), change.closed.tolist())
