"""What an update has done, as its log entry says it, and what stands in the way of one. The API reads it too."""

from typing import Any

from pydantic import BaseModel

from service.store.rounded import RoundedInfo


class Fenced(RuntimeError):
    """Somebody else has written to, taken over or removed this graph."""


class InsertedInfo(BaseModel):
    """What an update has inserted."""

    vertices: int
    edges: int
    first_vertex: int | None = None
    """The number of the first one, whom the others follow; None where vertices have names, or none was inserted."""
    first_edge: int | None = None


class DeletedInfo(BaseModel):
    """What an update has deleted."""

    edges: int
    vertices: int = 0


class SizeInfo(BaseModel):
    """How large a graph is, which only a change of structure changes."""

    n_vertices: int
    n_edges: int
    n_arcs: int


class EndsInfo(BaseModel):
    """The default terminals of a graph, which only vertices that are deleted, or there again, change."""

    source: int | str | None
    sink: int | str | None


class Applied(BaseModel):
    """What a log entry says beside the batch itself: enough to answer the same command once more."""

    key: str
    """The Idempotency-Key, or the command's id."""
    commit: str = ""
    """A mark that no other entry has. It tells two entries of one version apart, after Redis has lost the first."""
    digest: str | None = None
    applied: int
    skipped: int
    unchanged: int
    rounded: RoundedInfo | None = None
    """None: no amount was rounded."""
    inserted: InsertedInfo | None = None
    """None: the update was none of structure."""
    deleted: DeletedInfo | None = None

    @property
    def counts(self) -> dict[str, Any]:
        """What the answer to the update says of its rows."""
        said = {"applied", "skipped", "unchanged", "rounded", "inserted", "deleted"}
        return self.model_dump(include=said, exclude_none=True)
