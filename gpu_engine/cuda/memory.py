"""Device memory: how much there is, and what becomes of a call for which there was not enough."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import cupy

from gpu_engine.errors import OutOfMemory

DeviceFull = cupy.cuda.memory.OutOfMemoryError

Given = ParamSpec("Given")
Result = TypeVar("Result")


def total_bytes() -> int:
    """Memory of the current device."""
    return int(cupy.cuda.Device().mem_info[1])


def refused_when_full(call: Callable[Given, Result]) -> Callable[Given, Result]:
    """The one place where a full device becomes `OutOfMemory`, after a second try without the pool's free blocks.

    What fails must leave things so that it can be called again.
    """

    @wraps(call)
    def guarded(*given: Given.args, **named: Given.kwargs) -> Result:
        try:
            return call(*given, **named)
        except DeviceFull:
            pass  # outside, the frames of the failed try and their arrays are gone
        cupy.get_default_memory_pool().free_all_blocks()
        try:
            return call(*given, **named)
        except DeviceFull as error:
            free, total = cupy.cuda.Device().mem_info
            held = cupy.get_default_memory_pool().used_bytes()
            raise OutOfMemory(
                f"the device is full: {held} bytes in use by this process, {free} of {total} free; {error}"
            ) from None

    return guarded
