"""Compiling of the CPU kernels, told as it goes on: Numba does it when they are used first, for a minute in all."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from numba.core import event

from gpu_engine.kernels.cache import n_kernels


@dataclass(frozen=True, slots=True)
class Compiling:
    """How far the compiling of the kernels is."""

    kernel: str
    """The module and the name of the kernel that is being compiled."""
    done: int
    """How many kernels have been begun. Kernels that were read from the cache do not count."""
    of: int
    """The number of all kernels."""
    seconds: float
    """The time since the start, in seconds."""


class _Listener(event.Listener):
    """Counts each kernel of ours once, however many types it is compiled for."""

    def __init__(self, tell: Callable[[Compiling], None], known: set[str]) -> None:
        self._tell = tell
        self._known = known
        self._of = n_kernels()
        self._began = time.perf_counter()

    def on_start(self, event: event.Event) -> None:
        function = event.data["dispatcher"].py_func
        kernel = f"{function.__module__}.{function.__qualname__}"
        if function.__module__.startswith("gpu_engine.") and kernel not in self._known:
            self._known.add(kernel)
            self._tell(Compiling(kernel, len(self._known), self._of, time.perf_counter() - self._began))

    def on_end(self, event: event.Event) -> None:
        """Numba calls this at the end of each kernel, about which nothing is reported."""


@contextmanager
def told(tell: Callable[[Compiling], None]) -> Iterator[set[str]]:
    """While this lasts, `tell` hears of each kernel that is compiled in this process, as it is begun, in its thread.

    Gives the kernels that count as begun: those that another process compiles meanwhile may be added to them.
    """
    known: set[str] = set()
    with event.install_listener("numba:compile", _Listener(tell, known)):
        yield known
