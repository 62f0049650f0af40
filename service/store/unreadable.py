"""What lies in Redis and cannot be read: another release has written it, or somebody by hand.

A row of a table that many share is left out, so that all others are served. A record that a request is about refuses
that request as `Unreadable`. Both are told in the log with the key, once by each process.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final, TypeVar

import redis
import structlog
import zstandard
from pydantic import ValidationError

from service.errors import ServiceError
from service.store.connection import is_of_wrong_type

NOT_READ: Final = (ValueError, KeyError, TypeError, zstandard.ZstdError)
"""What reading raises for what is not of the form that it should be. Texts that are no UTF-8 and what is no JSON are a
ValueError."""

TOLD: Final = 1000
"""How many faults a process remembers to have logged."""

T = TypeVar("T")
Row = TypeVar("Row")

log = structlog.get_logger(__name__)


class Unreadable(ServiceError):
    """The record of one thing cannot be read, and nobody has changed it."""

    def __init__(self, what: str) -> None:
        detail = f"what Redis has of {what} cannot be read: another release has written it, or somebody by hand"
        super().__init__("internal_error", f"{detail}. The log has its key")


@contextmanager
def reading(what: str, key: str, field: str = "") -> Iterator[None]:
    """Raises `Unreadable` in place of what reading `what` raises, and tells it in the log. A key of another kind is
    unreadable as well."""
    try:
        yield
    except NOT_READ as error:
        _tell(key, field, _why(error))
        raise Unreadable(what) from error
    except redis.ResponseError as error:
        if not is_of_wrong_type(error):
            raise
        _tell(key, field, str(error))
        raise Unreadable(what) from error


def readable(rows: Iterable[tuple[bytes, Row]], key: str, read: Callable[[str, Row], T]) -> Iterator[T]:
    """What `read` makes of each row of a table, by its field; rows that it cannot read are left out, and told."""
    for field, row in rows:
        try:
            found = read(field.decode(), row)
        except NOT_READ as error:
            _tell(key, repr(field), _why(error))
            continue
        yield found


def texts(rows: Mapping[bytes, bytes], key: str) -> dict[str, str]:
    """A table of texts by text, without what is no UTF-8."""
    return dict(readable(rows.items(), key, lambda field, row: (field, row.decode())))


def each(answers: Iterable[Any], keys: Iterable[str]) -> list[Any]:
    """What a pipeline has answered about several keys, with None for one that is of another kind than was asked for.

    Raises any other error that is among the answers, which have to be had with ``raise_on_error=False``.
    """
    found: list[Any] = []
    for answer, key in zip(answers, keys, strict=True):
        if isinstance(answer, Exception):
            if not is_of_wrong_type(answer):
                raise answer
            _tell(key, "", str(answer))
        found.append(None if isinstance(answer, Exception) else answer)
    return found


def figure(value: bytes | None) -> int:
    """A number of bytes as an integer; 0 for a value that is not one."""
    return int(value) if value is not None and value.isdigit() else 0


def _why(error: Exception) -> str:
    """What is wrong, without what was read: that may be a secret."""
    if isinstance(error, ValidationError):
        return "; ".join(fault["msg"] for fault in error.errors(include_input=False, include_url=False)[:3])
    return type(error).__name__


@lru_cache(TOLD)
def _tell(key: str, field: str, why: str) -> None:
    log.error("unreadable", key=key, field=field or None, error=why)
