"""One log for all processes: pretty on a terminal, a JSON object a line otherwise."""

import logging
import sys
from typing import Any

import structlog
from structlog.typing import EventDict, Processor

from service.telemetry.redaction import redact


def configure(process: str, level: int = logging.INFO) -> None:
    """Send structlog and the standard library's loggers to stderr; `process` names the writer in each line."""

    def name_the_process(_logger: Any, _method: str, event: EventDict) -> EventDict:
        event["process"] = process  # not a context variable: threads start without any
        return event

    shared: list[Processor] = [
        name_the_process,
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    pretty = sys.stderr.isatty()
    ending: list[Processor] = (
        [structlog.processors.format_exc_info, redact, structlog.dev.ConsoleRenderer()]
        if pretty
        else [structlog.processors.format_exc_info, redact, structlog.processors.JSONRenderer()]
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(level),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *ending],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
