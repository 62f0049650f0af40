"""One delivery of a command to a worker, and the stream entry it comes in."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import from_json

from gpu_engine.control import Control
from service.collector import held_back
from service.protocol import Command, Kind, Status
from service.store.held import Found
from service.store.jobs.record import Result
from service.worker.running.drafts import DraftWriter

LEFT_BEHIND: Final = b"left_behind"
"""A field of a stream entry that was moved: it says that the worker before had been given the command."""

UNREADABLE: Final = "the worker cannot read the command: it was written by another version of the service"


@dataclass(frozen=True, slots=True)
class Rest:
    """What is left to do of a command once it needs its graph no more: it is done beside the graph's lane."""

    work: Callable[[], Result]
    """May be called again after it has failed."""
    close: Callable[[], None] = lambda: None
    """Called once, after all work."""
    expected_s: float = inf
    """The expected time of the work, in seconds. Work of at most `lanes.SHORT_S` does not wait behind other work of its
    graph."""


@dataclass(eq=False, slots=True)
class Look:
    """What one round trip has read as a try of a command began."""

    pipe: Any
    """It watches the job, and the stream of its events, since before they were read."""
    found: Found | None
    """What the name of the graph stood for; None: that was not read, or is not what is in memory."""
    is_followed: bool
    """Whether there is a stream of the job's events."""
    run: str
    """The run of Redis that answered, or one before it: see `service.store.durable`."""


@dataclass(eq=False, slots=True)
class Task:
    """One delivery of a command."""

    entry_id: bytes
    command: Command
    redelivered: bool
    """Whether a process that has ended left it behind: it may have run before, wholly or in part."""
    readable: bool = True
    """False: `command` is only what `parse_remains` could make out, and it is refused."""
    settles: bool = True
    """Whether an end that Redis may still lose can be marked as such: else the end waits until it cannot."""
    control: Control = field(default_factory=Control)
    started_at: float | None = None
    """Unix seconds."""
    ended: bool = False
    status: Status | None = None
    """How the task has ended; None while it runs, or if it was handed on to another worker."""
    code: str | None = None
    """The code of the problem that the task has ended with."""
    lock: threading.RLock = field(default_factory=threading.RLock)
    """Held to start the task, to end it and to report on it."""
    among: int = 1
    """How many commands its run was for: those that were answered together share their time."""
    rest: Rest | None = None
    """Set once it is to leave the lane of its graph."""
    is_beside: bool = False
    """Whether the rest of it has begun."""
    look: Look | None = None
    """What was read as this try of it began; None once that is used."""
    draft: DraftWriter | None = None
    """Writes its answer, if that can be read meanwhile."""
    _phase: tuple[str, float | None] | None = None
    _rows: dict[str, int] = field(default_factory=dict)

    @property
    def waits(self) -> bool:
        """Whether nothing of it runs now: it waits for its lane, or for its place beside."""
        return self.started_at is None or (self.rest is not None and not self.is_beside)

    def take_found(self) -> Found | None:
        """What the graph's name stood for as this try began, given once: it is old news after that."""
        if self.look is None:
            return None
        found, self.look.found = self.look.found, None
        return found

    def let_go(self) -> None:
        """Give back the connection that watches the job."""
        look, self.look = self.look, None
        if look is not None:
            look.pipe.reset()

    def row(self, done: int, of: int) -> None:
        """So many of its rows are done."""
        self._rows = {"done": done, "of": of}
        self.at("rows", done / max(of, 1))

    def follow(self, draft: DraftWriter) -> None:
        """This writes its answer from now on."""
        self.draft = draft

    def at(self, phase: str, fraction: float | None = None) -> None:
        """The task is in this phase, and has done so much of it, from 0 to 1, where that is known."""
        self._phase = phase, fraction

    def progress(self) -> dict[str, Any]:
        """For whoever follows the task: `phase`, `fraction` of it or None, rows `done` and `of` how many; or a solver's
        counters."""
        if self._phase is None:
            return dict(self.control.progress())
        phase, fraction = self._phase
        return {"phase": phase, "fraction": None if fraction is None else round(fraction, 3)} | self._rows


class Forward(Exception):
    """Another worker owns the graph by now."""

    def __init__(self, worker: str) -> None:
        super().__init__(worker)
        self.worker = worker


def parse_command(fields: dict[bytes, bytes] | None) -> Command | None:
    """The command of an entry; None for what is no command, such as an entry that was deleted while pending."""
    try:
        with held_back():
            return Command.model_validate_json((fields or {})[b"command"])
    except (KeyError, ValidationError):
        return None


def parse_remains(fields: dict[bytes, bytes] | None) -> Command | None:
    """What its end needs of a command that `parse_command` cannot read, as an API process of a later version writes it.

    None if it has no id. A kind that is not known here is taken for a load, whose refusal gives back the graph's name.
    """
    try:
        said = from_json((fields or {})[b"command"])
    except (KeyError, ValueError):
        return None
    if not isinstance(said, dict) or not _text(said, "id"):
        return None
    created_at = said.get("created_at")
    return Command(
        id=_text(said, "id"),
        kind=Kind(said["kind"]) if said.get("kind") in [*Kind] else Kind.LOAD,
        graph=_text(said, "graph"),
        reply_to=_text(said, "reply_to"),
        idempotency_key=_text(said, "idempotency_key") or None,
        created_at=created_at if isinstance(created_at, float) and isfinite(created_at) else time.time(),
    )


def _text(said: dict[str, Any], name: str) -> str:
    """Empty if it is none."""
    value = said.get(name)
    return value if isinstance(value, str) else ""
