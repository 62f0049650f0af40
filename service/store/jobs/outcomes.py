"""What becomes of a command is decided once, by whoever comes first: a cancel, or the commit.

A command that has not ended has at most one outcome, in a key of its own. A cancel writes it unless there is one. A
commit watches it, and writes the command's result into it within its own MULTI. So a cancel that was accepted holds
wherever the command goes, and a command that has committed is never run again. The end of the command removes the key.
"""

from typing import Any, Final

from gpu_engine.errors import Cancelled
from service.protocol import TERMINAL_STATUSES
from service.store.keys import Keys
from service.store.watched import Read

CANCELLED: Final = b"cancelled"
"""The outcome of a command that is not to be done. A result is a JSON object, so none looks like this."""

UNFINISHED_TTL_S: Final = 7 * 86_400
"""A job that nobody ever runs is forgotten after a week, and its outcome with it."""


class Committed(Exception):
    """The command has been done, by an earlier try or by another worker; `result` is its answer."""

    def __init__(self, result: str) -> None:
        super().__init__(result)
        self.result = result


class Over(Exception):
    """The command has ended and was answered, or Redis has lost it and its client was told to send it again."""


def outcome_key(keys: Keys, job_id: str) -> str:
    """The Redis key that a commit watches and a cancel writes."""
    return keys.outcome(job_id)


def decision(keys: Keys, job_id: str) -> tuple[Read, Read]:
    """What `refuse_decided` is to be given: outcome and status, in the order that they must be read in."""
    return ("GET", keys.outcome(job_id)), status_read(keys, job_id)


def status_read(keys: Keys, job_id: str) -> Read:
    """What reads the status of one command."""
    return ("HGET", keys.job(job_id), "status")


def commit(pipe: Any, keys: Keys, job_id: str, result: str) -> None:
    """Write the result of a command as its outcome, within the MULTI that does what the command asks for."""
    pipe.set(keys.outcome(job_id), result, ex=UNFINISHED_TTL_S)


def refuse_decided(outcome: bytes | None, status: bytes | None) -> None:
    """Raises `Over`, `Cancelled` or `Committed` for a command that must not be done (again).

    `outcome` must have been read no later than `status`: the end of a command changes the status as it removes the
    outcome.
    """
    if is_over(status):
        raise Over("the command is over")
    if outcome == CANCELLED:
        raise Cancelled("cancelled before anything was changed")
    if outcome is not None:
        raise Committed(outcome.decode())


def is_over(status: bytes | None) -> bool:
    """Whether a command has ended, or is not there. A status that this release does not know is none of an end."""
    return status is None or status.decode(errors="replace") in TERMINAL_STATUSES
