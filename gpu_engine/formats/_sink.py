"""Where a writer puts its bytes, for whoever wants them piece by piece."""

import io
from typing import Any


class Sink(io.RawIOBase):
    """A file to be written from its beginning to its end; what has been taken is forgotten."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, piece: Any) -> int:
        self._parts.append(bytes(piece))
        return len(self._parts[-1])

    def take(self) -> bytes:
        """What has been written since the last time, or nothing."""
        taken = b"".join(self._parts)
        self._parts.clear()
        return taken
