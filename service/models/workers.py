"""Bodies about workers, and about where graphs are served."""

from pydantic import BaseModel, Field

from service.models.body import Body
from service.models.columns import Text


class MoveBody(Body):
    """Where a graph is to be served."""

    to: Text = Field(min_length=1, max_length=200, description="The name of a worker.")


class MoveInfo(BaseModel):
    """What has become of it."""

    name: str
    from_: str = Field(alias="from")
    to: str
    moved: bool
    """False: the graph was there already."""
    pause_ms: float | None
    """How long commands of the graph had to wait; null: the worker has not yet said that it serves it."""
    waiting: int
    """Commands that waited for it and went along."""
    flow_states: int
    """Flow states that were solved when it came."""
