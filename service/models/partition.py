"""The body of partition, and the shape of the answer."""

from decimal import Decimal
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import BaseModel, Field, PlainValidator, WithJsonSchema, model_validator

from service.errors import ServiceError
from service.models.amounts import Amount
from service.models.body import Body
from service.models.columns import AmountText, Ids, Seconds, shown
from service.models.faults import ColumnFault
from service.protocol import Encoding, PartitionArgs

PartitionField = Literal["parts", "cut"]

MAX_PARTS: Final = 1024
MOST_WEIGHT: Final = 2**53
EXAMPLES: dict[str, Any] = {
    "eight districts": {"value": {"k": 8}},
    "as few edges between them as can be": {"value": {"k": 4, "epsilon": 0.1, "weights": "one", "fields": ["cut"]}},
    "of equal demand": {"value": {"k": 2, "vertices": ["a", "b"], "vertex_weight": [12, 30]}},
}


def check_weights(value: object) -> list[int]:
    """A column of whole numbers. Raises `ColumnFault` naming the rows that are none."""
    if type(value) is not list:
        raise ColumnFault("should be an array with one whole number for each of `vertices`")
    wrong = [row for row, v in enumerate(value) if type(v) is not int or not 0 <= v <= MOST_WEIGHT]
    if wrong:
        found = f"row {wrong[0]}: {shown(value[wrong[0]])} is no weight"
        raise ColumnFault(f"{found}: that is a whole number from 0 to 2**53", wrong)
    return value


Weights: TypeAlias = Annotated[
    list[int],
    PlainValidator(check_weights),
    WithJsonSchema({"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": MOST_WEIGHT}}),
]


class PartitionBody(Body):
    """A question for k parts of about equal weight, with as little between them as can be found."""

    k: int = Field(ge=1, le=MAX_PARTS, description="How many parts.")
    epsilon: AmountText = Field(
        default="0.03", description="By how much a part may be heavier than the k-th part of all, from 0 to 1."
    )
    weights: Literal["capacity", "one"] = Field(default="capacity", description="What an edge weighs.")
    seed: int = Field(default=0, ge=0, le=2**31 - 1)
    vertices: Ids | None = Field(default=None, description="Vertices with a weight of their own; all others weigh 1.")
    vertex_weight: Weights | None = Field(default=None, description="What each of `vertices` weighs.")
    fields: list[PartitionField] | None = Field(default=None, max_length=2)
    min_version: int | None = Field(default=None, ge=1, le=2**63 - 1)
    time_limit_s: Seconds | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.epsilon == "inf" or not 0 <= Decimal(self.epsilon) <= 1:
            raise ColumnFault(f"{self.epsilon} is not from 0 to 1", field="epsilon")
        if (self.vertices is None) != (self.vertex_weight is None):
            missing = "vertices" if self.vertices is None else "vertex_weight"
            raise ColumnFault("`vertices` and `vertex_weight` go together", field=missing)
        named, weighed = len(self.vertices or ()), len(self.vertex_weight or ())
        if named != weighed:
            raise ColumnFault(f"there is one for each of `vertices`, not {weighed} for {named}", field="vertex_weight")
        return self

    def partition_args(self, max_rows: int, encoding: Encoding) -> PartitionArgs:
        """What the worker gets. Raises too_large for the weights of more than `max_rows` vertices."""
        if self.vertices is not None and len(self.vertices) > max_rows:
            detail = (
                f"a question weighs at most {max_rows} vertices (HEADRACE_MAX_PATCH_ROWS), not {len(self.vertices)}"
            )
            raise ServiceError("too_large", detail, field="/vertices")
        given = set(PartitionArgs.model_fields) - {"encoding", "fields"}
        return PartitionArgs.model_construct(
            **{name: getattr(self, name) for name in given},
            fields=frozenset({"parts"} if self.fields is None else self.fields),
            encoding=encoding,
        )


class PartsInfo(BaseModel):
    """The part of each vertex, from 0 to k - 1."""

    vertices: list[int] | list[str]
    part: list[int]


class PartitionCutInfo(BaseModel):
    """The edges between parts that weigh anything."""

    edges: list[int] | list[str]
    weight: list[Amount]


class PartitionProofInfo(BaseModel):
    """Cut and weights were counted anew from the edges."""

    valid: bool


class PartitionInfo(BaseModel):
    """The answer of partition."""

    graph: str
    version: int
    k: int
    weights: Literal["capacity", "one"]
    value: Amount
    """The weight of all edges between parts."""
    cut_edges: int
    """How many edges that is."""
    part_weight: list[int]
    n_vertices: list[int]
    """Of each part."""
    limit: int
    """What a part may weigh: (1 + epsilon) / k of all vertices, or what equal parts take if that is more."""
    balanced: bool
    """Whether all parts keep the limit."""
    mode: Literal["full", "incremental", "unchanged"]
    reason: str | None = None
    moved: int
    """Vertices that were there at the last answer, and have another part now; 0 where that was from nothing."""
    certificate: PartitionProofInfo
    timings_ms: dict[str, float] = {}
    parts: PartsInfo | None = None
    cut: PartitionCutInfo | None = None
