"""The body of what-if, and the shape of the answer."""

from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from service.errors import ServiceError
from service.models.amounts import Amount
from service.models.body import Body
from service.models.bottlenecks import BottlenecksInfo
from service.models.capacities import MAX_OPERATIONS, OperationBody
from service.models.columns import IN_QUOTES, MAX_LABEL_CHARS, Amounts, Ids, refuse_negative
from service.models.faults import ColumnFault
from service.models.flows import (
    AboutInfo,
    CertificateInfo,
    CutInfo,
    FlowInfo,
    MaxFlowBody,
    PathsInfo,
    TerminalsInfo,
    check_caps,
)
from service.models.vertices import VertexOperation
from service.protocol import Scenario, WhatIfArgs

OPERATIONS_PER_ROW: Final = 2
"""Scenarios may have so many times as many operations, in all, as there may be scenarios: the worker makes objects of
each before the first one is tried, and nobody else has its interpreter meanwhile."""

EXAMPLES: dict[str, Any] = {
    "an edge closed": {"value": {"scenarios": [{"id": "no e", "batch": [{"edges": ["e"], "op": "close"}]}]}},
    "less supply": {
        "value": {"sources": ["s"], "sinks": ["t"], "scenarios": [{"id": "less", "supply": [5]}, {"supply": [4]}]}
    },
    "a junction closed, and an edge with it": {
        "value": {
            "scenarios": [
                {"vertex_batch": [{"vertices": ["v"], "set": [0]}], "batch": [{"edges": ["e"], "op": "close"}]}
            ]
        }
    },
    "changes of many edges, with the cut": {
        "value": {
            "scenarios": [{"batch": [{"edges": ["a", "c"], "scale": [0.5, 2]}, {"edges": ["b"], "set": ["inf"]}]}],
            "fields": ["cut"],
            "rounding": "down",
        }
    },
}


class ScenarioBody(Body):
    """What is otherwise than it is: capacities of edges by a `batch` and those of vertices by a `vertex_batch`, as in
    PATCH, terminals, or all of these."""

    id: Annotated[int | str | None, IN_QUOTES] = Field(
        default=None, description="Your name for it, which its answer has."
    )
    batch: list[OperationBody] | None = Field(default=None, max_length=MAX_OPERATIONS)
    vertex_batch: list[VertexOperation] | None = Field(
        default=None, max_length=MAX_OPERATIONS, description="Vertices without a capacity are unlimited before."
    )
    sources: Ids | None = Field(default=None, description="In place of the question's; uncapped without `supply`.")
    sinks: Ids | None = Field(default=None, description="In place of the question's; uncapped without `demand`.")
    supply: Amounts | None = Field(default=None, description="A cap for each source.")
    demand: Amounts | None = Field(default=None, description="A cap for each sink.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if isinstance(self.id, str) and len(self.id) > MAX_LABEL_CHARS:
            raise ColumnFault(f"has at most {MAX_LABEL_CHARS} characters", field="id")
        for vertices, caps in (("sources", "supply"), ("sinks", "demand")):
            terminals, amounts = getattr(self, vertices), getattr(self, caps)
            if terminals is not None:
                check_caps(terminals, amounts, vertices, caps)
            elif amounts is not None:  # whether there are as many as the question has terminals is seen later
                refuse_negative(amounts, "a cap", caps)
        return self

    @property
    def n_rows(self) -> int:
        return sum(operation.n_rows for operation in (*(self.batch or ()), *(self.vertex_batch or ())))

    def scenario(self) -> Scenario:
        """The scenario as a worker gets it. Its columns have just been validated, and are not validated again."""
        return Scenario.model_construct(
            id=self.id,
            batch=None if self.batch is None else [operation.operation() for operation in self.batch],
            vertex_batch=None if self.vertex_batch is None else [each.operation() for each in self.vertex_batch],
            sources=self.sources,
            sinks=self.sinks,
            supply=self.supply,
            demand=self.demand,
        )


class WhatIfBody(MaxFlowBody):
    """A question as max-flow has it, and scenarios in each of which it is asked again."""

    question: Literal["max-flow"] = "max-flow"
    scenarios: list[ScenarioBody]
    on_missing: Literal["error", "skip"] = "error"

    def what_if_args(self, max_patch_rows: int, *, lines: bool) -> WhatIfArgs:
        """What the worker gets. Raises too_large if a scenario changes more than `max_patch_rows` edges or vertices."""
        most = max((scenario.n_rows for scenario in self.scenarios), default=0)
        if most > max_patch_rows:
            detail = f"a scenario has at most {max_patch_rows} rows (HEADRACE_MAX_PATCH_ROWS), not {most}"
            raise ServiceError("too_large", detail)
        if self.bottlenecks.up_to:
            detail = (
                "bottlenecks of scenarios are told without `up_to`: make each change that is of interest a scenario"
            )
            raise ServiceError("invalid_body", detail, field="/bottlenecks/up_to")
        asked = self.args(frozenset({"value"}))
        return WhatIfArgs.model_construct(
            **{name: getattr(asked, name) for name in type(asked).model_fields},
            scenarios=[scenario.scenario() for scenario in self.scenarios],
            on_missing=self.on_missing,
            lines=lines,
        )


def refuse_many(max_rows: int, members: dict[str, Any]) -> None:
    """Raises too_large for a body of more than `max_rows` scenarios, or of `OPERATIONS_PER_ROW` times as many
    operations in them, none of which is looked at."""
    scenarios = members.get("scenarios")
    if not isinstance(scenarios, list):
        return
    if len(scenarios) > max_rows:
        limit = f"a question has at most {max_rows} scenarios (HEADRACE_MAX_QUESTION_ROWS)"
        raise ServiceError("too_large", f"{limit}, not {len(scenarios)}: ask several", field="/scenarios")
    batches = [each.get(name) for each in scenarios if isinstance(each, dict) for name in ("batch", "vertex_batch")]
    n_operations, most = sum(len(batch) for batch in batches if isinstance(batch, list)), OPERATIONS_PER_ROW * max_rows
    if n_operations > most:
        limit = f"the scenarios of a question have at most {most} operations (twice HEADRACE_MAX_QUESTION_ROWS)"
        detail = f"{limit}, not {n_operations}: ask several, or name all edges that are set in one operation"
        raise ServiceError("too_large", detail, field="/scenarios")


class RowProblem(BaseModel):
    """Why a row has no answer; beside these the members of a problem that say what is at fault."""

    model_config = ConfigDict(extra="allow")

    code: str
    status: int
    """What a question that is refused for this alone is answered with."""
    detail: str


class BaseInfo(BaseModel):
    """The answer without any scenario."""

    value: Amount
    mode: Literal["unchanged", "warm", "cold"]
    engine: str
    certificate: CertificateInfo


class RowInfo(BaseModel):
    """The answer in one scenario, or why there is none. `change` is its value less that of `base`."""

    row: int
    id: int | str | None = None
    value: Amount | None = None
    change: Amount | None = None
    mode: Literal["unchanged", "warm", "cold"] | None = None
    certificate: CertificateInfo | None = None
    cut: CutInfo | None = None
    flow: FlowInfo | None = None
    terminals: TerminalsInfo | None = None
    paths: PathsInfo | None = None
    bottlenecks: BottlenecksInfo | None = None
    error: RowProblem | None = None


class WhatIfInfo(AboutInfo):
    """The answer of what-if. All rows are about one version of the graph, which none of them has changed."""

    base: BaseInfo
    rows: int
    answers: list[RowInfo]
