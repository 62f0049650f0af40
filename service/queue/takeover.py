"""What happens to the graphs and commands of a worker that stays away: a live one takes them."""

from typing import Any, Final

import redis
import structlog

from service.queue.consumer import GROUP, LEFT_BEHIND, parse_command
from service.queue.lease import is_silent
from service.queue.models import WorkerReport
from service.store.catalogue import Registry
from service.store.keys import Keys
from service.store.log import Fenced

PAGE: Final = 64

log = structlog.get_logger(__name__)


class Takeover:
    """Run by every worker with each heartbeat; the fencing epoch settles who was first."""

    def __init__(self, client: redis.Redis, keys: Keys, worker: str, lease_s: float) -> None:
        self._redis: Any = client
        self._keys = keys
        self._worker = worker
        self._lease_s = lease_s
        self._registry = Registry(client, keys)

    def check(self) -> None:
        """Take over from every worker that has been silent for long enough. Two round trips if there is none."""
        rows = self._redis.hgetall(self._keys.workers)
        for row in rows.values():
            report = WorkerReport.model_validate_json(row)
            if report.name == self._worker or not is_silent(report, self._lease_s):
                continue
            if not self._redis.exists(self._keys.lease(report.name)):
                self._take_from(report.name)

    def _take_from(self, other: str) -> None:
        for name in self._registry.owned_by(other):
            try:
                if self._registry.take_over(name, self._worker, other):
                    log.warning("took_over", graph=name, worker=self._worker, from_worker=other)
            except Fenced:
                continue
        self._move_commands(other)

    def _move_commands(self, other: str) -> None:
        """Each in one MULTI. One that the other worker has just ended is dropped by whoever reads it."""
        theirs, mine = self._keys.commands(other), self._keys.commands(self._worker)
        while entries := self._redis.xrange(theirs, count=PAGE):
            begun = self._delivered(theirs, entries[0][0], entries[-1][0])
            for entry_id, fields in entries:
                command = parse_command(fields)
                with self._redis.pipeline() as pipe:
                    if command is not None:
                        pipe.xadd(mine, fields | ({LEFT_BEHIND: b"1"} if entry_id in begun else {}))
                        pipe.zrem(self._keys.waiting(other), command.id)
                        pipe.zadd(self._keys.waiting(self._worker), {command.id: command.created_at})
                        pipe.hset(self._keys.job(command.id), "worker", self._worker)
                    pipe.xack(theirs, GROUP, entry_id)
                    pipe.xdel(theirs, entry_id)
                    pipe.execute()

    def _delivered(self, stream: str, first: bytes, last: bytes) -> set[bytes]:
        """Which of these entries a worker had been given: it may have begun them, and one may have ended it."""
        try:
            pending = self._redis.xpending_range(stream, GROUP, first, last, PAGE)
        except redis.ResponseError as error:
            if str(error).startswith("NOGROUP"):  # it has never read anything
                return set()
            raise
        return {entry["message_id"] for entry in pending}
