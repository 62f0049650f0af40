"""A log whose reader stands still, as a pager or a terminal that Ctrl-S holds, loses lines and keeps nobody waiting."""

import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import TextIO

import pytest

from service.telemetry import outlet
from service.telemetry.outlet import Outlet

pytestmark = pytest.mark.timeout(60)

N = 2000
LONG = 200


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def _pipe(opened: ExitStack) -> tuple[int, TextIO]:
    reader, writer = os.pipe()
    opened.callback(os.close, reader)
    return reader, opened.enter_context(os.fdopen(writer, "w", encoding="utf-8"))


def _sockets(opened: ExitStack) -> tuple[int, TextIO]:
    """As systemd has them."""
    ours, theirs = map(opened.enter_context, socket.socketpair())
    return ours.fileno(), opened.enter_context(os.fdopen(os.dup(theirs.fileno()), "w", encoding="utf-8"))


def _lost(number: int) -> str:
    return json.dumps({"lost": number}) + "\n"


def _line(number: int, length: int = LONG) -> str:
    return json.dumps({"number": number, "text": "x" * length}) + "\n"


def _read(reader: int) -> bytes:
    """What is there."""
    os.set_blocking(reader, False)
    read = b""
    while True:
        try:
            read += os.read(reader, 1 << 20)
        except BlockingIOError:
            return read


@pytest.mark.parametrize("stream", [_pipe, _sockets])
def test_a_reader_that_stands_still_loses_lines_and_is_told_how_many(
    opened: ExitStack, stream: Callable[[ExitStack], tuple[int, TextIO]]
) -> None:
    reader, writer = stream(opened)
    out = Outlet(writer, _lost)
    for number in range(N):
        out.write(_line(number))
    read = _read(reader)
    out.write(_line(N))
    lines = [json.loads(line) for line in (read + _read(reader)).splitlines()]  # none is torn
    numbers = [line["number"] for line in lines if "number" in line]
    assert numbers == [*range(len(numbers) - 1), N]
    assert {"lost": N + 1 - len(numbers)} == lines[-2]


class Clock:
    """Time that passes while somebody waits, and is counted."""

    def __init__(self) -> None:
        self.now = self.waited = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.waited += seconds


def test_a_reader_who_is_always_slow_keeps_nobody_waiting_for_long(
    opened: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each line was waited for, and the service was as slow as its reader."""
    clock, taken = Clock(), list[bytes]()
    monkeypatch.setattr(outlet, "time", clock)
    out = Outlet(_pipe(opened)[1], _lost)

    def write(data: bytes) -> int:
        if clock.now < 0.4 * len(taken):  # a line each 0.4 s
            raise BlockingIOError
        taken.append(data)
        return len(data)

    out._write = write
    for number in range(1000):
        out.write(_line(number))
        clock.now += 0.01  # of work
    assert clock.waited < 0.5 + 0.5 * 10
    lost = sum(json.loads(line).get("lost", 0) for data in taken for line in data.splitlines())
    assert lost > 900
    assert len(taken) > 20


def test_a_line_longer_than_the_room_is_ended_first(opened: ExitStack) -> None:
    reader, writer = _pipe(opened)
    out = Outlet(writer, _lost)
    out.write(_line(0, 1 << 20))
    out.write(_line(1))
    read = b""
    for number in range(2, 100):
        read += _read(reader)
        out.write(_line(number))
    first, told, *after = [json.loads(line) for line in (read + _read(reader)).splitlines()]
    assert first["number"] == 0
    assert [line["number"] for line in after] == [*range(1 + told["lost"], 100)]


def test_a_pipe_that_cannot_be_opened_again_is_asked(opened: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> int:
        raise PermissionError

    reader, writer = _pipe(opened)
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refused)
        out = Outlet(writer, _lost)
    filled = os.open(f"/proc/self/fd/{writer.fileno()}", os.O_WRONLY | os.O_NONBLOCK)
    opened.callback(os.close, filled)
    with suppress(BlockingIOError):
        while os.write(filled, b"x"):
            pass
    out.write(_line(0))
    _read(reader)
    out.write(_line(1))
    assert _read(reader).decode() == _lost(1) + _line(1)


def test_a_reader_that_has_gone_is_an_error(opened: ExitStack) -> None:
    reader, writer = os.pipe()
    out = Outlet(opened.enter_context(os.fdopen(writer, "w")), _lost)
    os.close(reader)
    with pytest.raises(BrokenPipeError):
        out.write(_line(0))
