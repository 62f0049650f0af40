"""CPU time of this process and its children: on a machine that has other work it says more than a clock."""

import os
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")


def cpu_ms() -> float:
    """Milliseconds of CPU that this process and all below it, threads that live, have taken until now. Linux alone."""
    total_ns = 0
    for process in family():
        for thread in PROC.glob(f"{process}/task/*/schedstat"):
            with suppress(OSError):
                total_ns += int(thread.read_text().split()[0])
    return total_ns / 1e6


def ticks_ms() -> float:
    """The same with threads that have ended, but in steps of a clock tick, which is mostly 10 ms."""
    ticks = 0
    for process in family():
        with suppress(OSError):
            ticks += sum(map(int, (PROC / str(process) / "stat").read_text().rpartition(")")[2].split()[11:13]))
    return 1e3 * ticks / os.sysconf("SC_CLK_TCK")


def family() -> list[int]:
    """This process and all below it."""
    children: dict[int, list[int]] = defaultdict(list)
    for stat in PROC.glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            children[int(stat.read_text().rpartition(")")[2].split()[1])].append(int(stat.parent.name))
    found, waiting = [], [os.getpid()]
    while waiting:
        found.append(waiting.pop())
        waiting += children[found[-1]]
    return found
