"""What this machine allows a process: memory, of which the usual limits are parts, and open files, of which some are
connections of callers."""

import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Final

GROUPS: Final = Path("/proc/self/cgroup")
MOUNTED: Final = Path("/sys/fs/cgroup")

ENOUGH: Final = 65_536
"""More than any process here opens; some machines allow a thousand million, which others' loops then run through."""

OWN_FILES: Final = 144
"""Files that an API process needs beside its callers: connections to Redis, listeners, its log, modules and parsers."""

FEWEST: Final = OWN_FILES + 112
"""Files that leave a few callers, who may take two each, and what Redis keeps for itself."""


@cache
def memory_bytes(groups: Path = GROUPS, mounted: Path = MOUNTED) -> int:
    """The memory of this machine, or of the container or unit that this process runs in if that has less: the least
    limit of its control groups of either version (cgroups(7))."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for file in _limits(groups, mounted):
        with suppress(OSError, ValueError):  # it is not there, or says `max`
            limits.append(int(file.read_text()))
    return min(limits)


def _limits(groups: Path, mounted: Path) -> Iterator[Path]:
    try:
        lines = groups.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        number, controllers, within = line.split(":", 2)
        if number == "0":
            folder, name = mounted, "memory.max"
        elif "memory" in controllers.split(","):
            folder, name = mounted / "memory", "memory.limit_in_bytes"
        else:
            continue
        place = PurePosixPath(within).relative_to("/")  # as the host names it: a container may not see all of it
        for part in (place, *place.parents):
            yield folder / part / name


class TooFewFiles(Exception):
    """A machine that allows a process fewer files than it needs, in words for the person who started it."""


def take_files() -> None:
    """Call `raise_limit` for a process that is about to serve. Raises `TooFewFiles` where the machine allows fewer than
    `FEWEST`."""
    allowed = raise_limit()
    if allowed < FEWEST:
        raise TooFewFiles(f"a process may have {allowed} files open here, and {FEWEST} are needed: see ulimit -n")


def raise_limit() -> int:
    """Let this process, and those it starts, open as many files as the machine allows, up to `ENOUGH`; how many.

    The usual limit of 1,024 is meant for programs that wait in select(), and none does here.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return ENOUGH if soft == resource.RLIM_INFINITY else soft


def room_for_callers(open_files: int, max_listeners: int) -> int:
    """Connections that an API process can take with so many files.

    A caller that follows a job takes a second one, to Redis; at most `max_listeners` do.
    """
    left = max(open_files - OWN_FILES, 2)
    return max(left // 2, left - max_listeners)
