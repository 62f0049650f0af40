"""Where a body in chunks ends (RFC 9112, 7.1), so that no byte of the next request is parsed with it.

The parser says when it has come to the end of a body, but not where that was among the bytes it got. This keeps count
of chunks beside it and says how far it may go. What stands around the chunks has bounds too, which the parser lacks.
"""

from typing import Final

MAX_LENGTH_LINE: Final = 256
"""The limit of the line before a chunk, in bytes: its length, and extensions that are not read."""

MAX_TRAILER_BYTES: Final = 8 * 1024
"""The limit of the lines behind the last chunk, in bytes; they are not read either."""

HEX: Final = b"0123456789abcdefABCDEF"


class Refused(Exception):
    """Raised for what is not read as a request; says why."""


class Chunks:
    """Follows the chunks of one body. Takes constant time for each chunk and no memory."""

    def __init__(self) -> None:
        self.is_over = False
        self._data_left = 0
        """How many bytes are still to come of the present chunk, with the end of line behind it."""
        self._line = b""
        """The beginning of a line that has not ended."""
        self._room_bytes = MAX_LENGTH_LINE
        """How many more bytes the line, or all lines behind the last chunk, may have."""
        self._in_trailer = False

    def advance(self, data: bytes, at: int, most: int) -> int:
        """The place up to which to parse: at most `most` bytes from `at`, and not beyond the body. Raises `Refused`."""
        stop = min(len(data), at + most)
        while at < stop and not self.is_over:
            if self._data_left:
                step = min(self._data_left, stop - at)
                self._data_left -= step
                at += step
                continue
            found = data.find(b"\n", at, stop)
            end = stop if found < 0 else found + 1
            self._room_bytes -= end - at
            if self._room_bytes < 0:
                raise Refused("there is too much around the chunks of the body")
            self._line += data[at:end]
            at = end
            if found >= 0:
                self._end_line()
        return at

    def _end_line(self) -> None:
        line, self._line = self._line, b""
        if self._in_trailer:
            self.is_over = line == b"\r\n"
            return
        digits = line.rstrip(b"\r\n").partition(b";")[0]
        if not digits or digits.strip(HEX):
            raise Refused("a chunk of the body has no length")
        size = int(digits, 16)
        self._in_trailer = size == 0
        self._data_left = size + 2 if size else 0
        self._room_bytes = MAX_LENGTH_LINE if size else MAX_TRAILER_BYTES
