"""Bytes on their way from one process to another: a file without a name that lives in memory.

It is gone when the last process that has it open ends, however it ends.
"""

import mmap
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

PIECE_BYTES: Final = 4 << 20
CLOSED_HERE_BYTES: Final = 16 << 20


class Spool:
    """One such file. Closed by whoever made it."""

    def __init__(self) -> None:
        self._file = os.fdopen(_anonymous(), "r+b", buffering=0)

    def fileno(self) -> int:
        return self._file.fileno()

    @property
    def n_bytes(self) -> int:
        return os.fstat(self.fileno()).st_size

    def write(self, piece: bytes | bytearray | memoryview) -> int:
        """Append the whole piece."""
        left = memoryview(piece).cast("B")
        while left:
            left = left[self._file.write(left) or 0 :]
        return len(piece)

    def view(self) -> memoryview:
        """All bytes, mapped and not copied; unmapped when nothing looks at them any more."""
        n_bytes = self.n_bytes
        return memoryview(mmap.mmap(self.fileno(), n_bytes, prot=mmap.PROT_READ) if n_bytes else b"")

    def pieces(self) -> Iterator[bytes]:
        """All bytes, a copy of some at a time."""
        for start in range(0, self.n_bytes, PIECE_BYTES):
            yield os.pread(self.fileno(), PIECE_BYTES, start)

    def close(self) -> None:
        """Give the memory back: of a long one in a thread, as the kernel takes a tenth of a second for 500 MB. Where no
        thread can be started it is done here."""
        if self.n_bytes > CLOSED_HERE_BYTES:
            with suppress(RuntimeError):
                threading.Thread(target=self._file.close, name="spool").start()
                return
        self._file.close()


def _anonymous() -> int:
    if sys.platform == "linux":
        return os.memfd_create("headrace-body")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
