"""Answers of many rows: their order, their end, and what one thread does while another fails."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from gpu_engine.control import Control
from gpu_engine.errors import Cancelled, InvalidTerminals
from gpu_engine.networks.network import Network
from service.errors import ServiceError
from service.protocol import Command, Envelope, Kind
from service.store.jobs.record import Result
from service.worker.questions.closing import WARM
from service.worker.questions.closure_study import Study
from service.worker.questions.tried_rows import TriedRows
from service.worker.running import rows
from service.worker.running.rows import TEXTS_KEPT, Maker, RowRunner, Sheet, refused, row_or_refusal
from service.worker.running.task import Task
from tests.graphs import diamond
from tests.serving import eventually

PATIENCE_S = 30


class Kept:
    """Keeps results in memory."""

    def keep(self, pieces: Iterator[bytes], envelope: Envelope) -> Result:
        return Result(b"".join(pieces), envelope=envelope)

    def keep_lines(self, pieces: Iterator[bytes], envelope: Envelope, on_begin: object) -> Result:
        return self.keep(pieces, envelope)


def task() -> Task:
    return Task(b"1-0", Command(id="j", kind=Kind.WHAT_IF, graph="g", reply_to="", created_at=0.0), redelivered=False)


def counted(block: range, control: Control) -> Iterator[bytes]:
    for row in block:
        if control.cancelled:
            raise Cancelled("cancelled")
        yield b'{"row":'
        yield b"%d}\n" % row


def run(makers: list[Maker], count: int, of: Task | None = None, **more: Any) -> bytes:
    sheet = Sheet({"graph": "g"}, count, more.pop("lines", False), 7, "abc", **more)
    return RowRunner(Kept()).run(of or task(), sheet, makers).text  # type: ignore[arg-type] # a store in memory


def failing(*pieces: bytes) -> Iterator[bytes]:
    yield from pieces
    raise InvalidTerminals("no")


def test_half_a_row_has_no_refusal_behind_it() -> None:
    assert json.loads(b"".join(row_or_refusal({"row": 7}, failing())))["error"]["code"] == "invalid_body"
    begun = row_or_refusal({"row": 7}, failing(b'{"row":7'))
    assert next(begun) == b'{"row":7'
    with pytest.raises(InvalidTerminals):
        next(begun)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, 4, 5, 103])
def test_rows_come_in_order_however_many_make_them(threads: int, count: int) -> None:
    one = task()
    told = json.loads(run([counted] * threads, count, one, block_rows=4, tail=lambda: {"solved": count}))
    assert told == {"graph": "g", "answers": [{"row": row} for row in range(count)], "solved": count}
    assert one.progress()["done"] == one.progress()["of"] == count
    lines = run([counted] * threads, count, block_rows=4, lines=True).splitlines()
    assert [json.loads(line) for line in lines] == [
        {"graph": "g"},
        *({"row": row} for row in range(count)),
        {"done": True, "rows": count},
    ]


def test_makers_work_side_by_side_and_each_alone() -> None:
    meeting, busy = threading.Barrier(2, timeout=PATIENCE_S), [0, 0]

    def maker(which: int) -> Maker:
        def rows(block: range, control: Control) -> Iterator[bytes]:
            assert not busy[which]
            busy[which] = 1
            if block.start < 2:
                meeting.wait()
            yield from counted(block, control)
            busy[which] = 0

        return rows

    told = json.loads(run([maker(0), maker(1)], 50, block_rows=1))
    assert [answer["row"] for answer in told["answers"]] == list(range(50))


def test_a_cancel_reaches_every_maker() -> None:
    one, waiting = task(), threading.Barrier(3, timeout=PATIENCE_S)

    def waits(block: range, control: Control) -> Iterator[bytes]:
        if not control.cancelled:  # a block that came to its turn in between
            waiting.wait()
        eventually(lambda: control.cancelled)
        raise Cancelled("cancelled")
        yield b""

    def cancel() -> None:
        waiting.wait()
        one.control.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(Cancelled):
        run([waits, waits], 10, one, block_rows=1)
    thread.join()


class DoneAtTheLook(Future[str]):
    """Of which the block is made in the moment in which whoever waits for it has waited long enough."""

    def result(self, timeout: float | None = None) -> str:
        if not self.done():
            self.set_result("made")
            raise TimeoutError
        return super().result(timeout)


def test_a_block_that_is_made_at_the_moment_of_a_look_is_an_answer() -> None:
    future = DoneAtTheLook()
    late = threading.Timer(0.01, lambda: future.done() or future.set_result("made"))
    late.start()
    assert rows._result(future, Control(), []) == "made"
    late.join()


def test_what_one_maker_raises_ends_all() -> None:
    ended = threading.Event()

    def fails(block: range, control: Control) -> Iterator[bytes]:
        if block.start == 1:
            raise KeyError("broken")
        if block.start == 0:
            yield b"{}\n"
            return
        while not control.cancelled:
            threading.Event().wait(0.001)
        ended.set()
        yield b"{}\n"

    with pytest.raises(KeyError):
        run([fails, fails], 9, block_rows=1)
    assert ended.is_set()


@pytest.mark.parametrize("threads", [1, 2])
def test_an_answer_that_grows_too_long_is_refused(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MOST_BYTES", 100)
    with pytest.raises(ServiceError) as refusal:
        run([counted] * threads, 50, block_rows=1)
    assert refusal.value.code == "too_large"


def test_room_is_looked_after_between_blocks() -> None:
    seen: list[int] = []
    run([counted], 10, block_rows=4, between=lambda: seen.append(1))
    run([counted] * 2, 10, block_rows=4, between=lambda: seen.append(2))
    assert seen == [1] * 3 + [2] * 3


def test_a_refusal_says_what_and_where_and_nothing_of_faults() -> None:
    told = refused(InvalidTerminals("no such vertex", field="/sources"))
    assert (told["code"], told["status"], told["field"]) == ("invalid_body", 422, "/sources")
    assert refused(MemoryError())["code"] == "out_of_memory"


def test_makers_keep_a_bounded_number_of_texts() -> None:
    """Of closures as of scenarios; what a row says does not depend on whether it was kept."""
    network = Network(diamond().edges)
    base = SimpleNamespace(report=SimpleNamespace(value=10**6))
    supposed = SimpleNamespace(graph=SimpleNamespace(network=network))
    study = Study(None, supposed, None, base, (), None, None, False, None)  # type: ignore[arg-type]
    tried = TriedRows(SimpleNamespace(strings=False), base, None, supposed, None)  # type: ignore[arg-type]
    for value in range(2 * TEXTS_KEPT):
        assert json.loads("{" + study._text(value, WARM, True))["loss"] == 10**6 - value
        assert json.loads(b"{" + tried._text(value, True))["change"] == value - 10**6
    for kept in (study._text, tried._text):
        assert kept.cache_info().currsize == TEXTS_KEPT  # type: ignore[attr-defined]
