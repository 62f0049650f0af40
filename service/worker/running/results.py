"""Where the results of commands go: short ones travel with the reply, longer ones lie beside it as blobs."""

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import chain
from typing import Final

import redis

from service.errors import ServiceError
from service.protocol import Envelope
from service.store.blobs import RESULT_CHUNK_BYTES, Blobs
from service.store.jobs.record import Result
from service.store.keys import Keys
from service.worker.running import drafts
from service.worker.running.drafts import DraftWriter

RESULTS_BYTES: Final = 256 << 20
"""The limit of all blobs of results together, beside the latest one. Beyond it, the oldest results of the graph that
has most are removed, even before they expire: so whoever asks for much of one graph loses no answers of another."""

WRITING_BYTES: Final = 4 * RESULT_CHUNK_BYTES
"""The most memory that writing a result takes: a chunk as it grows, as it is sent, and as the connection has it."""


class Results:
    """Stores the results of one worker's commands. Safe from any thread."""

    def __init__(self, client: redis.Redis, keys: Keys, ttl_s: int) -> None:
        self._blobs = Blobs(client, keys)
        self._ttl_s = ttl_s
        self._kept: dict[str, deque[tuple[str, int]]] = {}
        """Names and bytes by the generation of their graph, the oldest first."""
        self._bytes_of: Counter[str] = Counter()
        self._lock = threading.Lock()

    def keep(self, pieces: Iterable[bytes], envelope: Envelope) -> Result:
        """The result that consists of these pieces, which are stored as they come: it is never in memory as a whole.

        What the pieces raise is passed on, and nothing of them stays.
        """
        rest = iter(pieces)
        text = b""
        for piece in rest:
            text += piece
            if len(text) > drafts.INLINE_BYTES:
                blob, n_bytes = self.store(chain([text], rest), envelope.generation)
                return Result(blob=blob, blob_bytes=n_bytes, envelope=envelope)
        return Result(text, envelope=envelope)

    def keep_lines(
        self, pieces: Iterable[bytes], envelope: Envelope, on_begin: Callable[[DraftWriter], None]
    ) -> Result:
        """`keep` for lines, of which those that are there can be read by way of what `on_begin` is given.

        What the pieces raise is passed on; lines that somebody may be reading stay for a little while.
        """
        draft = DraftWriter(self._blobs, self._ttl_s, envelope)
        on_begin(draft)
        try:
            for piece in pieces:
                draft.add(piece)
            result = draft.end()
        except BaseException:
            with suppress(redis.RedisError, ServiceError):  # then it expires
                self._keep(draft.give_up(), envelope.generation)
            raise
        self._keep(None if result.blob is None else (result.blob, result.blob_bytes), envelope.generation)
        return result

    def store(self, pieces: Iterable[bytes], generation: str | None, *, keeps: bool = True) -> tuple[str, int]:
        """Name and bytes of a blob that consists of these pieces, which is no result itself. Raises as `keep`.

        It goes when there are too many bytes of results, or, if they do not keep it, when it expires without an owner.
        """
        name, n_bytes = self._blobs.write(pieces, self._ttl_s, chunk_bytes=RESULT_CHUNK_BYTES)
        if keeps:
            self._keep((name, n_bytes), generation)
        return name, n_bytes

    def _keep(self, blob: tuple[str, int] | None, generation: str | None) -> None:
        """Count one more blob, by its name and bytes, and let go of others if there are too many bytes."""
        if blob is None:
            return
        with self._lock:
            gone = []
            while self._bytes_of.total() > RESULTS_BYTES:
                most = max(self._bytes_of, key=self._bytes_of.__getitem__)
                old, n_bytes = self._kept[most].popleft()
                self._bytes_of[most] -= n_bytes
                if not self._kept[most]:
                    del self._kept[most], self._bytes_of[most]
                gone.append(old)
            self._kept.setdefault(generation or "", deque()).append(blob)
            self._bytes_of[generation or ""] += blob[1]
        self._blobs.delete(*gone)
