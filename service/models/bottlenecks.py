"""The field `bottlenecks` of max-flow: its options, and the shape of its part of the answer."""

from typing import Final, Literal

from pydantic import BaseModel, Field

from service.models.amounts import Amount
from service.models.body import Body

MAX_UP_TO: Final = 10_000
"""Bottlenecks of one answer for which is solved what they would give without a limit."""


class BottleneckOptions(Body):
    """What is told of bottlenecks."""

    up_to: int = Field(
        default=0,
        ge=0,
        le=MAX_UP_TO,
        description="For so many of them: what the flow would gain if that one had no limit. Each is solved.",
    )


class BottlenecksInfo(BaseModel):
    """What some minimum cut pays, what all pay first: edges, and the caps of sources and sinks."""

    edges: list[int] | list[str]
    in_every: list[bool]
    """Whether every minimum cut pays it. More of any other does not help alone."""
    gain: list[Literal[0, 1]]
    """What the flow gains for each of the first units more."""
    up_to: list[Amount] | None = None
    """What the flow gains if it has no limit, at most; "inf" if the flow then has none either. Shorter than `edges`
    where more were found than asked for."""
    sources: list[int] | list[str]
    """Capped sources whose supply is used up, all of it."""
    source_in_every: list[bool]
    source_gain: list[Literal[0, 1]]
    source_up_to: list[Amount] | None = None
    sinks: list[int] | list[str]
    """Capped sinks whose demand is met."""
    sink_in_every: list[bool]
    sink_gain: list[Literal[0, 1]]
    sink_up_to: list[Amount] | None = None
    vertices: list[int] | list[str] | None = None
    """Vertices that let no more through, if vertices of the graph have capacities."""
    vertex_in_every: list[bool] | None = None
    vertex_gain: list[Literal[0, 1]] | None = None
