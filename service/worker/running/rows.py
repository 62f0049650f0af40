"""Answers of many rows: made in blocks, on several threads if there are several makers, and written in order.

A maker writes the rows it is told to, each as a line of JSON. What is wrong with one row is written as that row
(`refused`), and ends no other. Nothing of an answer is in memory but the blocks that are on their way.
"""

import queue
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Final, TypeAlias, TypeVar

from gpu_engine.control import Control
from gpu_engine.errors import Cancelled, EngineError, OutOfMemory
from service.errors import STATUS, ServiceError
from service.protocol import JSON_TYPE, LINES_TYPE, STRING_LINES_TYPE, STRINGS_TYPE, Envelope
from service.store.jobs.record import Result
from service.worker import json_writer
from service.worker.result_writer import unless_cancelled
from service.worker.running.results import Results
from service.worker.running.task import Task

MOST_BYTES: Final = 256 << 20
"""The limit of all rows of one answer, which Redis has to hold."""

BLOCK_ROWS: Final = 128
"""How many short rows are made at a time. A cancel is obeyed, and progress is reported, between two blocks."""

AHEAD: Final = 2
"""How many blocks for each maker are being made or wait to be written."""

TEXTS_KEPT: Final = 1024
"""A maker keeps so many texts that several rows say."""

LOOK_S: Final = 0.05
"""How often a thread that waits for a block checks for a cancel."""

Made = TypeVar("Made")

Maker: TypeAlias = Callable[[range, Control], Iterator[bytes]]
"""Writes these rows as pieces of JSON, a newline after each row. One thread at a time. Raises `Cancelled`."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """The parts of an answer beside its rows, and how the rows are made and written."""

    head: Mapping[str, object]
    count: int
    lines: bool
    """Answer as `LINES_TYPE`."""
    version: int
    generation: str
    block_rows: int = BLOCK_ROWS
    """1 for rows that may be long: then no more than a piece of one is in memory, if there is one maker."""
    tells: bool = True
    """Whether progress is what has been written; False: the work was done before."""
    between: Callable[[], None] = lambda: None
    """Called after each block."""
    strings: bool = False
    """Whether amounts are decimal strings."""
    tail: Callable[[], Mapping[str, object]] = dict
    """Members that are known once all rows are there."""

    @property
    def envelope(self) -> Envelope:
        if self.strings:
            media_type = STRING_LINES_TYPE if self.lines else STRINGS_TYPE
        else:
            media_type = LINES_TYPE if self.lines else JSON_TYPE
        return Envelope(version=self.version, generation=self.generation, media_type=media_type)

    @property
    def blocks(self) -> list[range]:
        rows = range(self.count)
        return [rows[at : at + self.block_rows] for at in range(0, self.count, self.block_rows)]


class RowRunner:
    """Runs the questions of several rows of one worker. Safe from any thread."""

    def __init__(self, results: Results) -> None:
        self._results = results

    def run(self, task: Task, sheet: Sheet, makers: Sequence[Maker]) -> Result:
        """The answer, stored as it is written, and lines of it can be read meanwhile. It may be run again, and then
        begins again.

        Raises `Cancelled`, or too_large for more than `MOST_BYTES`.
        """
        with closing(_answer(task, sheet, makers)) as pieces:
            answer = unless_cancelled(pieces, task.control)
            if sheet.lines:
                return self._results.keep_lines(answer, sheet.envelope, task.follow)
            return self._results.keep(answer, sheet.envelope)


def row_or_refusal(told: Mapping[str, object], pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The pieces of a row, or where it fails before the first one, its refusal behind what is ``told`` of it.

    Raises `Cancelled`, and what fails later: half a row is none, and cannot be taken back.
    """
    begun = False
    try:
        for piece in pieces:
            begun = True
            yield piece
    except Cancelled:
        raise
    except (EngineError, ServiceError, MemoryError) as error:
        if begun:
            raise
        yield from json_writer.pieces({**told, "error": refused(error)})


def refused(error: EngineError | ServiceError | MemoryError) -> dict[str, object]:
    """The refusal of a row: its code, what is wrong, and where."""
    if isinstance(error, MemoryError):
        error = OutOfMemory("the machine has no more memory, whatever the budget says")
    if error.code not in STATUS:
        return {"code": "internal_error", "status": 500, "detail": "the worker failed; see its log"}
    return {"code": error.code, "status": STATUS[error.code], "detail": str(error), **error.where.members()}


def _answer(task: Task, sheet: Sheet, makers: Sequence[Maker]) -> Generator[bytes, None, None]:
    """Head, rows and tail, as one object or as lines."""
    if sheet.tells:
        task.row(0, sheet.count)
    done, n_bytes, owed = 0, 0, b""
    head = json_writer.dumps(dict(sheet.head), strings=sheet.strings)
    yield f"{head}\n".encode() if sheet.lines else f'{head[:-1]},"answers":['.encode()
    with closing(_made(task.control, sheet, makers)) as pieces:
        for piece in pieces:
            n_bytes += len(piece)
            if n_bytes > MOST_BYTES:
                detail = f"more than {MOST_BYTES} bytes after {done} rows: ask for fewer fields or rows"
                raise ServiceError("too_large", detail, field="/fields")
            ends = piece.count(b"\n")
            done += ends
            if ends and sheet.tells:
                task.row(done, sheet.count)
            if sheet.lines:
                yield piece
            elif piece:  # no text of JSON has a newline inside
                kept = piece[:-1] if piece.endswith(b"\n") else piece
                yield owed + kept.replace(b"\n", b",")
                owed = b"," if kept is not piece else b""
    more = sheet.tail()
    if sheet.lines:
        last = {"done": True, "rows": sheet.count, **more}
        yield f"{json_writer.dumps(last, strings=sheet.strings)}\n".encode()
    else:
        yield f"]{',' if more else ''}{json_writer.dumps(dict(more), strings=sheet.strings)[1:]}".encode()


def _made(control: Control, sheet: Sheet, makers: Sequence[Maker]) -> Generator[bytes, None, None]:
    """The pieces of all blocks, in order."""
    if len(makers) == 1 or sheet.count <= sheet.block_rows:
        for block in sheet.blocks:
            yield from makers[0](block, control)
            sheet.between()
        return
    joined = [partial(_joined, maker) for maker in makers]
    with closing(side_by_side(control, sheet.blocks, joined)) as texts:
        for text in texts:
            yield text
            sheet.between()


def _joined(maker: Maker, block: range, control: Control) -> bytes:
    return b"".join(maker(block, control))


def side_by_side(
    control: Control, blocks: Sequence[range], makers: Sequence[Callable[[range, Control], Made]]
) -> Generator[Made, None, None]:
    """What is made of each block, in order; each maker is asked for one block at a time, on any thread.

    What a maker raises ends all. A cancel reaches the makers by controls of their own: two solves share none.
    """
    own = [Control() for _ in makers]
    idle: queue.SimpleQueue[tuple[Callable[[range, Control], Made], Control]] = queue.SimpleQueue()
    for pair in zip(makers, own, strict=True):
        idle.put(pair)

    def make(block: range) -> Made:
        maker, its_control = idle.get()
        try:
            return maker(block, its_control)
        finally:
            idle.put((maker, its_control))

    with ThreadPoolExecutor(len(makers), thread_name_prefix="rows") as pool:
        made = deque[Future[Made]]()
        try:
            for block in chain(blocks, [None] * (AHEAD * len(makers))):
                if block is not None:
                    made.append(pool.submit(make, block))
                if made and (block is None or len(made) >= AHEAD * len(makers)):
                    yield _result(made.popleft(), control, own)
        finally:
            for its_control in own:
                its_control.cancel()
            for future in made:
                future.cancel()


def _result(future: "Future[Made]", control: Control, own: Sequence[Control]) -> Made:
    """What a block has come to; a cancel of the whole is passed on to all that are made. Raises `Cancelled`."""
    while not wait([future], LOOK_S).done:
        if control.cancelled:
            for its_control in own:
                its_control.cancel()
    return future.result()
