"""One log for all processes: pretty on a terminal, a JSON object a line otherwise."""

import logging
import os
import sys
from functools import partial
from typing import Any, TextIO

import structlog
from structlog.typing import EventDict, Processor

from service.telemetry.outlet import Outlet
from service.telemetry.redaction import redact


class Lines:
    """Writes the lines of this process to where a handler writes. One that cannot be written is lost: the service goes
    on without it."""

    def __init__(self, handler: "logging.StreamHandler[Outlet]", *_: Any) -> None:
        self._handler = handler

    def info(self, line: str) -> None:
        self._handler.acquire()
        try:
            self._handler.stream.write(f"{line}\n")
            self._handler.flush()
        except (OSError, ValueError):  # its reader is gone, its disk is full, or it is closed
            pass
        finally:
            self._handler.release()

    debug = warning = error = critical = info


def _standard_error() -> TextIO:
    """Where lines go: nowhere if it was closed. Standard streams that are closed lead nowhere from now on, here and in
    children, so that no file or socket becomes one of them."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    stderr: TextIO | None = sys.stderr  # None where it was closed, whatever its type says
    return open(os.devnull, "w") if stderr is None else stderr


def configure(process: str) -> None:
    """Send lines of level INFO and above, of structlog and of the standard library, to stderr; `process` names the
    writer."""

    def name_the_process(_logger: Any, _method: str, event: EventDict) -> EventDict:
        event["process"] = process  # not a context variable: threads start without any
        return event

    shared: list[Processor] = [
        name_the_process,
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    stderr = _standard_error()
    pretty = stderr.isatty()
    ending: list[Processor] = (
        [structlog.processors.format_exc_info, redact, structlog.dev.ConsoleRenderer()]
        if pretty
        else [structlog.processors.format_exc_info, redact, structlog.processors.JSONRenderer()]
    )

    def lines_lost(number: int) -> str:
        event: Any = {"event": "lines_lost", "lines": number}
        for processor in [*shared, *ending]:
            event = processor(None, "warning", event)
        return f"{event}\n"

    handler = logging.StreamHandler(Outlet(stderr, lines_lost))
    structlog.configure(
        processors=[*shared, *ending],
        logger_factory=partial(Lines, handler),
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        cache_logger_on_first_use=True,
    )
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *ending],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
