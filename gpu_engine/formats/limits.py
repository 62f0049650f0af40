"""How large a network a reader may build, and how it gets at its bytes."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias

from gpu_engine.errors import TooLarge
from gpu_engine.types import MAX_ARCS, MAX_VERTICES

Source: TypeAlias = bytes | bytearray | memoryview | str | os.PathLike[str] | BinaryIO
"""The content itself, the path of a file (text or `Path`), or a file open for reading bytes."""

FREE_BYTES: Final = 8 << 20
"""Compressed data may decompress to this many bytes, however small it is."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds a reader keeps before it allocates; more raises `TooLarge`."""

    max_vertices: int = MAX_VERTICES
    max_edges: int = MAX_ARCS // 2
    max_bytes_decompressed: int = 16 << 30
    """The arrays of an npz or compressed Arrow body, all together, in bytes."""
    max_expansion: int | None = None
    """Decompressed bytes for each byte of a compressed body, beyond the first `FREE_BYTES`; None: any number."""

    def check_decompressed(self, decompressed: int, compressed: int) -> None:
        """Raise `TooLarge` if a body of `compressed` bytes may not stand for `decompressed` bytes."""
        if decompressed > self.max_bytes_decompressed:
            raise TooLarge(f"{decompressed} bytes decompressed are over the limit of {self.max_bytes_decompressed}")
        if self.max_expansion is not None and decompressed > max(FREE_BYTES, self.max_expansion * compressed):
            raise TooLarge(
                f"{compressed} bytes decompress to {decompressed}, more than {self.max_expansion} times as many: "
                "send them uncompressed"
            )


DEFAULT_LIMITS = Limits()


def load(source: Source) -> bytes | memoryview:
    """The whole content. `OSError` if a path cannot be read."""
    if isinstance(source, bytes):
        return source
    if isinstance(source, bytearray | memoryview):
        return memoryview(source).cast("B")
    if isinstance(source, str | os.PathLike):
        return Path(source).read_bytes()
    return source.read()


class View:
    """A file over bytes in memory: `io.BytesIO` would copy them."""

    def __init__(self, data: bytes | memoryview, max_read: int) -> None:
        self._data = memoryview(data)
        self._at = 0
        self._max_read = max_read

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: len(self._data)}[whence]
        if start + offset < 0:
            raise OSError("a position before the first byte")
        self._at = start + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, n_bytes: int = -1) -> bytes:
        """At most `max_read` bytes at a time, else `ValueError`; all that are left for -1."""
        wanted = len(self._data) - self._at if n_bytes < 0 else n_bytes
        if wanted > self._max_read:
            raise ValueError(f"more than {self._max_read} bytes at a time")
        piece = bytes(self._data[self._at : self._at + wanted])
        self._at += len(piece)
        return piece
