"""A drain over shards: one kernel on each device, which stays until nothing is left to do (kernels/sharded/drain.cu).

The kernels wait for each other, so that those of one drain must all get to run: a drain takes its devices for itself,
and another drain over shards in the same process waits until they are free. Kernels of other kinds end by themselves,
and may come before or between.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from threading import Lock
from time import perf_counter
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from gpu_engine.control import WORK_DONE, Control
from gpu_engine.cuda.launch.drain import PATIENCE, ROUND_LIMIT
from gpu_engine.cuda.launch.words import Word
from gpu_engine.cuda.layout import GIVEN_UP, MEETING, SHARD_DRAIN, SHARD_OUTCOME, SHARD_THREADS, STOP
from gpu_engine.cuda.memory import ONE_BY_ONE
from gpu_engine.cuda.module import kernel
from gpu_engine.cuda.sharded.launch import Shards
from gpu_engine.cuda.sharded.places import Place
from gpu_engine.cuda.waiting import wait


class Stopped(Exception):
    """A drain was cancelled or has taken too long. What it leaves is a pseudoflow, which can be drained later."""


def drain(shards: Shards, control: Control, *, mirrored: bool, until_s: float) -> dict[str, int]:
    """Move excess until none can reach a target; what is cut off changes sides. Returns the counters.

    Of region S and its deficits if ``mirrored``, else of T and its excess. Raises `Stopped` if ``control`` is cancelled
    or ``perf_counter()`` is past ``until_s``.
    """
    shards.clear_tally()
    with _taken(shards.places.devices):
        kernels = Kernels(shards, "drain_mirrored" if mirrored else "drain_forward")
        try:
            kernels.start()
            with kernels.first.on():
                wait(control, kernels, (until_s - perf_counter()) * 1e3)
        except BaseException:
            kernels.give_up()
            raise
        outcome = kernels.outcome()
    pushes, relabels, scanned = shards.tally()[0][:3].tolist()
    shards.clear_tally()
    if not outcome["ended"]:
        raise Stopped
    done = dict(zip(WORK_DONE, (pushes, relabels, int(outcome["searches"]), scanned), strict=True))
    return {**done, "rounds": int(outcome["rounds"]), "levels": int(outcome["levels"])}


class Kernels:
    """The kernels of one drain, and the memory by which they, and the host, tell each other how far they are."""

    def __init__(self, shards: Shards, name: str) -> None:
        self._shards = shards
        self._places = [next(place for place in shards.places.all if place.device == d) for d in shards.places.devices]
        self._meetings, self._words, self._outcomes, self._kernels = [], [], [], []
        for place in self._places:
            with place.on():
                self._meetings.append(cupy.zeros(MEETING.itemsize, np.uint8))
                self._words.append(Word(self._meetings[-1]))
                self._outcomes.append(cupy.zeros(SHARD_OUTCOME.itemsize, np.uint8))
                self._kernels.append(_loaded(name, shards.topology.wide, place.device))

    @property
    def first(self) -> Place:
        """The place whose stream waits for all kernels."""
        return self._places[0]

    def start(self) -> None:
        """Queue all kernels."""
        arguments = [self._arguments(rank) for rank in range(len(self._places))]
        self._shards.places.barrier()
        with ONE_BY_ONE:
            for place, (function, blocks), given in zip(self._places, self._kernels, arguments, strict=True):
                with place.on():
                    function((blocks,), (SHARD_THREADS,), (given,))
        self._shards.places.barrier()

    def give_up(self) -> None:
        """End those that wait for one that could not be queued, or whose device has failed. What they leave can be
        drained, if all devices are well."""
        for word in self._words:
            with suppress(cupy.cuda.runtime.CUDARuntimeError):
                word.write(GIVEN_UP)

    def _arguments(self, rank: int) -> NDArray[np.void]:
        own = self._shards.records_on(self._places[rank].device)
        arguments = np.zeros((), SHARD_DRAIN)
        arguments["own"], arguments["n_own"] = own.data.ptr, len(own)
        arguments["meetings"][: len(self._places)] = [meeting.data.ptr for meeting in self._meetings]
        arguments["outcome"] = self._outcomes[rank].data.ptr
        arguments["rank"], arguments["devices"] = rank, len(self._places)
        arguments["patience"], arguments["round_limit"] = PATIENCE, ROUND_LIMIT
        return arguments

    def cancel(self) -> None:
        """Let all kernels end after the step they are in: the first device tells the others."""
        self._words[0].write(STOP)

    def progress(self) -> NDArray[np.int64]:
        """int64[4]: pushes, relabels, 0 for searches, and scanned arcs so far."""
        pushes, relabels, scanned = self._shards.counted_so_far()[:3]
        return np.array([pushes, relabels, 0, scanned], np.int64)

    def outcome(self) -> NDArray[np.void]:
        """A `SHARD_OUTCOME` record. Waits."""
        with self.first.on():
            found: NDArray[np.void] = self._outcomes[0].get().view(SHARD_OUTCOME)[0]
        return found


@cache
def _loaded(name: str, wide: bool, device: int) -> tuple[Any, int]:
    """The kernel of a device, which is current, and how many of its blocks run there at once."""
    function = kernel("sharded/drain.cu", name, wide=wide, cooperative=True, device=device)
    fit = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(function.kernel.ptr, SHARD_THREADS, 0)
    return function, fit * int(cupy.cuda.Device().attributes["MultiProcessorCount"])


@contextmanager
def _taken(devices: list[int]) -> Iterator[None]:
    with ExitStack() as held:
        for device in sorted(devices):
            held.enter_context(_turn(device))
        yield


@cache
def _turn(device: int) -> Lock:
    """Held by the drain over shards that has the device."""
    del device
    return Lock()
