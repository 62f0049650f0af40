"""The signals by which a command that runs processes is told to end them in order."""

import signal
import threading
from typing import Final

ENDING: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
"""Also Ctrl-\\, and a terminal that is closed."""


def end_by_signals(stop: threading.Event) -> None:
    """Have each of `ENDING` set `stop`; under nohup all but the end of the terminal."""
    for number in ENDING:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda *_: stop.set())
