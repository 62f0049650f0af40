"""How far something is, for people: a bar on a terminal, a plain line now and then elsewhere."""

from contextlib import suppress
from types import TracebackType
from typing import Final, Self, TextIO

WIDTH: Final = 24
PLAIN_EVERY_S: Final = 10.0
ERASE_LINE: Final = "\r\x1b[K"


class Meter:
    """Written to a stream; on a terminal it is gone at the end. Nobody is told where there is none, or it is full."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._in_place = stream is not None and stream.isatty()
        self._said_at: float | None = None
        """Seconds of the work when it was said last."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._in_place and self._said_at is not None:
            self._write(ERASE_LINE)

    def show(self, done: int, of: int, what: str, seconds: float) -> None:
        """So many of all are done, after so many seconds. Without a terminal at most one line in `PLAIN_EVERY_S`."""
        text = f"{done} of {of} {what}, {seconds:.0f} s"
        if self._in_place:
            filled = WIDTH * min(done, of) // max(of, 1)
            self._write(f"{ERASE_LINE}[{'#' * filled}{'.' * (WIDTH - filled)}] {text}")
        elif self._said_at is None or seconds >= self._said_at + PLAIN_EVERY_S:
            self._write(f"{text}\n")
        else:
            return
        self._said_at = seconds

    def _write(self, text: str) -> None:
        if self._stream is not None:
            with suppress(OSError):
                self._stream.write(text)
                self._stream.flush()
