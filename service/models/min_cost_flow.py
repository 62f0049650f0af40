"""The body of min-cost-flow, and the shape of the answer."""

from typing import Any, Literal

from pydantic import BaseModel, Field, field_validator

from service.models.amounts import Amount
from service.models.body import Body
from service.models.columns import AmountText, Seconds, refuse_no_limit_or_negative
from service.models.flows import AboutInfo, PathOptions, PathsInfo, TerminalsBody, TerminalsInfo
from service.models.shown import refuse_unshown
from service.protocol import Encoding, MinCostFlowArgs

CostField = Literal["value", "cost", "flow", "terminals", "dual", "paths"]

EXAMPLES: dict[str, Any] = {
    "as much as can flow": {"value": {}},
    "a value, edge by edge": {"value": {"sources": ["s"], "sinks": ["t"], "value": 6, "fields": ["flow"]}},
    "the ten largest paths": {"value": {"fields": ["paths"], "paths": {"top": 10}}},
    "though edges have lower bounds": {"value": {"lower": "ignore"}},
    "with the potentials that prove it": {"value": {"fields": ["dual"], "time_limit_s": 60}},
}


class CostFlowOptions(Body):
    """How flows are listed."""

    zeros: bool = Field(default=False, description="List edges without flow too.")


class MinCostFlowBody(TerminalsBody):
    """Terminals default to the graph's own."""

    value: AmountText | None = Field(default=None, description="What is to flow; by default as much as can.")
    lower: Literal["ignore"] | None = Field(
        default=None,
        description="`ignore`: the flow need not keep lower bounds; else a graph that has some is refused.",
    )
    fields: list[CostField] | None = Field(default=None, max_length=6)
    min_version: int | None = Field(default=None, ge=1, le=2**63 - 1)
    flow: CostFlowOptions = CostFlowOptions()
    paths: PathOptions = PathOptions()
    time_limit_s: Seconds | None = None

    @field_validator("value")
    @classmethod
    def _check_value(cls, value: str | None) -> str | None:
        if value is not None:
            refuse_no_limit_or_negative(value, "a value")
        return value

    def args(self, encoding: Encoding = "json") -> MinCostFlowArgs:
        """What the worker gets. Raises invalid_body for an option of a field that is not asked for."""
        refuse_unshown(self, self.fields or ())
        return MinCostFlowArgs.model_construct(
            sources=self.sources,
            sinks=self.sinks,
            supply=self.supply,
            demand=self.demand,
            value=self.value,
            rounding=self.rounding,
            lower=self.lower,
            fields=frozenset(self.fields or ("value", "cost")),
            zeros=self.flow.zeros,
            top=self.paths.top,
            min_version=self.min_version,
            time_limit_s=self.time_limit_s,
            encoding=encoding,
        )


class CostCertificateInfo(BaseModel):
    """Checked independently of the solver on every answer."""

    valid: bool
    complete: bool
    value: Amount
    flow_across_cut: Amount | None
    """The capacity of a minimum cut, which proves `maximum`; None where the flow has no bound."""
    cost: Amount
    dual_bound: Amount
    """What the potentials prove that each flow of the value costs at least."""


class CostFlowInfo(BaseModel):
    edges: list[int] | list[str]
    amount: list[Amount]
    """Negative: an undirected edge used from head to tail."""


class DualInfo(BaseModel):
    """Potentials: an edge that could carry more costs at least what the potential rises along it, and one that carries
    flow at most that."""

    vertices: list[int] | list[str]
    potential: list[Amount]
    beyond: Amount
    """The potential beyond the sinks; before the sources it is 0."""


class MinCostFlowInfo(AboutInfo):
    """The answer of min-cost-flow."""

    value: Amount
    maximum: Amount | None
    """The most that can flow; None where that has no bound."""
    cost: Amount
    mode: Literal["cold"]
    engine: str
    reason: str | None = None
    certificate: CostCertificateInfo
    counters: dict[str, int] = Field(default={})
    timings_ms: dict[str, float] = Field(default={})
    flow: CostFlowInfo | None = None
    terminals: TerminalsInfo | None = None
    """Comes with `flow` and `paths` too."""
    dual: DualInfo | None = None
    paths: PathsInfo | None = None
    cycles: CostFlowInfo | None = None
    """Comes with `paths`: what goes round, as it costs less than nothing, or nothing. With all paths it is the flow."""
