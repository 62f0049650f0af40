"""The body of a watch, and what is answered of watches."""

from typing import Any, Final, Literal

from pydantic import BaseModel, Field, field_validator

from service.models.amounts import Amount
from service.models.flows import TerminalsBody
from service.protocol import Encoding, WatchArgs

WATCH_NAME: Final = r"^[A-Za-z0-9_-]{1,64}$"
"""What the name of a watch matches: a part of the ids of its events."""

Watched = Literal["value", "cut"]

EXAMPLES: dict[str, Any] = {
    "the graph's own terminals": {"value": {}},
    "one pair, its value alone": {"value": {"sources": ["s"], "sinks": ["t"], "on": ["value"]}},
}


class WatchBody(TerminalsBody):
    """Terminals default to the graph's own, at each version."""

    on: list[Watched] = Field(
        default=["value", "cut"], min_length=1, max_length=2, description="What is told when it changes."
    )

    @field_validator("on")
    @classmethod
    def _check_on(cls, on: list[Watched]) -> list[Watched]:
        return [part for part in ("value", "cut") if part in on]

    def args(self, watch: str, encoding: Encoding = "json") -> WatchArgs:
        return WatchArgs.model_construct(
            watch=watch,
            sources=self.sources,
            sinks=self.sinks,
            supply=self.supply,
            demand=self.demand,
            rounding=self.rounding,
            on=tuple(self.on),
            encoding=encoding,
        )


class WatchInfo(BaseModel):
    """A watch, and what it saw last."""

    graph: str
    watch: str
    sources: list[int] | list[str] | None = None
    sinks: list[int] | list[str] | None = None
    supply: list[str] | None = None
    demand: list[str] | None = None
    rounding: str
    on: list[Watched]
    version: int
    """The version that it has told of last."""
    generation: str
    value: Amount | None
    """None: there is none, as `error` says."""
    error: str | None = None
    """The code of the refusal that a question for the same flow would get."""
    lower: Literal["ignored"] | None = None
    """Edges have lower bounds, which the flow does not keep. Else, and where there is no flow, it is not there."""


class WatchList(BaseModel):
    watches: list[WatchInfo]
