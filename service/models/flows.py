"""The body of max-flow and min-cut, and the shape of the answer."""

from typing import Any, ClassVar, Final, Literal, Self

from pydantic import BaseModel, Field, model_validator

from gpu_engine.networks.rounding import Rounding
from service.errors import ServiceError
from service.models.amounts import Amount
from service.models.body import Body
from service.models.bottlenecks import BottleneckOptions, BottlenecksInfo
from service.models.columns import AmountColumn, Amounts, IdColumn, Ids, Seconds, refuse_negative
from service.models.faults import ColumnFault
from service.models.shown import refuse_unshown
from service.protocol import Encoding, MaxFlowArgs
from service.store.rounded import RoundedInfo

FlowField = Literal["value", "cut", "flow", "terminals", "paths", "bottlenecks"]

MAX_TERMINALS: Final = 1_000_000
"""Sources that one question may have, and sinks."""

MAX_PATHS: Final = 1_000_000
"""Paths that one answer may list. The memory for them is asked for first."""

EXAMPLES: dict[str, Any] = {
    "the graph's own terminals": {"value": {}},
    "one pair, with the cut": {"value": {"sources": [0], "sinks": [3], "fields": ["value", "cut"]}},
    "a cut by its edges alone": {"value": {"fields": ["cut"], "cut": {"sides": False}}},
    "the cut nearest the sinks": {"value": {"fields": ["cut"], "cut": {"near": "sinks"}}},
    "the ten largest paths": {"value": {"fields": ["paths"], "paths": {"top": 10}}},
    "what limits it, and what the first ten would give": {
        "value": {"fields": ["bottlenecks"], "bottlenecks": {"up_to": 10}}
    },
    "many, with caps": {"value": {"sources": ["A", "B"], "sinks": ["T"], "supply": [10, 2.5], "demand": ["inf"]}},
}


class CutOptions(Body):
    """Which cut is shown."""

    near: Literal["sources", "sinks"] = Field(
        default="sources", description="Of several minimum cuts the one nearest this end."
    )
    sides: bool = Field(default=True, description="False: without the vertices on either side.")


class FlowOptions(Body):
    """How flows are listed."""

    zeros: bool = Field(default=False, description="List edges without flow too.")
    acyclic: bool = Field(default=True, description="False: as it was found, with its cycles and detours.")


class PathOptions(Body):
    """Which paths are listed."""

    top: int = Field(default=100, ge=1, le=MAX_PATHS, description="So many at most, those that carry most first.")


class TerminalsBody(Body):
    """Terminals default to the graph's own."""

    least_terminals: ClassVar[int] = 1
    """On each side, if any are named."""

    sources: Ids | None = None
    sinks: Ids | None = None
    supply: Amounts | None = Field(default=None, description="A cap for each source.")
    demand: Amounts | None = Field(default=None, description="A cap for each sink.")
    rounding: Rounding = Field(default="error", description="What becomes of caps with more decimals than the graph's.")

    @model_validator(mode="after")
    def _check_caps(self) -> Self:
        check_caps(self.sources, self.supply, "sources", "supply", self.least_terminals)
        check_caps(self.sinks, self.demand, "sinks", "demand", self.least_terminals)
        return self


def check_caps(
    terminals: IdColumn | None, caps: AmountColumn | None, vertices: str, amounts: str, least: int = 1
) -> None:
    """Check one side of a question, whose members have these names. Raises `ColumnFault`."""
    if terminals is not None and not least <= len(terminals) <= MAX_TERMINALS:
        raise ColumnFault(f"has {least} to {MAX_TERMINALS} vertices, not {len(terminals)}", field=vertices)
    if caps is None:
        return
    if terminals is None or len(caps) != len(terminals):
        count = "which are missing" if terminals is None else f"not {len(caps)} for {len(terminals)}"
        raise ColumnFault(f"there is one cap for each of `{vertices}`, {count}", field=amounts)
    refuse_negative(caps, "a cap", amounts)


class MaxFlowBody(TerminalsBody):
    """Terminals default to the graph's own."""

    fields: list[FlowField] | None = Field(default=None, max_length=6)
    min_version: int | None = Field(default=None, ge=1, le=2**63 - 1)
    cut: CutOptions = CutOptions()
    flow: FlowOptions = FlowOptions()
    paths: PathOptions = PathOptions()
    bottlenecks: BottleneckOptions = BottleneckOptions()
    time_limit_s: Seconds | None = None

    @model_validator(mode="after")
    def _check_paths(self) -> Self:
        if "paths" in (self.fields or ()) and not self.flow.acyclic:
            raise ColumnFault("`paths` are those of an acyclic flow: leave `flow.acyclic` out", field="flow")
        return self

    def args(self, default_fields: frozenset[FlowField], encoding: Encoding = "json") -> MaxFlowArgs:
        """What the worker gets. Raises not_acceptable where a map is wanted of what it does not show, and invalid_body
        for an option of a field that is not asked for."""
        hidden = sorted(set(self.fields or ()) - {"value", "cut", "flow"})
        if encoding == "geojson" and hidden:
            detail = f"GeoJSON shows the flow and the cut: `{hidden[0]}` is answered in other forms"
            raise ServiceError("not_acceptable", detail, header="Accept")
        if encoding == "geojson" and self.fields is not None and not {"cut", "flow"} <= set(self.fields):
            detail = "GeoJSON shows the flow and the cut in any case: leave `fields` out, or name both"
            raise ServiceError("invalid_body", detail, field="/fields")
        if encoding == "geojson" and "sides" in self.cut.model_fields_set:
            raise ServiceError("invalid_body", "GeoJSON never shows the sides of the cut", field="/cut/sides")
        fields = default_fields if self.fields is None else frozenset(self.fields)
        refuse_unshown(self, ("flow", "cut") if encoding == "geojson" else fields)
        return MaxFlowArgs.model_construct(
            sources=self.sources,
            sinks=self.sinks,
            supply=self.supply,
            demand=self.demand,
            rounding=self.rounding,
            fields=fields,
            zeros=self.flow.zeros,
            acyclic=self.flow.acyclic,
            top=self.paths.top,
            min_version=self.min_version,
            time_limit_s=self.time_limit_s,
            encoding=encoding,
            up_to=self.bottlenecks.up_to,
            near=self.cut.near,
            sides=self.cut.sides,
        )


class CertificateInfo(BaseModel):
    """Checked independently of the solver on every answer."""

    valid: bool
    complete: bool
    """False: what has changed since the last complete check of these terminals was looked at, and nothing else."""
    value: Amount
    flow_across_cut: Amount


class CutInfo(BaseModel):
    """A minimum cut: `pays`, `vertex_pays`, `source_pays` and `sink_pays` add up to `value`."""

    value: Amount
    edges: list[int] | list[str]
    pays: list[Amount]
    """The capacity of each of `edges`."""
    sources: list[int] | list[str]
    """Capped sources beyond the cut, which pays their whole supply."""
    source_pays: list[Amount]
    sinks: list[int] | list[str]
    """Capped sinks before the cut, which pays their whole demand."""
    sink_pays: list[Amount]
    vertices: list[int] | list[str] | None = None
    """Vertices whose capacity the cut pays; they are on its source side. If vertices of the graph have capacities."""
    vertex_pays: list[Amount] | None = None
    source_side: list[int] | list[str] | None = None
    """This and the other side are there unless `cut.sides` is false."""
    sink_side: list[int] | list[str] | None = None
    unique: bool | None = None


class FlowInfo(BaseModel):
    edges: list[int] | list[str]
    amount: list[Amount]
    """Negative: an undirected edge used from head to tail."""
    acyclic: bool


class PathsInfo(BaseModel):
    """Paths that the flow consists of, the largest amount first, each between one source and one sink."""

    source: list[int] | list[str]
    sink: list[int] | list[str]
    amount: list[Amount]
    offsets: list[int]
    """Path i has the edges from `offsets[i]` up to `offsets[i + 1]`."""
    edges: list[int] | list[str]
    of: int
    """How many paths the whole flow consists of."""
    rest: Amount
    """What those that are not listed carry."""


class TerminalsInfo(BaseModel):
    """What the flow takes from sources and brings to sinks; those without a cap are left out where that is nothing."""

    sources: list[int] | list[str]
    supplied: list[Amount]
    sinks: list[int] | list[str]
    delivered: list[Amount]


class AboutInfo(BaseModel):
    """What each answer says that keeps no lower bounds."""

    graph: str
    version: int
    lower: Literal["ignored"] | None = None
    """Edges have lower bounds, and the answer is that of the graph without them. Else the member is not there."""


class SolvedInfo(AboutInfo):
    """What each answer about a flow says."""

    mode: Literal["unchanged", "warm", "cold"]
    engine: str
    reason: str | None = None
    certificate: CertificateInfo
    counters: dict[str, int] = {}
    timings_ms: dict[str, float] = {}


class MaxFlowInfo(SolvedInfo):
    """The answer of max-flow and min-cut."""

    value: Amount
    cut: CutInfo | None = None
    flow: FlowInfo | None = None
    terminals: TerminalsInfo | None = None
    """Comes with `flow` and `paths` too."""
    paths: PathsInfo | None = None
    bottlenecks: BottlenecksInfo | None = None


class FlowStateChange(BaseModel):
    """One resident flow state, re-solved after a PATCH; the values of a matching are its size."""

    kind: Literal["flow", "matching"] = "flow"
    sources: list[int] | list[str]
    """The first 100 of them. None are listed for a matching, whose terminals are all vertices with edges."""
    n_sources: int
    sinks: list[int] | list[str]
    """The first 100 of them, as for `sources`."""
    n_sinks: int
    old_value: Amount | None
    value: Amount | None
    """None while `mode` is pending: the re-solve was cancelled, and the next question does it. None as well if `mode`
    is unbounded: unlimited edges lead from a source to a sink now, the state is not kept, and its question is refused.
    Or if it is dropped: a matching, of a graph that something was inserted into, which the next question solves anew.
    """
    mode: Literal["unchanged", "warm", "cold", "pending", "unbounded", "dropped"]
    certificate: CertificateInfo | None
    timings_ms: dict[str, float] = {}


class PatchInfo(BaseModel):
    """The answer of PATCH capacities."""

    version: int
    generation: str
    """Of the load that the version counts from."""
    dry_run: bool = False
    """True: this is what the PATCH would have done. The graph is as it was, at this version."""
    applied: int
    skipped: int
    unchanged: int
    rounded: RoundedInfo | None = None
    """Left out where no amount was rounded."""
    flow_states: list[FlowStateChange] = []
    lower: Literal["ignored"] | None = None
    """Edges have lower bounds, which the flows do not keep. Else, and where no flow is told of, it is not there."""
    timings_ms: dict[str, float] = {}
