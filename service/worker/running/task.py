"""One delivery of a command to a worker, and the stream entry it comes in."""

import threading
from dataclasses import dataclass, field
from typing import Final

from pydantic import ValidationError

from gpu_engine.engine import Control
from service.protocol import Command, Status

GROUP: Final = "worker"
"""The one consumer group of every stream of commands."""

LEFT_BEHIND: Final = b"left_behind"
"""In a stream entry that was moved: the worker it was moved from had been given it."""


@dataclass(eq=False, slots=True)
class Task:
    """One delivery of a command."""

    entry_id: bytes
    command: Command
    redelivered: bool
    """A process that has ended left it behind: it may have run before, wholly or in part."""
    control: Control = field(default_factory=Control)
    started_at: float | None = None
    """Unix seconds."""
    ended: bool = False
    status: Status | None = None
    """Once it has ended here; None if it was handed on."""
    code: str | None = None
    """Of the problem it ended with."""
    lock: threading.RLock = field(default_factory=threading.RLock)
    """Held to start the task, to end it and to report on it."""


class Forward(Exception):
    """Another worker owns the graph by now."""

    def __init__(self, worker: str) -> None:
        super().__init__(worker)
        self.worker = worker


def parse_command(fields: dict[bytes, bytes] | None) -> Command | None:
    """None for what is no command, such as an entry that was deleted while pending."""
    try:
        return Command.model_validate_json((fields or {})[b"command"])
    except (KeyError, ValidationError):
        return None
