"""Which CUDA devices a process may use, by number, and how it is bound to one of them.

The numbers are those of the process that asks: `CUDA_VISIBLE_DEVICES` may hide some devices from it. Imports no CuPy
before it is asked, and opens no device.
"""

import os
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from importlib.util import find_spec
from typing import Any, Final

VISIBLE: Final = "CUDA_VISIBLE_DEVICES"
"""What CUDA lets a process see: numbers or ids, with commas between, in the order in which it then counts them."""

PEERS: Final = "cuda-peers"
"""The engine for which one process has several devices."""

DEVICE_FULL: Final = 2
"""`cudaErrorMemoryAllocation`, which ends nothing but the call that it answers."""

NO_CUPY: Final = (
    "CuPy is not installed: add the extra gpu13, or gpu12 where the driver is of CUDA 12 (pip install '.[gpu13]')"
)
NO_DEVICE: Final = "no CUDA device can be used: is the driver there?"


def devices() -> list[str]:
    """The names of the devices that this process may use, by their numbers; none without CuPy or a driver."""
    try:
        from cupy.cuda import runtime
    except ImportError:
        return []
    try:
        return [runtime.getDeviceProperties(number)["name"].decode() for number in range(runtime.getDeviceCount())]
    except runtime.CUDARuntimeError:
        return []


def why_none() -> str:
    """Why there are no `devices`; empty if there are some."""
    if devices():
        return ""
    return NO_DEVICE if find_spec("cupy") else NO_CUPY


def device_fault(choice: str) -> str:
    """What CUDA says of a device of this process that does nothing any more, as after a fault of its memory, of a
    kernel or of the bus; empty while all are well. ``choice`` is the engine that the process has opened, with CuPy.

    CUDA fails each call of such a process from then on, so that another one has to go on. Microseconds.
    """
    cuda: Any = sys.modules["cupy"].cuda
    try:
        for number in range(cuda.runtime.getDeviceCount()) if choice == PEERS else [cuda.runtime.getDevice()]:
            _touch(cuda, number)
    except RuntimeError as error:  # as CuPy's own are
        return str(error)
    return ""


def _touch(cuda: Any, number: int) -> None:
    """Raises RuntimeError if the device does nothing any more. One that has no room for a stream is well."""
    try:
        with cuda.Device(number):
            cuda.Stream(non_blocking=True).synchronize()
    except RuntimeError as error:
        if getattr(error, "status", None) != DEVICE_FULL:
            raise


def bind(number: int, environment: MutableMapping[str, str] = os.environ) -> None:
    """Let this process, or one that gets this ``environment``, see this device of its own alone, as its device 0.

    To be called before anything of CUDA is: it looks at its environment once.
    """
    environment[VISIBLE] = only([number], environment)


def only(numbers: Sequence[int], environment: Mapping[str, str] = os.environ) -> str:
    """What `VISIBLE` must be for these devices to be seen alone, in this order."""
    if VISIBLE not in environment:
        return ",".join(str(number) for number in numbers)
    shown = [device.strip() for device in environment[VISIBLE].split(",") if device.strip()]
    # One that is hidden stays so: then there is no device, which whoever opens an engine is told.
    return ",".join((shown[number : number + 1] or ["-1"])[0] for number in numbers)
