"""What a worker is told beside its commands: jobs that are cancelled, and graphs that are handed over."""

import threading
from collections.abc import Callable
from typing import Any, Final

import redis

from service.store.keys import Keys
from service.store.unreadable import readable

BLOCK_MS: Final = 1000
RETRY_S: Final = 0.05


class ControlStream:
    """The stream of such messages for one worker, which one thread reads."""

    def __init__(
        self,
        client: redis.Redis,
        keys: Keys,
        worker: str,
        on_cancel: Callable[[str], None],
        on_restore: Callable[[str, str], None],
        on_prepare: Callable[[str, str], None],
    ) -> None:
        """`on_cancel` is told the id of each job; `on_restore` the name of each graph that is handed over, and
        `on_prepare` that of each which is about to be, with the key to which to write that it is there, if any."""
        self._redis: Any = client
        self._stream = keys.control(worker)
        self._on_cancel = on_cancel
        self._on_restore = on_restore
        self._on_prepare = on_prepare
        self._last: bytes | None = None
        """The message that was heard last, or the one before the first that is to be heard."""

    def begin(self) -> None:
        """Hear what is said from now on, once `read` is called. What was said before is in jobs and in the catalogue.

        Raises RedisError.
        """
        newest = self._redis.xrevrange(self._stream, count=1)
        self._last = newest[0][0] if newest else b"0"

    def read(self, stopping: threading.Event) -> None:
        """Read messages as they come, until `stopping`."""
        while not stopping.is_set():
            try:
                if self._last is None:
                    self.begin()
                answer = self._redis.xread({self._stream: self._last}, block=BLOCK_MS)
                for entry_id, fields in answer[0][1] if answer else []:
                    self._last = entry_id
                    for told in readable([(entry_id, fields)], self._stream, _read):
                        self._hear(*told)
            except redis.RedisError:
                stopping.wait(RETRY_S)

    def _hear(self, what: str, about: str, answer_to: str) -> None:
        if what == "restore":
            self._on_restore(about, answer_to)
        elif what == "prepare":
            self._on_prepare(about, answer_to)
        else:
            self._on_cancel(about)


def _read(entry_id: str, fields: dict[bytes, bytes]) -> tuple[str, str, str]:
    """What is told, about which graph or job, and the key to answer to. Raises ValueError for what a later version
    tells."""
    for what in ("restore", "prepare", "cancel"):
        if what.encode() in fields:
            return what, fields[what.encode()].decode(), fields.get(b"answer_to", b"").decode()
    raise ValueError("nothing that this release knows")
