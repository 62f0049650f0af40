"""The count of chunks that is kept beside the parser: it finds the end of a body wherever the bytes are cut."""

import pytest

from service.api.http.chunks import MAX_LENGTH_LINE, MAX_TRAILER_BYTES, Chunks, Refused

BODIES = [
    b"0\r\n\r\n",
    b"3\r\nabc\r\n0\r\n\r\n",
    b'00a;note="x"\r\n0\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n',
    b"1\r\nx\r\nA\r\n0123456789\r\n000\r\nX: y\r\nZ: w\r\n\r\n",
    b"4\r\n\r\n\r\n\r\n0;last\r\n\r\n",
]


def end_of(whole: bytes, size: int, most: int) -> int:
    """Where the body ends, when it comes in pieces of this size."""
    chunks, at = Chunks(), 0
    while not chunks.is_over:
        piece = whole[at : at + size]
        assert piece, "it never ended"
        reached = chunks.advance(piece, 0, most)
        assert 0 < reached <= most
        at += reached
    return at


@pytest.mark.parametrize("body", BODIES)
def test_the_end_is_found(body: bytes) -> None:
    for behind in (b"", b"GET / HTTP/1.1\r\n\r\n", b"\r\n\r\n", b"0\r\n\r\n"):
        for size in (1, 2, 3, 5, 1000):
            for most in (1, 2, 7, 1000):
                assert end_of(body + behind, size, most) == len(body)


def test_it_begins_where_it_is_told() -> None:
    assert Chunks().advance(b"0\r\n\r\n" + BODIES[1], 5, 1000) == 5 + len(BODIES[1])


@pytest.mark.parametrize(
    "line", [b"\r\n", b";x\r\n", b"-5\r\n", b"+5\r\n", b"0x5\r\n", b"1_0\r\n", b" 5\r\n", b"g\r\n"]
)
def test_what_is_no_length_is_refused(line: bytes) -> None:
    with pytest.raises(Refused, match="no length"):
        Chunks().advance(line, 0, 1000)


def test_lines_are_bounded() -> None:
    longest = b"1;" + (MAX_LENGTH_LINE - 4) * b"x" + b"\r\n"
    assert not Chunks().is_over
    assert Chunks().advance(longest, 0, 1000) == MAX_LENGTH_LINE
    for pieces in ([b"1;x" + longest[2:]], 300 * [b"1"]):
        with pytest.raises(Refused, match="too much"):
            advance_all(pieces)
    line = b"X: " + 95 * b"y" + b"\r\n"
    advance_all([b"0\r\n", *(MAX_TRAILER_BYTES // 100 * [line])])
    with pytest.raises(Refused, match="too much"):
        advance_all([b"0\r\n", *((MAX_TRAILER_BYTES // 100 + 1) * [line])])


def advance_all(pieces: list[bytes]) -> None:
    chunks = Chunks()
    for piece in pieces:
        chunks.advance(piece, 0, 10_000)
