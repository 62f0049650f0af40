"""The body of capacity-expansion, and the shape of the answer."""

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from service.errors import ServiceError
from service.models.amounts import Amount
from service.models.columns import (
    Amounts,
    AmountText,
    Ids,
    Seconds,
    refuse_infinite,
    refuse_negative,
    refuse_no_limit_or_negative,
)
from service.models.faults import ColumnFault
from service.models.flows import AboutInfo, TerminalsBody
from service.models.min_cost_flow import CostCertificateInfo
from service.protocol import CapacityExpansionArgs, Encoding

EXAMPLES: dict[str, Any] = {
    "two more, at these prices": {"value": {"raise_by": 2, "edges": ["a", "b", "d", "e"], "price": [1, 1, 5, 3]}},
    "no more than there is room for": {
        "value": {"raise_by": 1.5, "edges": ["d", "e"], "price": [2, 2.25], "max_add": [1, "inf"]}
    },
}


class CapacityExpansionBody(TerminalsBody):
    """Terminals default to the graph's own."""

    raise_by: AmountText = Field(description="How much more is to flow than can today.")
    edges: Ids = Field(description="The edges that may be widened, each named once.")
    price: Amounts = Field(description="What a unit more costs on each of them, 0 or more.")
    max_add: Amounts | None = Field(default=None, description="How much may be added to each; by default any amount.")
    min_version: int | None = Field(default=None, ge=1, le=2**63 - 1)
    time_limit_s: Seconds | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse_no_limit_or_negative(self.raise_by, "what is to flow more", "raise_by")
        for name, what in (("price", "a price"), ("max_add", "what may be added")):
            column = getattr(self, name)
            if column is None:
                continue
            if len(column) != len(self.edges):
                raise ColumnFault(
                    f"there is one for each of `edges`, not {len(column)} for {len(self.edges)}", field=name
                )
            refuse_negative(column, what, name)
        refuse_infinite(self.price, "a price", "price")
        return self

    def expansion_args(self, max_rows: int, encoding: Encoding) -> CapacityExpansionArgs:
        """What the worker gets. Raises too_large for more than `max_rows` edges."""
        if len(self.edges) > max_rows:
            detail = f"a question names at most {max_rows} edges (HEADRACE_MAX_PATCH_ROWS), not {len(self.edges)}"
            raise ServiceError("too_large", detail, field="/edges")
        named = {name: getattr(self, name) for name in CapacityExpansionArgs.model_fields if name != "encoding"}
        return CapacityExpansionArgs.model_construct(**named, encoding=encoding)


class CapacityExpansionInfo(AboutInfo):
    """The answer of capacity-expansion. Nothing of it is done: PATCH capacities with `add` does."""

    value: Amount
    """What can flow then."""
    maximum: Amount
    """What can flow today."""
    price: Amount
    """Of all that is added; nothing cheaper lets so much flow."""
    edges: list[int] | list[str]
    """What to widen; edges to which nothing is to be added are left out."""
    add: list[Amount]
    mode: Literal["warm", "cold"]
    engine: str
    reason: str | None = None
    certificate: CostCertificateInfo
    counters: dict[str, int] = Field(default={})
    timings_ms: dict[str, float] = Field(default={})
