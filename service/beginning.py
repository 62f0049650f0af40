"""Signals to a process that has just begun."""

import os
import signal


def end_at_once() -> None:
    """Have this process end by SIGTERM and SIGINT as long as it has no other handlers of them.

    While it imports, for a second or more, it has begun nothing that is to be ended in order. Of itself it would print
    a traceback at SIGINT, and as the first process of a container it would not end at SIGTERM, which it is sent once.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
