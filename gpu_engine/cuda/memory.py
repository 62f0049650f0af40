"""The frame of each call of a device engine: its stream, and a refusal where device memory was not enough."""

from collections.abc import Callable
from functools import cache, wraps
from itertools import count
from threading import Lock
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

import cupy

from gpu_engine.errors import OutOfMemory

DeviceFull = cupy.cuda.memory.OutOfMemoryError

Given = ParamSpec("Given")
Result = TypeVar("Result")

STREAMS: Final = 8
"""Engines take them in turn. There is not one for each engine, because the free memory of one stream is of no use to
another."""

ONE_BY_ONE: Final = Lock()
"""Held while kernels that wait for each other are launched on several devices, and while memory is given back to one:
CUDA then waits until all kernels have ended, and may let no thread launch another. A kernel that waits for one which
is not launched yet would never end."""

_turns = count()


class OnStream(Protocol):
    """An object whose device calls run side by side with those of others."""

    @property
    def stream(self) -> Any:
        """A cupy.cuda.Stream."""


Caller = TypeVar("Caller", bound=OnStream)


def next_stream() -> Any:
    """A cupy.cuda.Stream, which others may have as well."""
    return _stream(next(_turns) % STREAMS)


@cache
def _stream(number: int) -> Any:
    return cupy.cuda.Stream(non_blocking=True)


def total_bytes(number: int | None = None) -> int:
    """The memory of a device, the current one unless its number is given."""
    return int(cupy.cuda.Device(number).mem_info[1])


def free_unused() -> None:
    """Give the memory that this process holds and does not use back to the current device."""
    with ONE_BY_ONE:
        cupy.get_default_memory_pool().free_all_blocks()


def device_call(call: Callable[Concatenate[Caller, Given], Result]) -> Callable[Concatenate[Caller, Given], Result]:
    """Run a method on its owner's stream; the one place where a full device becomes `OutOfMemory`.

    A call that fails is made once more without the pool's free blocks, so it must leave things as that call needs them.
    """

    @wraps(call)
    def guarded(owner: Caller, /, *given: Given.args, **named: Given.kwargs) -> Result:
        with owner.stream:
            try:
                return call(owner, *given, **named)
            except DeviceFull:
                pass  # outside, the frames of the failed try and their arrays are gone
            free_unused()
            try:
                return call(owner, *given, **named)
            except DeviceFull as error:
                free, total = cupy.cuda.Device().mem_info
                held = cupy.get_default_memory_pool().used_bytes()
                raise OutOfMemory(
                    f"the device is full: {held} bytes in use by this process, {free} of {total} free; {error}"
                ) from None

    return guarded
