"""The append-only file read as what it is: the one order in which everything was committed.

Reads the commands of a history, so that log entries trimmed since, and graphs deleted since, are seen as well. This
reader is written from docs/durability.md and shares no code with the service: the names of keys, blobs, log entries
and outcomes are read here a second time, so that a fault of the service's own reader and writer cannot hide.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from tests.faults.entries import Commit, pairs, read_edges, read_entry
from tests.faults.history import LOAD_UNIT, Edges

CANCELLED: Final = b"cancelled"
EVENT: Final = (b"id", b"event", b"data")
"""The fields of an event, in their order."""
ENDED: Final = frozenset({"succeeded", "failed", "cancelled"})
Words = list[bytes]


@dataclass(slots=True)
class Load:
    """One graph from its load to its end; its id is that of the job that loaded it."""

    graph: str
    graph_id: str
    number: int
    """Of the load, read from the mark in its edges."""
    edges: Edges | None = None
    commits: list[Commit] = field(default_factory=list)
    deleted: bool = False
    """By a DELETE; a graph may also end by being replaced."""
    order: int = 0
    """Place of its transaction in the file."""
    deleted_at: int = 0
    """Place of the DELETE."""
    reach: int = 1
    """The oldest version that its log and its snapshots have led to at all times: two snapshots trim the log."""

    def resized(self, order: int, n_vertices: int, n_edges: int) -> None:
        """What the catalogue says of it in the transaction of its last commit."""
        if self.commits and self.commits[-1].order == order:
            self.commits[-1].size = n_vertices, n_edges


@dataclass(slots=True)
class Entry:
    """One event in the feed of a graph's name."""

    id: str
    type: str
    data: str
    order: int = 0


@dataclass(slots=True)
class Watched:
    """A watch that was put, or dropped, of a graph's name."""

    watch: str
    on: tuple[str, ...] | None
    """What it tells; None: it was dropped."""
    job: str = ""
    order: int = 0


@dataclass(slots=True)
class Committed:
    """All loads, in the order of their commits, the graph and job of every removal, and what became of jobs."""

    loads: list[Load] = field(default_factory=list)
    removals: list[tuple[str, str]] = field(default_factory=list)
    cancelled: set[str] = field(default_factory=set)
    """Jobs whose cancel was accepted."""
    endings: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """By job: how it ended, each time that was written."""
    requests: dict[str, str] = field(default_factory=dict)
    """By job: the request that asked for it."""
    feeds: dict[str, list[Entry]] = field(default_factory=lambda: defaultdict(list))
    """By graph: its events."""
    watches: dict[str, list[Watched]] = field(default_factory=lambda: defaultdict(list))
    """By graph: what became of its watches."""

    def by_job(self) -> Iterator[tuple[str, str]]:
        """Each change with the job that made it, and what it was."""
        for load in self.loads:
            yield load.graph_id, f"load {load.number}"
            yield from ((commit.job, f"version {commit.version} of load {load.number}") for commit in load.commits)
        yield from ((job, f"the removal of {graph}") for graph, job in self.removals)
        for graph, changes in self.watches.items():
            yield from ((change.job, f"the watch {change.watch} of {graph}") for change in changes)


def read_commands(data: bytes) -> Iterator[Words]:
    """The commands of an append-only file from the start of one; an incomplete one at the end is left out.

    Zeros between commands are what a Redis on a full disk leaves; the service removes them before it starts Redis.
    """
    at = 0
    while at < len(data):
        while data[at : at + 1] == b"\0":
            at += 1
        if at < len(data) and data[at : at + 1] != b"*":
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


def read_transactions(data: bytes) -> Iterator[list[Words]]:
    """The commands of each complete transaction, and each command outside of one: the others never happened.

    Raises ValueError for a MULTI within another: Redis, when it starts, would do part of the first.
    """
    held: list[Words] | None = None
    for words in read_commands(data):
        verb = words[0].upper()
        if verb == b"MULTI":
            if held is not None:
                raise ValueError(f"a transaction never came to its end: {held[:2]}")
            held = []
        elif verb == b"EXEC":
            yield held or []
            held = None
        elif held is not None:
            held.append(words)
        else:
            yield [words]


def read_committed(data: bytes, prefix: str) -> Committed:
    """Every load, log entry, removal, accepted cancel and end of a job; `prefix` is that of the service's keys.

    Raises ValueError if the file is not what Redis wrote and would read, in whole transactions, or if what the service
    wrote into it is not what the service says it writes.
    """
    reader = _Reader(prefix)
    for transaction in read_transactions(data):
        reader.read(transaction)
    return reader.found


class _Reader:
    """Takes one transaction after the other."""

    def __init__(self, prefix: str) -> None:
        self.found = Committed()
        self._prefix = prefix
        self._blobs: dict[str, dict[bytes, bytes]] = defaultdict(dict)
        self._named: dict[str, Load] = {}
        self._by_id: dict[str, Load] = {}
        self._order = 0

    def read(self, transaction: list[Words]) -> None:
        self._order += 1
        outcomes: dict[str, bytes] = {}
        ended: list[str] = []
        changes: list[Commit | Load | Watched | str] = []
        logs: set[str] = set()
        for words in transaction:
            if len(words) < 2:
                continue
            verb, key = words[0].upper(), words[1].decode(errors="replace")
            if not key.startswith(self._prefix):
                continue
            kind, _, name = key.removeprefix(self._prefix).partition(":")
            if verb == b"SET" and kind == "outcome":
                outcomes[name] = words[2]
            elif verb == b"SET" and kind == "snapshots":
                self._snapshots(name, json.loads(words[2]))
            elif verb in (b"HSET", b"HMSET"):
                fields = pairs(words[2:])
                changes += self._hash(kind, name, fields)
                if kind == "job" and fields.get(b"status") == b"succeeded":
                    ended.append(name)
            elif verb == b"HDEL" and kind == "names":
                changes += [word.decode() for word in words[2:]]
            elif verb == b"XADD" and kind == "log":
                commit = read_entry(words)
                self._order += bool(logs)  # one after the other: what is told of the first stands before the second
                commit.order = self._order
                self._by_id[name].commits.append(commit)
                changes.append(commit)
                logs.add(name)
            elif verb == b"XADD" and kind == "feed":
                fields = pairs(words[-2 * len(EVENT) :])
                self.found.feeds[name].append(Entry(*(fields[part].decode() for part in EVENT), self._order))
            elif verb == b"HDEL" and kind == "watches":
                dropped = [Watched(word.decode(), None, order=self._order) for word in words[2:]]
                self.found.watches[name] += dropped
                changes += dropped
            elif verb == b"XADD" and kind == "commands" and b"command" in words:
                command = json.loads(words[words.index(b"command") + 1])
                self.found.requests[command["id"]] = command["request_id"]
            elif verb in (b"DEL", b"UNLINK"):
                self._drop_blobs(words[1:])
        # Of a job that is over a cancel is refused, and what it wrote is removed at once.
        self.found.cancelled |= {
            job for job, outcome in outcomes.items() if outcome == CANCELLED and job not in self.found.endings
        }
        done = [job for job, outcome in outcomes.items() if outcome != CANCELLED]
        if logs and not done:
            done = ended  # an update that is committed with the end of its command has no outcome
        are_updates = len(logs) == 1 and all(isinstance(change, Commit) for change in changes)
        if len(changes) != len(done) or (len(done) > 1 and not are_updates):
            raise ValueError(f"a transaction makes {len(changes)} changes and has {len(done)} outcomes: {done}")
        for change, job in zip(changes, done, strict=True):  # updates of one graph may share a commit, each in its turn
            self._done(change, job)

    def _done(self, change: Commit | Load | Watched | str, job: str) -> None:
        if isinstance(change, str):
            load = self._named.pop(change)
            load.deleted, load.deleted_at = True, self._order
            self.found.removals.append((change, job))
        elif isinstance(change, Commit | Watched):
            change.job = job
        elif change.graph_id != job:
            raise ValueError(f"the graph {change.graph_id} is the outcome of {job}")

    def _hash(self, kind: str, name: str, fields: dict[bytes, bytes]) -> list[Load] | list[Watched]:
        if kind == "blob":
            self._blobs[name].update(fields)
        elif kind == "watches":
            put = [
                Watched(key.decode(), tuple(json.loads(row)["on"]), order=self._order) for key, row in fields.items()
            ]
            self.found.watches[name] += put
            return put
        elif kind == "graph" and b"n_edges" in fields and b"base" not in fields and name in self._by_id:
            self._by_id[name].resized(self._order, int(fields[b"n_vertices"]), int(fields[b"n_edges"]))
        elif kind == "graph" and b"base" in fields:
            load = self._by_id[name]
            load.edges = read_edges(self._blob(fields[b"base"].decode()))
            load.number = load.edges.capacity[0] // LOAD_UNIT
        elif kind == "job" and fields.get(b"status", b"").decode() in ENDED:
            self.found.endings[name].append(fields[b"status"].decode())
        elif kind == "names":
            loads = [
                Load(graph.decode(), graph_id.decode(), 0, order=self._order) for graph, graph_id in fields.items()
            ]
            for load in loads:
                self._named[load.graph] = self._by_id[load.graph_id] = load
            self.found.loads += loads
            return loads
        return []

    def _snapshots(self, graph_id: str, listed: list[dict[str, Any]]) -> None:
        if len(listed) > 1 and graph_id in self._by_id:
            load = self._by_id[graph_id]
            load.reach = max(load.reach, min(snapshot["version"] for snapshot in listed))

    def _drop_blobs(self, keys: Words) -> None:
        for key in keys:
            self._blobs.pop(key.decode(errors="replace").removeprefix(f"{self._prefix}blob:"), None)

    def _blob(self, name: str) -> bytes:
        """All of it. Raises ValueError unless length and digest are as its header says."""
        fields = self._blobs[name]
        data = b"".join(fields[b"%d" % i] for i in range(int(fields[b"chunks"])))
        digest = hashlib.sha256(data).hexdigest().encode()
        if (len(data), digest) != (int(fields[b"bytes"]), fields[b"sha256"]):
            raise ValueError(f"blob {name} has {len(data)} bytes of digest {digest!r}, its header says {fields.keys()}")
        return data
