"""An API process whose event loop hangs ends, and whoever has started it starts it again.

Connections that it would be given get no answer, and of several processes on one port nobody sees which one hangs.
"""

import faulthandler
import os
import threading
from typing import Final

import structlog

LOOK_EVERY_S: Final = 5.0
PATIENCE: Final = 12
"""So many looks without a sign of life: a minute. Looks are counted, not seconds, so that a machine or a container that
was stopped meanwhile is not taken for one that hangs."""

HUNG: Final = 70
"""Exit status of a process that hung: EX_SOFTWARE of sysexits.h."""

STDERR: Final = 2

log = structlog.get_logger(__name__)


class Watchdog:
    """A thread that looks for signs of life, from `begin` until `rest`."""

    def __init__(self, look_every_s: float = LOOK_EVERY_S) -> None:
        self._look_every_s = look_every_s
        self._signs = 0
        self._rests = threading.Event()

    def begin(self) -> None:
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    def sign(self) -> None:
        """The event loop turns."""
        self._signs += 1

    def rest(self) -> None:
        """No sign is awaited any more: the process is about to end, for which it has a time limit of its own."""
        self._rests.set()

    def _watch(self) -> None:
        seen = silent = 0
        while not self._rests.wait(self._look_every_s):
            silent = silent + 1 if self._signs == seen else 0
            seen = self._signs
            if silent == PATIENCE:
                log.error("hung", silent_s=silent * self._look_every_s, hint="the stacks of all threads follow")
                faulthandler.dump_traceback(STDERR)
                os._exit(HUNG)
