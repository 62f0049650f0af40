"""What happens to the graphs and commands of a worker that stays away: a live one takes them."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import redis
import structlog

from service.protocol import Command
from service.queue.models import read_reports
from service.store.applied import Fenced
from service.store.catalogue import Registry
from service.store.jobs.transitions import GROUP, Entry, acknowledge, move
from service.store.keys import LEAVING, Keys
from service.store.ownership import Ownership
from service.store.watched import watched
from service.worker.membership.handback import Absences
from service.worker.membership.lease import Silences
from service.worker.running.task import LEFT_BEHIND, parse_command, parse_remains

PAGE: Final = 64
MOVED_AT_ONCE_BYTES: Final = 64 << 20
"""Commands of so many bytes move together with their graphs. The rest follows, perhaps behind newer commands."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Queued:
    """A command in the stream of a worker that is away, as far as it can be read; None for what has no id."""

    entry_id: bytes
    fields: dict[bytes, bytes]
    command: Command | None


class Takeover:
    """Takes graphs from workers that stay away. Every worker runs it at each heartbeat; epochs settle who was first."""

    def __init__(
        self,
        client: redis.Redis,
        keys: Keys,
        worker: str,
        lease_s: float,
        on_taken: Callable[[list[str]], None] = lambda graphs: None,
        show_life: Callable[[], None] = lambda: None,
        only_workers: Sequence[str] = (),
    ) -> None:
        """`on_taken` is told of the graphs that have come from one worker, and `show_life` is called again and again
        while much is taken: it is done in the thread of the heartbeat, and others would take over from this worker.
        If there are ``only_workers``, graphs of a worker with any other name are taken once its lease has ended, and it
        is forgotten then."""
        self._redis: Any = client
        self._keys = keys
        self._worker = worker
        self._lease_s = lease_s
        self._on_taken = on_taken
        self._show_life = show_life
        self._only_workers = only_workers
        self._silences = Silences(lease_s)
        self._registry = Registry(client, keys)
        self._ownership = Ownership(client, keys)
        self._absences = Absences(client, keys)

    def check(self) -> None:
        """Take over from every worker that has been silent for long enough. Two round trips if there is none."""
        rows = self._redis.hgetall(self._keys.workers)
        reports = read_reports(rows, self._keys)
        self._silences.forget(but={report.name for report in reports})
        for report in reports:
            if report.name == self._worker or not (self._silences.is_silent(report) or self._is_no_more(report.name)):
                continue
            if not self._redis.exists(self._keys.lease(report.name)):
                self._take_from(report.name)
                if self._silences.is_forgotten(report) or self._is_no_more(report.name):
                    self._forget(report.name)

    def _is_no_more(self, other: str) -> bool:
        return bool(self._only_workers) and other not in self._only_workers

    def _take_from(self, other: str) -> None:
        names = self._registry.owned_by(other)
        queued = self._queued_by_graph(other) if names else {}
        taken = [name for name in names if self._take(name, other, queued.get(name, []))]
        if taken:
            self._absences.note(other, time.time(), self._lease_s)
            self._on_taken(taken)
        self._move(other, self._read(other))

    def _forget(self, other: str) -> None:
        """Forget a worker that has nothing any more. Names of machines come and go, and each that is kept is asked
        about at every heartbeat. One that is there again after all says so with its next one."""
        if self._registry.owned_by(other):
            return
        with self._redis.pipeline() as pipe, suppress(redis.WatchError):
            lease, commands = self._keys.lease(other), self._keys.commands(other)
            reads = ("EXISTS", lease), ("XLEN", commands), ("HGET", self._keys.draining, other)
            is_there, waiting, drained = watched(pipe, [lease, commands], *reads)
            if is_there or waiting:
                return
            pipe.multi()
            pipe.hdel(self._keys.workers, other)
            pipe.hdel(self._keys.absences, other)
            if drained is not None and drained.endswith(LEAVING):  # what an operator has drained stays so
                pipe.hdel(self._keys.draining, other)
            pipe.execute()
            log.info("forgotten", worker=self._worker, other=other)

    def _take(self, name: str, other: str, queued: list[Queued]) -> bool:
        """Take a graph and what waits for it, in one MULTI: what is asked from now on comes behind that."""
        self._show_life()
        try:
            taken = self._ownership.take_over(name, self._worker, other, partial(self._move_all, other, queued))
        except Fenced:
            return False
        if taken:
            log.warning("took_over", graph=name, worker=self._worker, from_worker=other)
        return taken

    def _queued_by_graph(self, other: str) -> dict[str, list[Queued]]:
        """Commands in their order, of graphs whose commands are all among the first `MOVED_AT_ONCE_BYTES`."""
        found: dict[str, list[Queued]] = defaultdict(list)
        size = 0
        for queued in self._read(other):
            if queued.command is None:
                continue
            size += sum(map(len, queued.fields.values()))
            if size > MOVED_AT_ONCE_BYTES:
                found.pop(queued.command.graph, None)
                break
            found[queued.command.graph].append(queued)
        return found

    def _read(self, other: str) -> Iterator[Queued]:
        """What is in a worker's stream at first, a page at a time. What is behind is read after what was yielded is
        done.

        What comes later is left for the next time. There may be no end to it: if the other worker lives, as after a
        pause of the whole machine, and takes over from this one, each moves what the other has just moved.
        """
        stream, start = self._keys.commands(other), "-"
        end = next((entry_id for entry_id, _ in self._redis.xrevrange(stream, count=1)), b"0")
        while entries := self._redis.xrange(stream, start, end, count=PAGE):
            begun = self._begun(stream, entries[0][0], entries[-1][0])
            for entry_id, fields in entries:
                mark = {LEFT_BEHIND: b"1"} if entry_id in begun else {}
                yield Queued(entry_id, fields | mark, parse_command(fields) or parse_remains(fields))
            start = f"({entries[-1][0].decode()}"

    def _move(self, other: str, left: Iterable[Queued]) -> None:
        """Move each command in a MULTI. One that the other worker has just ended is dropped by whoever reads it."""
        for queued in left:
            self._show_life()
            with self._redis.pipeline() as pipe:
                self._move_all(other, [queued], pipe)
                pipe.execute()

    def _move_all(self, other: str, queued: list[Queued], pipe: Any) -> None:
        """Move commands from the other worker's stream to this one's, within a MULTI."""
        for one in queued:
            entry = Entry(other, one.entry_id)
            if one.command is not None:
                move(pipe, self._keys, one.command, entry, one.fields, self._worker)
            else:
                log.error("unreadable_command", entry=one.entry_id, from_worker=other)
                acknowledge(pipe, self._keys, entry.worker, [entry.entry_id])

    def _begun(self, stream: str, first: bytes, last: bytes) -> set[bytes]:
        """Which of these entries a worker had been given: it may have begun them, and one may have ended it."""
        try:
            pending = self._redis.xpending_range(stream, GROUP, first, last, PAGE)
        except redis.ResponseError as error:
            if str(error).startswith("NOGROUP"):  # it has never read anything
                return set()
            raise
        return {entry["message_id"] for entry in pending}
