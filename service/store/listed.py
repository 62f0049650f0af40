"""Which snapshots a graph has, as Redis holds the list. The API reads it too."""

from typing import Final

from pydantic import BaseModel, TypeAdapter


class SnapshotInfo(BaseModel):
    version: int
    bytes: int
    created_at: float
    """Unix seconds."""
    blob: str


LISTED: Final = TypeAdapter(list[SnapshotInfo])


def read_listed(data: bytes | None) -> list[SnapshotInfo]:
    return [] if data is None else LISTED.validate_json(data)
