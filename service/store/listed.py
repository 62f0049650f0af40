"""Which snapshots a graph has, as Redis holds the list. The API reads it too."""

from collections.abc import Sequence
from typing import Final

from pydantic import BaseModel, TypeAdapter

from service.store.unreadable import reading


class SnapshotInfo(BaseModel):
    version: int
    bytes: int
    created_at: float
    """Unix seconds."""
    blob: str


LISTED: Final = TypeAdapter(list[SnapshotInfo])


KEEP: Final = 2
"""Snapshots that are kept of a graph: the newest and the one before; and the log since that one."""


def reaches(listed: Sequence[SnapshotInfo], version: int, present: int) -> bool:
    """Whether what is kept leads to a version of a graph with these snapshots, unless some of it cannot be read."""
    oldest = min((snapshot.version for snapshot in listed), default=1) if len(listed) >= KEEP else 1
    return version == 1 or oldest <= version <= present


def read_listed(data: bytes | None, key: str) -> list[SnapshotInfo]:
    """The snapshots that lie under a key. Raises `Unreadable`."""
    with reading("the snapshots of the graph", key):
        return [] if data is None else LISTED.validate_json(data)
