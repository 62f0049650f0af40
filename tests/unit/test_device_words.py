"""What the host writes to a running kernel, without one: `gpu_engine.cuda.launch.words` is read anew beside a stand-in
for CuPy that does what streams are told in the order that their events demand, and the clearing of memory late."""

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.stand_ins import read_beside


class Busy:
    """A device that has not cleared its memory yet: it does so when somebody waits for that."""

    def __init__(self) -> None:
        self.memory = np.full(8, 0xFF, np.uint8)
        self.queued: list[Callable[[], object]] = [lambda: self.memory.fill(0)]

    def catch_up(self) -> None:
        while self.queued:
            self.queued.pop(0)()


class Stream(nullcontext[Any]):
    def __init__(self, *, non_blocking: bool) -> None:
        assert non_blocking  # the default one waits for the kernel
        super().__init__(self)

    def wait_event(self, event: "Event") -> None:
        assert event.queued is not None, "an event that was not recorded holds nobody up"
        event.device.catch_up()

    def synchronize(self) -> None:
        pass


class Event:
    def __init__(self, device: Busy) -> None:
        self.device, self.queued = device, None

    def record(self) -> None:
        self.queued = len(self.device.queued)  # type: ignore[assignment]


class Array:
    """Some of the memory."""

    device = nullcontext()

    def __init__(self, memory: NDArray[np.uint8]) -> None:
        self.memory = memory

    def view(self, dtype: type) -> "Array":
        assert dtype is np.uint8
        return self

    def __getitem__(self, some: slice) -> "Array":
        return Array(self.memory[some])

    def set(self, bytes_: NDArray[np.uint8], *, stream: Stream) -> None:
        self.memory[:] = bytes_


def test_a_word_outlasts_the_clearing_of_a_busy_device(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = Busy()
    cuda = SimpleNamespace(Event=lambda **_: Event(busy), Stream=Stream)
    words = read_beside(monkeypatch, "launch.words", {"launch.arrays": {"Array": Array}}, cupy={"cuda": cuda})
    word = words.Word(Array(busy.memory))
    word.write(3)
    busy.catch_up()
    assert busy.memory.view(np.int32).tolist() == [3, 0]
    word.write(1)
    assert busy.memory.view(np.int32).tolist() == [1, 0]
