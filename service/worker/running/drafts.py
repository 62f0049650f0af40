"""Answers in lines that can be read while their rows are made: what has been written, and what is about to be."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from service.protocol import Envelope
from service.store.blobs import RESULT_CHUNK_BYTES, Blobs, BlobWriter
from service.store.jobs.record import Draft, Result

INLINE_BYTES: Final = 16 << 10
"""Results longer than this are stored as a blob."""

LEFT_S: Final = 60
"""How long the lines of an unfinished answer are kept for its readers."""

HEAD_AND_ROW: Final = 2
"""How many lines a reader needs at least: the head and one row."""


class DraftWriter:
    """Writes one answer. A thread makes its lines; another one has them written now and then. Safe from both.

    Chunks end with a line, but for lines that are longer than a chunk.
    """

    def __init__(self, blobs: Blobs, ttl_s: int, envelope: Envelope) -> None:
        self._blobs = blobs
        self._ttl_s = ttl_s
        self._envelope = envelope
        self._text = bytearray()
        """What has not been written."""
        self._blob: BlobWriter | None = None
        self._lines = 0
        """The number of lines that have been written."""
        self._fault: Exception | None = None
        """Why a chunk was not written, or may not have been: nothing is written behind it."""
        self._is_over = False
        self._lock = threading.Lock()

    def add(self, piece: bytes) -> None:
        """What comes next, a part of a line or several. Raises out_of_memory and RedisError, and what `tell` met."""
        with self._lock:
            if self._fault is not None:
                raise self._fault
            self._text += piece
            while len(self._text) >= RESULT_CHUNK_BYTES:
                whole = self._text.rfind(b"\n", 0, RESULT_CHUNK_BYTES) + 1
                self._write(whole or RESULT_CHUNK_BYTES)

    def tell(self) -> Draft | None:
        """Write the lines that are whole; where they can be read, once there is a row among them."""
        with self._lock:
            if self._is_over or self._fault is not None:
                return None
            with suppress(Exception):  # the thread that makes the lines will raise it
                self._write_lines()
            if self._fault is not None or self._blob is None or self._lines < HEAD_AND_ROW:
                return None
            return Draft(blob=self._blob.name, envelope=self._envelope)

    def end(self) -> Result:
        """The result, of all that was added. Raises as `add`."""
        with self._lock:
            if self._fault is not None:
                raise self._fault
            if self._blob is None and len(self._text) <= INLINE_BYTES:
                self._is_over = True
                return Result(bytes(self._text), envelope=self._envelope)
            blob = self._begun()
            with self._noting():
                blob.end(bytes(self._text))
            self._text.clear()
            self._is_over = True
            return Result(blob=blob.name, blob_bytes=blob.n_bytes, envelope=self._envelope)

    def give_up(self) -> tuple[str, int] | None:
        """End the writing of an answer that stays unfinished. Returns name and bytes of the blob, which is left for
        `LEFT_S` with all whole lines; None if nobody can have read from it. Raises as `add`."""
        with self._lock:
            if self._is_over or self._blob is None:
                return None
            self._is_over = True
            if self._lines < HEAD_AND_ROW or self._fault is not None:
                self._blobs.delete(self._blob.name)
                return None
            self._write_lines()
            self._blobs.expire(self._blob.name, LEFT_S)
            return self._blob.name, self._blob.n_bytes

    def _write_lines(self) -> None:
        """Write what is whole, unless nothing is, or no row yet."""
        whole = self._text.rfind(b"\n") + 1
        if whole and self._lines + self._text.count(b"\n") >= HEAD_AND_ROW:
            self._write(whole)

    def _write(self, n_bytes: int) -> None:
        chunk = bytes(self._text[:n_bytes])
        with self._noting():
            self._begun().append(chunk)
        self._lines += chunk.count(b"\n")
        del self._text[:n_bytes]

    @contextmanager
    def _noting(self) -> Iterator[None]:
        """Around a write: what it raises is remembered."""
        try:
            yield
        except Exception as error:
            self._fault = error
            raise

    def _begun(self) -> BlobWriter:
        if self._blob is None:
            self._blob = self._blobs.begin(self._ttl_s)
        return self._blob
