"""The body of parametric, and the shape of the answer."""

import re
from contextlib import suppress
from fractions import Fraction
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import BaseModel, Field, PlainValidator, WithJsonSchema, model_validator

from service.errors import ServiceError
from service.models.amounts import Amount
from service.models.columns import Ids, Seconds, check_amount, shown
from service.models.faults import ColumnFault
from service.models.flows import AboutInfo, TerminalsBody
from service.protocol import ParametricArgs

MAX_SEGMENTS: Final = 10_000
"""Segments of one answer."""

FACTOR_TEXT: Final = r"^([+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[0-9]{1,40}/[0-9]{1,40})$"
FRACTION: Final = re.compile(r"[0-9]{1,40}/[0-9]{1,40}")

EXAMPLES: dict[str, Any] = {
    "two edges, closed to doubled": {"value": {"edges": ["d", "e"], "from": 0, "to": 2}},
    "more and more supply": {"value": {"sources": ["s"], "supply": [5], "scale": "supply", "from": 1, "to": "7/2"}},
}


def check_factor(value: object) -> str:
    """A number that is not negative, or the text of a fraction, as the text of a fraction."""
    with suppress(ColumnFault, ZeroDivisionError):
        if isinstance(value, str) and FRACTION.fullmatch(value):
            return str(Fraction(value))
        literal = check_amount(value)
        if literal != "inf" and Fraction(literal) >= 0:
            return str(Fraction(literal))
    raise ColumnFault(f'{shown(value)} is no factor: that is a number, 0 or more, or a fraction such as "7/6"')


Factor: TypeAlias = Annotated[
    str,
    PlainValidator(check_factor),
    WithJsonSchema(
        {
            "title": "Factor",
            "description": 'Exact, 0 or more: a number, or the text of one or of a fraction, as in "7/6".',
            "anyOf": [
                {"type": "number", "minimum": 0},
                {"type": "string", "pattern": FACTOR_TEXT},
            ],
        }
    ),
]


class ParametricBody(TerminalsBody):
    """Terminals default to the graph's own. Either `edges` or `scale` says what the factor multiplies."""

    edges: Ids | None = Field(default=None, description="The edges whose capacities it multiplies, each named once.")
    scale: Literal["supply", "demand"] | None = Field(default=None, description="Or the caps of one side, all of them.")
    first: Factor = Field(default="0", alias="from")
    last: Factor = Field(alias="to")
    max_segments: int = Field(default=MAX_SEGMENTS, ge=1, le=MAX_SEGMENTS)
    min_version: int | None = Field(default=None, ge=1, le=2**63 - 1)
    time_limit_s: Seconds | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.edges is None) is (self.scale is None):
            raise ColumnFault("one of `edges` and `scale` says what the factor multiplies", field="edges")
        if self.scale is not None and getattr(self, self.scale) is None:
            raise ColumnFault(f"there is no cap to multiply: give `{self.scale}` with the vertices", field=self.scale)
        if Fraction(self.first) >= Fraction(self.last):
            raise ColumnFault("should be beyond `from`, where the curve begins", field="to")
        return self

    def parametric_args(self, max_rows: int) -> ParametricArgs:
        """What the worker gets. Raises too_large for more than `max_rows` edges."""
        if self.edges is not None and len(self.edges) > max_rows:
            detail = f"a question names at most {max_rows} edges (HEADRACE_MAX_PATCH_ROWS), not {len(self.edges)}"
            raise ServiceError("too_large", detail, field="/edges")
        named = {name: getattr(self, name) for name in ParametricArgs.model_fields if name != "encoding"}
        return ParametricArgs.model_construct(**named)


class SegmentsInfo(BaseModel):
    """Pieces of the curve from left to right: between `from` and `to` the value is `constant` + `rate` x factor, which
    is the capacity of one cut. All are exact; ends are fractions."""

    first: list[str] = Field(alias="from")
    last: list[str] = Field(alias="to")
    constant: list[Amount]
    rate: list[Amount]


class CurveCertificateInfo(BaseModel):
    """At both ends of each segment a flow was solved and proven that has the value of its line."""

    valid: bool
    flows: int
    """How many flows were proven."""


class ParametricInfo(AboutInfo):
    """The answer of parametric: the value of a maximum flow as a concave function of the factor."""

    value: Amount
    """At factor 1: the graph as it is."""
    segments: SegmentsInfo
    complete: bool
    """False: the last segment ends before `to`, as there are more than were asked for."""
    engine: str
    certificate: CurveCertificateInfo
    timings_ms: dict[str, float] = Field(default={})
