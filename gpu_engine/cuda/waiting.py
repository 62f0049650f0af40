"""The host while drains run: it passes a cancel on, reports how far they are, and stops those that take too long."""

import math
import time
from time import perf_counter
from typing import Final, Protocol

import cupy
import numpy as np
from numpy.typing import NDArray

from gpu_engine.control import WORK_DONE, Control

SPIN_S: Final = 0.001
POLL_S: Final = 0.0002
REPORT_S: Final = 0.05
"""A running solve reports its counters this often, in seconds."""

WORK: Final = slice(Control.PUSHES, Control.PUSHES + len(WORK_DONE))
"""The slots of a control that hold the counters `WORK_DONE`."""


class Running(Protocol):
    """Drains on the current stream."""

    def cancel(self) -> None:
        """Ask them to stop."""

    def progress(self) -> NDArray[np.int64]:
        """int64[4]: the counters `WORK_DONE` so far."""


def wait(control: Control, drains: Running, limit_ms: float) -> bool:
    """Return when all drains have ended; False if they were stopped because ``limit_ms`` had passed."""
    event = cupy.cuda.Event(disable_timing=True)
    event.record()
    began = reported = perf_counter()
    done = control.slots[WORK].copy()
    sent, in_time = -math.inf, True
    while not event.done:
        now = perf_counter()
        late = (now - began) * 1e3 > limit_ms
        if (control.cancelled or late) and now - sent > REPORT_S:  # again: what was sent too early, they cleared
            drains.cancel()
            sent, in_time = now, control.cancelled
        if now - began > SPIN_S:
            time.sleep(POLL_S)
        if now - reported > REPORT_S:
            reported = now
            control.slots[WORK] = done + drains.progress()
    return in_time
