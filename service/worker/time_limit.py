"""How long a question may take."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from gpu_engine.control import Control
from gpu_engine.errors import Cancelled, TimedOut

SHORTEST_S: Final = 0.001
"""A time limit that leaves less has passed: a thread takes about as long to begin."""


@contextmanager
def time_limit(control: Control, limit_s: float | None, used_s: float = 0.0) -> Iterator[None]:
    """Raise `TimedOut` instead of `Cancelled` if the limit was the reason, of which some may be used up already.

    The command may be tried again, when Redis was away: a limit that has passed does not cancel that. A caller's
    cancel that came meanwhile is not lost: it is in Redis, where each try looks first.
    """
    if limit_s is None:
        yield
        return
    passed = threading.Event()

    def stop() -> None:
        passed.set()
        control.cancel()

    left_s = limit_s - used_s
    timer = threading.Timer(left_s, stop)
    if left_s < SHORTEST_S:
        stop()
    else:
        timer.start()
    try:
        yield
    except Cancelled as error:
        if passed.is_set():
            raise TimedOut(f"not solved within {limit_s} s") from error
        raise
    finally:
        timer.cancel()
        if timer.ident is not None:
            timer.join()  # it may be at work
        if passed.is_set():
            control.go_on()
