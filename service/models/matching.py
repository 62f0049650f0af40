"""The body of matching, and the shape of the answer."""

from typing import Any, Final, Literal

from pydantic import BaseModel, Field, field_validator

from service.models.body import Body
from service.models.columns import Ids, Seconds
from service.models.faults import ColumnFault
from service.models.flows import MAX_TERMINALS, SolvedInfo
from service.protocol import Encoding, MatchingArgs

MatchingField = Literal["size", "matching", "cover"]

ALL: Final[frozenset[MatchingField]] = frozenset({"size", "matching", "cover"})
EXAMPLES: dict[str, Any] = {
    "tails left, heads right": {"value": {}},
    "its size alone": {"value": {"fields": ["size"]}},
    "undirected edges": {"value": {"left": ["Ann", "Bob"], "time_limit_s": 10}},
}


class MatchingBody(Body):
    """A question for a maximum matching. By default the tails of edges are left and the heads are right."""

    left: Ids | None = Field(default=None, description="The left vertices; then edges may be drawn either way.")
    fields: list[MatchingField] | None = Field(default=None, max_length=3)
    min_version: int | None = Field(default=None, ge=1, le=2**63 - 1)
    time_limit_s: Seconds | None = None

    @field_validator("left")
    @classmethod
    def _check_left(cls, left: list[int] | list[str] | None) -> list[int] | list[str] | None:
        if left is not None and not 0 < len(left) <= MAX_TERMINALS:
            raise ColumnFault(f"has 1 to {MAX_TERMINALS} vertices, not {len(left)}")
        return left

    def args(self, encoding: Encoding = "json") -> MatchingArgs:
        return MatchingArgs.model_construct(
            left=self.left,
            fields=ALL if self.fields is None else frozenset(self.fields),
            min_version=self.min_version,
            time_limit_s=self.time_limit_s,
            encoding=encoding,
        )


class MatchedInfo(BaseModel):
    """The matched edges; `left` and `right` are their ends, row by row."""

    edges: list[int] | list[str]
    left: list[int] | list[str]
    right: list[int] | list[str]


class CoverInfo(BaseModel):
    """A cover: as many vertices as edges match. Each open edge has one of them as an end, so no matching is larger."""

    left: list[int] | list[str]
    right: list[int] | list[str]


class MatchingInfo(SolvedInfo):
    """The answer of matching."""

    size: int
    matching: MatchedInfo | None = None
    cover: CoverInfo | None = None
