"""The body of circulation, and the shape of the answer."""

from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, Field, model_validator

from service.errors import ServiceError
from service.models.amounts import Amount
from service.models.columns import Amounts, Ids, Seconds, refuse_infinite, refuse_negative
from service.models.faults import ColumnFault
from service.models.flows import TerminalsBody, TerminalsInfo
from service.models.min_cost_flow import CostFlowInfo, CostFlowOptions
from service.models.shown import refuse_unshown
from service.protocol import CirculationArgs, Encoding

EXAMPLES: dict[str, Any] = {
    "at least so much arrives": {"value": {"sources": ["s"], "sinks": ["t"], "min_demand": [7]}},
    "edges that carry at least so much": {"value": {"edges": ["a", "c"], "lower": [2, 1.5], "fields": ["flow"]}},
    "round and round, without terminals": {"value": {"sources": [], "sinks": [], "edges": [0], "lower": [1]}},
}


class CirculationBody(TerminalsBody):
    """Terminals default to the graph's own, if it has any. An empty list says that there are none."""

    least_terminals: ClassVar[int] = 0

    min_supply: Amounts | None = Field(default=None, description="What each source supplies at least.")
    min_demand: Amounts | None = Field(default=None, description="What each sink takes at least.")
    edges: Ids | None = Field(
        default=None,
        description="The edges that have a lower bound, each named once; without it, the graph's own lower bounds.",
    )
    lower: Amounts | None = Field(default=None, description="What each of `edges` carries at least.")
    fields: list[Literal["flow"]] | None = Field(default=None, max_length=1)
    min_version: int | None = Field(default=None, ge=1, le=2**63 - 1)
    flow: CostFlowOptions = CostFlowOptions()
    time_limit_s: Seconds | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        for of, name in (("sources", "min_supply"), ("sinks", "min_demand"), ("edges", "lower")):
            column, least = getattr(self, of), getattr(self, name)
            if least is None:
                continue
            if column is None or len(least) != len(column):
                count = "which are missing" if column is None else f"not {len(least)} for {len(column)}"
                raise ColumnFault(f"there is one for each of `{of}`, {count}", field=name)
            refuse_negative(least, "what must flow", name)
            refuse_infinite(least, "what must flow", name)
        if self.edges is not None and self.lower is None:
            raise ColumnFault("`edges` are those that have a lower bound: say it in `lower`", field="lower")
        return self

    def circulation_args(self, max_rows: int, encoding: Encoding) -> CirculationArgs:
        """What the worker gets. Raises too_large for more than `max_rows` edges."""
        if self.edges is not None and len(self.edges) > max_rows:
            detail = f"a question names at most {max_rows} edges (HEADRACE_MAX_PATCH_ROWS), not {len(self.edges)}"
            raise ServiceError("too_large", detail, field="/edges")
        refuse_unshown(self, self.fields or ())
        given = set(CirculationArgs.model_fields) - {"encoding", "fields", "zeros"}
        return CirculationArgs.model_construct(
            **{name: getattr(self, name) for name in given},
            fields=frozenset(self.fields or ()),
            zeros=self.flow.zeros,
            encoding=encoding,
        )


class CirculationCertificateInfo(BaseModel):
    """Of the flow, every bound of which was checked, or of the proof, which was added up anew."""

    valid: bool
    complete: bool


class BarrierInfo(BaseModel):
    """Why there is no such flow: more must enter the vertices than can, or leave them; or without vertices, some edges
    must carry more than they can. Of each two members that begin alike, the others are left out."""

    vertices: list[int] | list[str]
    must_enter: Amount | None = None
    """The lower bounds of edges that leave, and what sinks among the vertices take at least."""
    can_enter: Amount | None = None
    """The capacities of edges that enter, and what sources among the vertices supply at most."""
    must_leave: Amount | None = None
    """The lower bounds of edges that enter, and what sources among the vertices supply at least."""
    can_leave: Amount | None = None
    """The capacities of edges that leave, and what sinks among the vertices take at most."""
    must_carry: Amount | None = None
    can_carry: Amount | None = None
    edges: list[int] | list[str]
    """Those whose capacities are part of what can."""
    capacity: list[Amount]
    bound_edges: list[int] | list[str]
    """Those whose lower bounds are part of what must."""
    lower: list[Amount]


class CirculationInfo(BaseModel):
    """The answer of circulation, whether there is one or not."""

    graph: str
    version: int
    feasible: bool
    mode: Literal["cold"]
    engine: str
    reason: str | None = None
    certificate: CirculationCertificateInfo
    counters: dict[str, int] = {}
    timings_ms: dict[str, float] = {}
    proof: BarrierInfo | None = None
    """Comes unless there is a flow."""
    flow: CostFlowInfo | None = None
    terminals: TerminalsInfo | None = None
    """Comes with `flow`."""
