"""How large a network a reader may build, and how it gets at its bytes."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeAlias

from gpu_engine.types import MAX_ARCS, MAX_VERTICES

Source: TypeAlias = bytes | bytearray | memoryview | str | os.PathLike[str] | BinaryIO
"""The content itself, the path of a file (text or `Path`), or a file open for reading bytes."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds a reader keeps before it allocates; more raises `TooLarge`."""

    max_vertices: int = MAX_VERTICES
    max_edges: int = MAX_ARCS // 2
    max_bytes_decompressed: int = 16 << 30
    """Of an npz or compressed Arrow body, in bytes, all its arrays together."""


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
