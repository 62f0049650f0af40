"""Where the results of commands go: short ones travel with the reply, longer ones lie beside it as blobs."""

import threading
from collections import deque
from collections.abc import Iterable
from itertools import chain
from typing import Final

import redis

from service.protocol import Envelope
from service.store.blobs import RESULT_CHUNK_BYTES, Blobs
from service.store.jobs.record import Result
from service.store.keys import Keys

INLINE_BYTES: Final = 16 << 10
"""Longer results travel as a blob."""

RESULTS_BYTES: Final = 256 << 20
"""Blobs of results kept; the oldest go first, before their time if need be."""

WRITING_BYTES: Final = 4 * RESULT_CHUNK_BYTES
"""What it takes at most to write a result: a chunk as it grows, as it is sent, and as the connection has it."""


class Results:
    """Stores the results of one worker's commands. Safe from any thread."""

    def __init__(self, client: redis.Redis, keys: Keys, ttl_s: int) -> None:
        self._blobs = Blobs(client, keys)
        self._ttl_s = ttl_s
        self._kept: deque[tuple[str, int]] = deque()
        self._kept_bytes = 0
        self._lock = threading.Lock()

    def keep(self, pieces: Iterable[bytes], envelope: Envelope) -> Result:
        """The result that consists of these pieces, which are stored as they come: it is never in memory as a whole.

        What the pieces raise is passed on, and nothing of them stays.
        """
        rest = iter(pieces)
        text = b""
        for piece in rest:
            text += piece
            if len(text) > INLINE_BYTES:
                blob, n_bytes = self.store(chain([text], rest))
                return Result(blob=blob, blob_bytes=n_bytes, envelope=envelope)
        return Result(text, envelope=envelope)

    def store(self, pieces: Iterable[bytes], *, keeps: bool = True) -> tuple[str, int]:
        """Name and bytes of a blob that consists of these pieces, which is no result itself. Raises as `keep`.

        It goes when there are too many bytes of results, or, if they do not keep it, when it expires without an owner.
        """
        name, n_bytes = self._blobs.write(pieces, self._ttl_s, chunk_bytes=RESULT_CHUNK_BYTES)
        if not keeps:
            return name, n_bytes
        with self._lock:
            self._kept.append((name, n_bytes))
            self._kept_bytes += n_bytes
            gone = []
            while len(self._kept) > 1 and self._kept_bytes > RESULTS_BYTES:
                old, its_bytes = self._kept.popleft()
                self._kept_bytes -= its_bytes
                gone.append(old)
        self._blobs.delete(*gone)
        return name, n_bytes
