"""Where shards lie: each has a device and a stream of its own, and what they do in turn is kept apart by barriers."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import cupy

from gpu_engine.cuda.layout import MOST_SHARDS
from gpu_engine.cuda.memory import free_unused
from gpu_engine.errors import EngineError


class Place:
    """A stream on a device."""

    def __init__(self, device: int) -> None:
        self.device = device
        with cupy.cuda.Device(device):
            self.stream = cupy.cuda.Stream(non_blocking=True)
            self.reached = cupy.cuda.Event(disable_timing=True)
            self.most_blocks = 8 * int(cupy.cuda.Device().attributes["MultiProcessorCount"])

    @contextmanager
    def on(self) -> Iterator[None]:
        """What is inside runs and allocates here."""
        with cupy.cuda.Device(self.device), self.stream:
            yield


class Places:
    """A place for each shard; a device may have several.

    Raises `EngineError` if two devices do not reach each other's memory.
    """

    def __init__(self, devices: Sequence[int]) -> None:
        if not 1 <= len(devices) <= MOST_SHARDS:
            raise EngineError(f"{len(devices)} shards: there may be 1 to {MOST_SHARDS}")
        for device in set(devices):
            _open_to(device, set(devices) - {device})
        self.all: tuple[Place, ...] = tuple(Place(device) for device in devices)

    def __len__(self) -> int:
        return len(self.all)

    @property
    def devices(self) -> list[int]:
        """Each once, rising."""
        return sorted({place.device for place in self.all})

    def barrier(self) -> None:
        """What is queued from here on, at any place, begins when all that is queued at all places has ended."""
        if len(self.all) == 1:
            return
        for place in self.all:
            with cupy.cuda.Device(place.device):
                place.reached.record(place.stream)
        for place in self.all:
            with cupy.cuda.Device(place.device):
                for other in self.all:
                    if other is not place:
                        place.stream.wait_event(other.reached)

    def trim(self) -> None:
        """Give free memory back to the devices: what one stream has freed is of no use to another."""
        for device in self.devices:
            with cupy.cuda.Device(device):
                free_unused()

    def wait(self) -> None:
        """Return when all that is queued has ended."""
        for place in self.all:
            with cupy.cuda.Device(place.device):
                place.stream.synchronize()


def _open_to(device: int, others: set[int]) -> None:
    runtime: Any = cupy.cuda.runtime
    with cupy.cuda.Device(device):
        for other in others:
            if not runtime.deviceCanAccessPeer(device, other):
                raise EngineError(f"device {device} does not reach the memory of device {other}")
            try:
                runtime.deviceEnablePeerAccess(other)
            except runtime.CUDARuntimeError as error:
                if "AlreadyEnabled" not in str(error):
                    raise
