"""Head and body of a short answer leave in one write to the connection, and so in one packet."""

import asyncio
from typing import Final

HELD_BYTES: Final = 16 * 1024
"""More than this is written at once."""


class Corked:
    """A transport that holds what is written first until more is written, or until the event loop turns."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held = b""

    def write(self, data: bytes) -> None:
        """Hold the first bytes, if they are few, and write them with what follows."""
        if self._held and len(data) <= HELD_BYTES:
            self._write(self._held + data)
            return
        self.flush()
        if len(data) > HELD_BYTES:
            self._write(data)
        elif data:
            self._held = data
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Write what is held."""
        if self._held:
            self._write(self._held)

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def _write(self, data: bytes) -> None:
        self._held = b""
        if not self._transport.is_closing():
            self._transport.write(data)
