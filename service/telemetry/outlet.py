"""Where the lines of a process go. Who stops reading, as a pager or a terminal that Ctrl-S holds, stops nobody's work.

A pipe is written without waiting by a file description of our own: that of standard error belongs to others too, who
expect that it waits. Where there is no other one to be had, as for a user who did not make the pipe, it is asked
whether it takes something, and given no more than it then takes at once.
"""

import os
import select
import socket
import stat
import time
from collections.abc import Callable
from functools import partial
from typing import Final, TextIO, TypeAlias

PATIENCE_S: Final = 0.5
"""How long a line waits for a reader who may only be slow. Those after it do not wait, until one of them is taken."""

REGAINED: Final = 0.5
"""How much of that comes back with each second without a wait: who is slow all the time keeps work waiting for a third
of the time at most, and loses lines."""

PAUSE_S: Final = 0.001

Write: TypeAlias = Callable[[bytes], int]
"""Writes the beginning, and says how many bytes that was; raises BlockingIOError where nothing is taken just now."""


class Outlet:
    """A stream of text for `logging`, which gives it whole lines, one thread at a time."""

    def __init__(self, stream: TextIO, told: Callable[[int], str]) -> None:
        """`told` makes the line which says that so many were lost."""
        self._stream = stream
        self._told = told
        self._write = _unwaiting(stream)
        self._rest = b""
        """The rest of a line of which a part was written."""
        self._lost = 0
        self._patience_s = PATIENCE_S
        self._ended = time.monotonic()

    def write(self, text: str) -> None:
        """Write one line, or lose it. Raises OSError if nobody will ever read it."""
        if self._write is None:
            self._stream.write(text)
            return
        began = time.monotonic()
        self._patience_s = min(PATIENCE_S, self._patience_s + REGAINED * (began - self._ended))
        try:
            self._write_or_lose(text, 0.0 if self._rest or self._lost else self._patience_s)
        finally:
            self._ended = time.monotonic()
            self._patience_s = max(0.0, self._patience_s - (self._ended - began))

    def flush(self) -> None:
        if self._write is None:
            self._stream.flush()

    def _write_or_lose(self, text: str, patience_s: float) -> None:
        self._rest = self._left(self._rest, patience_s)
        if self._rest or not self._begun(self._told(self._lost) + text if self._lost else text, patience_s):
            self._lost += 1
        else:
            self._lost = 0

    def _begun(self, line: str, patience_s: float) -> bool:
        """Whether it was written, or so much of it that the rest has to follow."""
        data = line.encode(self._stream.encoding or "utf-8", "backslashreplace")
        left = self._left(data, patience_s)
        if len(left) == len(data):
            return False
        self._rest = left
        return True

    def _left(self, data: bytes, patience_s: float) -> bytes:
        """Write what is taken within this time; what is left."""
        assert self._write is not None
        ends_at = time.monotonic() + patience_s
        while data:
            try:
                data = data[self._write(data) :]
            except BlockingIOError:
                if time.monotonic() >= ends_at:
                    break
                time.sleep(PAUSE_S)
        return data


def _unwaiting(stream: TextIO) -> Write | None:
    """How to write there without waiting; None where nobody reads who could stand still, as in a file."""
    try:
        descriptor = stream.fileno()
        mode = os.fstat(descriptor).st_mode
    except (OSError, ValueError):  # the stream has no file descriptor
        return None
    if stat.S_ISSOCK(mode):
        return partial(_send, descriptor)
    if not stat.S_ISFIFO(mode) and not os.isatty(descriptor):
        return None
    try:
        own = os.open(f"/proc/self/fd/{descriptor}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return _asking(descriptor)
    return partial(os.write, own)


def _send(descriptor: int, data: bytes) -> int:
    peer = socket.socket(fileno=descriptor)
    try:
        return peer.send(data, socket.MSG_DONTWAIT)
    finally:
        peer.detach()


def _asking(descriptor: int) -> Write:
    asked = select.poll()
    asked.register(descriptor, select.POLLOUT)

    def write(data: bytes) -> int:
        if not asked.poll(0):
            raise BlockingIOError
        return os.write(descriptor, data[: select.PIPE_BUF])

    return write
