"""Run a preset on flow states: on one region, or on both sides of an old cut at once."""

from collections.abc import Sequence
from contextlib import ExitStack, closing
from functools import cached_property
from time import perf_counter
from typing import Any, Final, Protocol

import cupy

from gpu_engine.cuda.launch import Array, Topology
from gpu_engine.cuda.presets import PRESETS, Preset, Steps
from gpu_engine.cuda.side import ReversedRows, Side
from gpu_engine.engine import Control
from gpu_engine.errors import Cancelled

STEP_LIMIT: Final = 1 << 30
"""Host iterations of one drain; at 10 us each, hours. What is left then is the default drain's."""


class Drained(Protocol):
    """What a flow state must have."""

    @property
    def arcs(self) -> Array: ...
    @property
    def excess(self) -> Array: ...
    @property
    def wide(self) -> bool: ...


class PresetDrain:
    """A preset on one network."""

    def __init__(self, name: str, topology: Topology) -> None:
        self._preset: Preset = PRESETS[name]
        self._topology = topology
        self.spent_ms = 0.0
        """Wall-clock time in schedules since the caller last reset it."""

    @property
    def both_sides(self) -> bool:
        return self._preset.both_sides

    @cached_property
    def _reversed_rows(self) -> ReversedRows | None:
        wanted = self._preset.reversed_rows and len(self._topology.head) > 0
        return ReversedRows.of(self._topology) if wanted else None

    @cached_property
    def _streams(self) -> tuple[Any, Any]:
        return cupy.cuda.Stream(), cupy.cuda.Stream()

    def _side(self, state: Drained, region: Array, mirrored: bool) -> Side:
        return Side(self._topology, state.arcs, state.excess, region, state.wide, mirrored, self._reversed_rows)

    def one(self, state: Drained, region: Array, mirrored: bool, control: Control) -> dict[str, int]:
        """Drain a region, roles int8[n], on the current stream; returns the counters.

        Raises `Cancelled`; the state is then a pseudoflow.
        """
        began = perf_counter()
        side = self._side(state, region, mirrored)
        if side.n_arcs:
            with closing(self._preset.schedule(side)) as steps:
                for _ in zip(range(STEP_LIMIT), steps, strict=False):
                    _look(control)
        counters = side.work.counters()
        self.spent_ms += (perf_counter() - began) * 1e3
        return counters

    def both(self, state: Drained, lacking: Array, holding: Array, control: Control) -> list[dict[str, int]]:
        """Pull in the region ``lacking`` and push in the region ``holding``, which are disjoint, on a stream each."""
        began = perf_counter()
        sides = [self._side(state, lacking, True), self._side(state, holding, False)]
        cupy.cuda.get_current_stream().synchronize()
        try:
            _run_at_once([self._preset.schedule(side) for side in sides], self._streams, control)
        finally:
            for stream in self._streams:
                stream.synchronize()
        counters = [side.work.counters() for side in sides]
        self.spent_ms += (perf_counter() - began) * 1e3
        return counters


def _run_at_once(schedules: Sequence[Steps], streams: Sequence[Any], control: Control) -> None:
    with ExitStack() as stack:
        running = [
            (stack.enter_context(closing(steps)), stream) for steps, stream in zip(schedules, streams, strict=True)
        ]
        for _ in range(STEP_LIMIT):
            _look(control)
            for steps, stream in tuple(running):
                with stream:
                    try:
                        next(steps)
                    except StopIteration:
                        running.remove((steps, stream))
            if not running:
                return


def _look(control: Control) -> None:
    if control.cancelled:
        raise Cancelled("the solve was cancelled")
