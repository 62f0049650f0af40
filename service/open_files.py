"""How many files and sockets a process may have open, and how many of them may be connections of callers."""

import resource
from typing import Final

ENOUGH: Final = 65_536
"""More than any process here opens; some machines allow a thousand million, which others' loops then run through."""

OWN_FILES: Final = 144
"""Files that an API process needs beside its callers: connections to Redis, listeners, its log, modules and parsers."""

FEWEST: Final = OWN_FILES + 112
"""Files that leave a few callers, who may take two each, and what Redis keeps for itself."""


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
