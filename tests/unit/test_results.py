"""Results: in the reply if they are short, else in a blob that is written as the answer is."""

import threading
from collections.abc import Iterator

import pytest

from service.protocol import Envelope, Reply, Status
from service.settings import Settings
from service.store.blobs import CHUNK_BYTES, Blobs
from service.store.connection import connect
from service.store.jobs.record import Result, reply_fields
from service.store.keys import Keys
from service.worker.running import results
from service.worker.running.drafts import INLINE_BYTES
from service.worker.running.results import Results


class Shelf:
    def __init__(self, settings: Settings) -> None:
        self.client = connect(settings)
        self.keys = Keys(settings.redis_prefix)
        self.results = Results(self.client, self.keys, 60)
        self.blobs = Blobs(self.client, self.keys)

    def text(self, result: Result) -> bytes:
        return result.text if result.blob is None else self.blobs.get(result.blob)

    def kept(self) -> int:
        return len(set(self.client.scan_iter(f"{self.keys.blob('')}*")))


@pytest.fixture
def shelf(settings: Settings) -> Iterator[Shelf]:
    shelf = Shelf(settings)
    yield shelf
    shelf.client.close()


@pytest.mark.parametrize("size", [0, 1, INLINE_BYTES, INLINE_BYTES + 1, CHUNK_BYTES, 2 * CHUNK_BYTES + 7])
@pytest.mark.parametrize("step", [1 << 14, 3 * CHUNK_BYTES])
def test_a_result_is_what_its_pieces_are(shelf: Shelf, size: int, step: int) -> None:
    data = bytes(i * i % 251 for i in range(size))
    result = shelf.results.keep((data[at : at + step] for at in range(0, size, step)), Envelope(version=7))
    assert shelf.text(result) == data
    assert (result.blob is None) == (size <= INLINE_BYTES)
    fields = reply_fields(Reply(id="job", status=Status.SUCCEEDED), result)
    assert set(fields) == {"reply", "envelope", "result" if size <= INLINE_BYTES else "result_blob"}
    assert result.envelope == Envelope(version=7)


def test_what_breaks_off_leaves_nothing(shelf: Shelf) -> None:
    def broken() -> Iterator[bytes]:
        yield bytes(CHUNK_BYTES)
        yield bytes(CHUNK_BYTES)
        assert shelf.kept() == 1
        raise ValueError("as if")

    with pytest.raises(ValueError, match="as if"):
        shelf.results.keep(broken(), Envelope())
    assert shelf.kept() == 0


def test_the_oldest_go_when_there_are_too_many(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "RESULTS_BYTES", 5 * INLINE_BYTES)
    kept = [shelf.results.keep([bytes(2 * INLINE_BYTES)], Envelope()) for _ in range(4)]
    assert shelf.kept() == 3  # two, and the latest one
    assert [len(shelf.text(result)) for result in kept[1:]] == [2 * INLINE_BYTES] * 3
    large = shelf.results.keep([bytes(50 * INLINE_BYTES)], Envelope())
    assert shelf.kept() == 3
    assert len(shelf.text(large)) == 50 * INLINE_BYTES
    shelf.results.keep([bytes(2 * INLINE_BYTES)], Envelope())
    assert shelf.kept() == 1


def test_who_asks_for_much_of_one_graph_loses_no_answers_of_another(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by attack: each answer of 250 MiB took away the answers of all others that had not been read yet."""
    monkeypatch.setattr(results, "RESULTS_BYTES", 20 * INLINE_BYTES)
    few = [shelf.results.keep([bytes(2 * INLINE_BYTES)], Envelope(generation="few")) for _ in range(3)]
    for _ in range(5):
        large = shelf.results.keep([bytes(19 * INLINE_BYTES)], Envelope(generation="much"))
        assert [len(shelf.text(result)) for result in (*few, large)] == [2 * INLINE_BYTES] * 3 + [19 * INLINE_BYTES]
    assert shelf.kept() == 4


def test_lanes_may_keep_results_at_the_same_time(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by reading: one lane counted the others' results while they were added."""
    monkeypatch.setattr(results, "RESULTS_BYTES", 20 * INLINE_BYTES)
    failures: list[Exception] = []

    def keep() -> None:
        try:
            for _ in range(50):
                shelf.results.keep([bytes(2 * INLINE_BYTES)], Envelope())
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=keep) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert shelf.kept() == 11
    assert shelf.results._bytes_of.total() == 22 * INLINE_BYTES
