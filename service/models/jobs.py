"""The shape of jobs as callers see them."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel

from service.models.problem import ProblemInfo
from service.protocol import Kind, Status


class JobView(BaseModel):
    """A job; its error is the problem its waiting call would have been answered with."""

    id: str
    kind: Kind
    graph: str
    status: Status
    cancelling: bool = False
    """Its cancel was accepted before anything of it was done: nothing of it will be."""
    position: int | None = None
    """Jobs of the same worker that were there before; null once it runs."""
    progress: dict[str, Any] | None = None
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    result: dict[str, Any] | None = None
    error: ProblemInfo | None = None


class JobList(BaseModel):
    jobs: list[JobView]
    next: str | None = None
    """The mark for `after` that gets the next page; null: there is none. A short or empty page may have a next one."""
