"""Answers in lines as they are written: what can be read of them, and when."""

import random
from collections.abc import Iterator

import pytest
import redis

from service.protocol import Envelope
from service.settings import Settings
from service.store.blobs import RESULT_CHUNK_BYTES, BlobWriter, BrokenBlob, GrowingBlob
from service.store.connection import connect
from service.store.jobs.record import Draft, Result
from service.store.keys import Keys
from service.worker.running.drafts import INLINE_BYTES, LEFT_S, DraftWriter
from service.worker.running.results import Results
from tests.service_fixtures import Caller

ENVELOPE = Envelope(version=7, media_type="application/x-ndjson")


class Desk:
    """A worker's results, and a reader of them."""

    def __init__(self, settings: Settings, caller: Caller) -> None:
        self.client = connect(settings)
        self.keys = Keys(settings.redis_prefix)
        self.results = Results(self.client, self.keys, 600)
        self.caller = caller

    def keep(self, pieces: Iterator[bytes]) -> Result:
        """The drafts that are written are to be found in `drafts`."""
        self.drafts: list[DraftWriter] = []
        return self.results.keep_lines(pieces, ENVELOPE, self.drafts.append)

    def told(self) -> Draft | None:
        return self.drafts[-1].tell()

    def growing(self, name: str) -> GrowingBlob:
        return self.caller.dispatcher.blobs.growing(name)

    def read(self, blob: GrowingBlob) -> list[bytes]:
        async def chunks() -> list[bytes]:
            return [chunk async for chunk in blob.chunks()]

        return self.caller.run(chunks())

    def kept(self) -> list[bytes]:
        return list(self.client.scan_iter(f"{self.keys.blob('')}*"))


@pytest.fixture
def desk(settings: Settings, caller: Caller) -> Iterator[Desk]:
    desk = Desk(settings, caller)
    yield desk
    desk.client.close()


def test_lines_are_read_before_the_last_is_there(desk: Desk) -> None:
    read: list[bytes] = []

    def pieces() -> Iterator[bytes]:
        yield b"head\n"
        assert desk.told() is None  # there is no row yet
        yield b"row 0\nrow"
        draft = desk.told()
        assert draft is not None
        assert draft.envelope == ENVELOPE
        blob = desk.growing(draft.blob)
        read.extend(desk.read(blob))
        assert read == [b"head\nrow 0\n"]
        yield b" 1\n"
        assert desk.read(blob) == []  # nobody has had it written
        assert desk.told() == draft
        yield b"end\n"
        read.extend(desk.read(blob))
        assert not blob.is_whole
        blobs.append(blob)

    blobs: list[GrowingBlob] = []
    result = desk.keep(pieces())
    read.extend(desk.read(blobs[0]))
    assert read == [b"head\nrow 0\n", b"row 1\n", b"end\n"]
    assert blobs[0].is_whole
    assert (result.blob_bytes, result.text, result.envelope) == (21, b"", ENVELOPE)
    assert desk.told() is None


def test_a_short_answer_that_nobody_can_read_yet_travels_with_the_reply(desk: Desk) -> None:
    assert desk.keep(iter([b"head\n", b"row\n", b"end\n"])).text == b"head\nrow\nend\n"
    assert desk.kept() == []
    long = b"head\n" + INLINE_BYTES * b"x\n"
    result = desk.keep(iter([long]))
    assert result.blob is not None
    assert desk.read(desk.growing(result.blob)) == [long]


@pytest.mark.parametrize("seed", range(3))
def test_whatever_the_pieces_are_the_text_is_what_was_added(desk: Desk, seed: int) -> None:
    rng = random.Random(seed)
    lengths = [rng.choice([1, 50, RESULT_CHUNK_BYTES - 1, RESULT_CHUNK_BYTES, 700_000]) for _ in range(12)]
    text = b"".join(bytes([97 + i]) * length + b"\n" for i, length in enumerate(lengths))
    read: list[bytes] = []

    def pieces() -> Iterator[bytes]:
        at, blob = 0, None
        while at < len(text):
            step = rng.randint(1, 400_000)
            yield text[at : at + step]
            at += step
            if rng.random() < 0.5 and (draft := desk.told()) is not None:
                blob = blob or desk.growing(draft.blob)
                read.extend(desk.read(blob))
        blobs.append(blob)

    blobs: list[GrowingBlob | None] = []
    result = desk.keep(pieces())
    assert result.blob is not None
    read.extend(desk.read(blobs[0] or desk.growing(result.blob)))
    assert b"".join(read) == text
    assert max(map(len, read)) <= RESULT_CHUNK_BYTES
    short = [piece for piece in read if b"\n" in piece]
    assert all(piece.endswith(b"\n") for piece in short), f"seed {seed}"


def test_what_breaks_off_stays_for_its_readers_a_little_while(desk: Desk) -> None:
    blobs: list[GrowingBlob] = []

    def pieces() -> Iterator[bytes]:
        yield b"head\nrow 0\n"
        draft = desk.told()
        assert draft is not None
        blobs.append(desk.growing(draft.blob))
        yield b"row 1\nro"
        raise ValueError("as if")

    with pytest.raises(ValueError, match="as if"):
        desk.keep(pieces())
    assert desk.read(blobs[0]) == [b"head\nrow 0\n", b"row 1\n"]
    assert not blobs[0].is_whole
    (key,) = desk.kept()
    assert 0 < desk.client.ttl(key) <= LEFT_S


def test_what_breaks_off_before_a_row_leaves_nothing(desk: Desk) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"head\n"
        yield 2 * RESULT_CHUNK_BYTES * b"x"
        assert desk.told() is None
        assert len(desk.kept()) == 1
        raise ValueError("as if")

    with pytest.raises(ValueError, match="as if"):
        desk.keep(pieces())
    assert desk.kept() == []


@pytest.mark.parametrize("by_the_other_thread", [True, False])
def test_nothing_is_written_behind_what_may_not_have_been(
    desk: Desk, by_the_other_thread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chunk is there, but Redis was away before it said so: the next one would say the same again."""
    append = BlobWriter.append

    def unknown(blob: BlobWriter, chunk: bytes, of: int = 0) -> None:
        append(blob, chunk, of)
        raise redis.ConnectionError("away")

    def pieces() -> Iterator[bytes]:
        yield b"head\nrow 0\n"
        assert desk.told() is not None
        monkeypatch.setattr(BlobWriter, "append", unknown)
        if by_the_other_thread:
            yield b"row 1\n"
            assert desk.told() is None
            yield b"row 2\n"
        else:
            yield RESULT_CHUNK_BYTES * b"row\n"
        raise AssertionError("it went on")

    with pytest.raises(redis.ConnectionError):
        desk.keep(pieces())
    assert desk.told() is None
    assert desk.kept() == []


def test_a_last_piece_that_is_not_what_was_written_is_not_passed_on(desk: Desk) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"head\nrow 0\n"
        assert desk.told() is not None
        yield b"end\n"

    result = desk.keep(pieces())
    assert result.blob is not None
    desk.client.hset(desk.keys.blob(result.blob), "1", "END\n")
    blob = desk.growing(result.blob)
    with pytest.raises(BrokenBlob):
        desk.read(blob)
