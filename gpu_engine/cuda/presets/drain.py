"""Run a preset on flow states: on one region, or on both regions of an old cut at once."""

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import fields
from functools import cached_property
from time import perf_counter
from typing import Any, Final

import cupy
import numpy as np

from gpu_engine.control import Control
from gpu_engine.cuda.launch.arrays import State, Topology, heads_and_reverses
from gpu_engine.cuda.layout import OUTSIDE, TARGET
from gpu_engine.cuda.presets.region import Region, ReversedRows
from gpu_engine.cuda.presets.schedules import PRESETS, Preset, Steps
from gpu_engine.errors import Cancelled
from gpu_engine.networks.free import ORDINARY

STEP_LIMIT: Final = 1 << 30
"""Host iterations of one drain; at 10 us each, hours. What is left then is the default drain's."""


class PresetDrain:
    """A preset on one network."""

    def __init__(self, name: str, topology: Topology) -> None:
        self._preset: Preset = PRESETS[name]
        self._topology = topology
        self._reversed_rows: ReversedRows | None = None
        self.spent_ms = 0.0
        """Wall-clock time in schedules since the caller last reset it."""

    @property
    def nbytes(self) -> int:
        """Bytes on the device at rest."""
        rows = self._reversed_rows
        return 0 if rows is None else sum(int(getattr(rows, field.name).nbytes) for field in fields(rows))

    @cached_property
    def _streams(self) -> tuple[Any, Any]:
        return cupy.cuda.Stream(), cupy.cuda.Stream()

    def _region(self, state: State, deficits: bool) -> Region:
        """S as the region of its deficits, or T; free vertices there take or supply everything."""
        free = (state.role != ORDINARY).astype(np.int8) * np.int8(TARGET)
        role = cupy.where(state.source_side != deficits, np.int8(OUTSIDE), free)
        if self._preset.reversed_rows and self._reversed_rows is None and self._topology.n_arcs:
            self._reversed_rows = ReversedRows.of(self._topology, state.edge_arc, *heads_and_reverses(state.arcs))
        return Region(self._topology, state.arcs, state.excess, role, state.wide, deficits, self._reversed_rows)

    def one(self, state: State, deficits: bool, control: Control) -> dict[str, int]:
        """Drain S of its deficits, or T of its excess, on the current stream; returns the counters.

        Raises `Cancelled`; the state is then a pseudoflow.
        """
        began = perf_counter()
        region = self._region(state, deficits)
        if region.n_arcs:
            with closing(self._preset.schedule(region)) as steps:
                for _ in zip(range(STEP_LIMIT), steps, strict=False):
                    _raise_if_cancelled(control)
        counters = region.counters.read()
        self.spent_ms += (perf_counter() - began) * 1e3
        return counters

    def both(self, state: State, control: Control) -> dict[str, int]:
        """If the preset does so, pull in S and push in T at once, on a stream each: they share no residual."""
        if not self._preset.both_sides:
            return {}
        began = perf_counter()
        regions = [self._region(state, deficits) for deficits in (True, False)]
        cupy.cuda.get_current_stream().synchronize()
        try:
            _run_at_once([self._preset.schedule(region) for region in regions], self._streams, control)
        finally:
            for stream in self._streams:
                stream.synchronize()
        counters: Counter[str] = Counter()
        for region in regions:
            counters.update(region.counters.read())
        self.spent_ms += (perf_counter() - began) * 1e3
        return counters


def _run_at_once(schedules: Sequence[Steps], streams: Sequence[Any], control: Control) -> None:
    with ExitStack() as stack:
        running = [
            (stack.enter_context(closing(steps)), stream) for steps, stream in zip(schedules, streams, strict=True)
        ]
        for _ in range(STEP_LIMIT):
            _raise_if_cancelled(control)
            for steps, stream in tuple(running):
                with stream:
                    try:
                        next(steps)
                    except StopIteration:
                        running.remove((steps, stream))
            if not running:
                return


def _raise_if_cancelled(control: Control) -> None:
    if control.cancelled:
        raise Cancelled("the solve was cancelled")
