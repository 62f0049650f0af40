"""Clocks and repetition."""

from collections.abc import Callable
from time import perf_counter
from typing import TypeVar

T = TypeVar("T")


def timed(call: Callable[[], T]) -> tuple[T, float]:
    """The result of a call and its wall-clock time in milliseconds."""
    began = perf_counter()
    result = call()
    return result, (perf_counter() - began) * 1e3


def repeat(call: Callable[[], float], repeats: int, limit_s: float) -> list[float]:
    """What ``call`` returns, at least once and at most ``repeats`` times; none is begun after ``limit_s``."""
    began = perf_counter()
    times = [call()]
    while len(times) < repeats and perf_counter() - began < limit_s:
        times.append(call())
    return times
