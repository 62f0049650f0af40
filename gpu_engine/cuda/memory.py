"""What a call of the engine needs around it: a stream, and an answer where device memory was not enough."""

from collections.abc import Callable
from functools import cache, wraps
from itertools import count
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

import cupy

from gpu_engine.errors import OutOfMemory

DeviceFull = cupy.cuda.memory.OutOfMemoryError

Given = ParamSpec("Given")
Result = TypeVar("Result")

STREAMS: Final = 8
"""Engines take them in turn. Not one for each: what is free of one stream's memory is of no use to another."""

_turns = count()


class OnStream(Protocol):
    """What runs side by side with others."""

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


def total_bytes() -> int:
    """Memory of the current device."""
    return int(cupy.cuda.Device().mem_info[1])


def device_call(call: Callable[Concatenate[Caller, Given], Result]) -> Callable[Concatenate[Caller, Given], Result]:
    """Run a method on its owner's stream; the one place where a full device becomes `OutOfMemory`.

    That after a second try without the pool's free blocks: what fails must leave things so that it can be called again.
    """

    @wraps(call)
    def guarded(owner: Caller, /, *given: Given.args, **named: Given.kwargs) -> Result:
        with owner.stream:
            try:
                return call(owner, *given, **named)
            except DeviceFull:
                pass  # outside, the frames of the failed try and their arrays are gone
            cupy.get_default_memory_pool().free_all_blocks()
            try:
                return call(owner, *given, **named)
            except DeviceFull as error:
                free, total = cupy.cuda.Device().mem_info
                held = cupy.get_default_memory_pool().used_bytes()
                raise OutOfMemory(
                    f"the device is full: {held} bytes in use by this process, {free} of {total} free; {error}"
                ) from None

    return guarded
