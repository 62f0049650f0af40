"""A process that has just begun: signals to it, and how it ends if it cannot begin."""

import os
import signal
import sys
from typing import Final, NoReturn

REFUSED: Final = 78
"""Exit status of a process that will not begin, however often it is started as it was: EX_CONFIG of sysexits.h."""


def refuse(why: str) -> NoReturn:
    """End this process, with one line that says why, before it has begun anything."""
    print(f"headrace: {why}", file=sys.stderr)
    sys.exit(REFUSED)


def end_at_once() -> None:
    """Have this process end by SIGTERM and SIGINT as long as it has no other handlers of them.

    While it imports, for a second or more, it has begun nothing that is to be ended in order. Of itself it would print
    a traceback at SIGINT, and as the first process of a container it would not end at SIGTERM, which it is sent once.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
