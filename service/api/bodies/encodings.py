"""Content encodings, undone piece by piece, so that no more is ever decoded than was asked for."""

import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import zstandard

from service.errors import ServiceError

SLICE_BYTES: Final = 512
"""How many bytes a decoder gets at a time, which bounds what one step can produce. A block of zstd has at least 4 bytes
and decodes to at most 128 KiB, so one step gives at most 16 MiB, and as much again while the decoder joins the
blocks."""

MAX_WINDOW_BYTES: Final = 128 * 1024 * 1024

MAX_EXPANSION: Final = 200
"""How many bytes one sent byte may decode to, beyond `gpu_engine.formats.FREE_BYTES`. Text packs to a tenth, seldom to
a fiftieth: what packs better is made to take much memory with few bytes."""

FREE_MEMBERS: Final = 1024
MEMBER_BYTES: Final = 16 << 10
"""A body may have `FREE_MEMBERS` gzip members or zstd frames, and one more for each of this many decoded bytes, because
each costs time."""


def _gzip() -> Any:
    return zlib.decompressobj(wbits=31)


DECODERS: Final[Mapping[str, Callable[[], Any]]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,  # the same by an older name (RFC 9110, 8.4.1.3)
    "zstd": lambda: zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES).decompressobj(),
}


def decoded(raw: memoryview, encoding: str) -> Iterator[bytes]:
    """The pieces of a body; raises invalid_body if its encoding is broken. Linear in what it is given and gives."""
    try:
        yield from _pieces(raw, DECODERS[encoding])
    except EOFError as error:
        raise ServiceError("invalid_body", f"the {encoding} encoding is broken: {error}") from None
    except (zlib.error, zstandard.ZstdError):
        detail = f"the body is not {encoding}, as its Content-Encoding says, or is broken"
        raise ServiceError("invalid_body", detail, header="Content-Encoding") from None


def _pieces(raw: memoryview, new_decoder: Callable[[], Any]) -> Iterator[bytes]:
    """Decode members or frames that follow one another; each must be whole."""
    at = n_decoded = members = 0
    while at < len(raw):
        decoder = new_decoder()
        members += 1
        if members > FREE_MEMBERS + n_decoded // MEMBER_BYTES:
            raise EOFError("too many members for what they hold")
        while not decoder.eof:
            if at >= len(raw):
                raise EOFError("it ends too early")
            piece = raw[at : at + SLICE_BYTES]
            out = decoder.decompress(piece)
            n_decoded += len(out)
            yield out
            at += len(piece) - len(decoder.unused_data)
