"""The body of a closure study, and the shape of the answer."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, Field, PlainValidator, WithJsonSchema

from service.errors import ServiceError
from service.models.amounts import Amount
from service.models.columns import Seconds, check_ids
from service.models.faults import ColumnFault
from service.models.flows import AboutInfo, CertificateInfo, TerminalsBody
from service.models.what_if import BaseInfo
from service.protocol import ClosureStudyArgs

MAX_TOP = 1_000_000
"""Candidates that an answer lists, unless it lists all."""

EXAMPLES: dict[str, Any] = {
    "the ten worst of all edges": {"value": {"candidates": "all"}},
    "every edge of the cut": {"value": {"sources": ["s"], "sinks": ["t"], "candidates": "cut", "top": None}},
    "some edges": {"value": {"candidates": ["a", "b", "e"], "top": 1}},
    "edges that are closed together": {"value": {"candidates": [["a", "b"], ["d"]]}},
    "the worst of all vertices": {"value": {"close": "vertices", "top": 1}},
    "some vertices": {"value": {"close": "vertices", "candidates": ["u", "v"]}},
}


def check_candidates(value: object) -> object:
    """``"cut"``, ``"all"``, ids, or lists of ids; all ids are of one kind. Raises `ColumnFault`."""
    if value in ("cut", "all"):
        return value
    if type(value) is not list:
        raise ColumnFault('should be "cut", "all", an array of ids, or an array of such arrays')
    if not any(type(each) is list for each in value):
        return check_ids(value)
    wrong = [row for row, each in enumerate(value) if type(each) is not list]
    if wrong:
        raise ColumnFault(f"row {wrong[0]} is no array and others are: write [[1], [2, 3]]", wrong)
    for row, each in enumerate(value):
        try:
            check_ids(each)
        except ColumnFault as fault:
            raise ColumnFault(f"row {row}: {fault.detail}", [row], code=fault.code) from None
    check_ids([each[0] for each in value if each])
    return value


Candidates: TypeAlias = Annotated[
    Any,
    PlainValidator(check_candidates),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": ["cut", "all"]},
                {"type": "array", "items": {"type": ["integer", "string"]}},
                {"type": "array", "items": {"type": "array", "items": {"type": ["integer", "string"]}}},
            ]
        }
    ),
]


class ClosureStudyBody(TerminalsBody):
    """A question as max-flow has it, and what is closed: each candidate by itself."""

    candidates: Candidates = Field(
        default="all", description='"cut", "all", edges, or lists of edges that are closed together.'
    )
    close: Literal["edges", "vertices"] = Field(
        default="edges", description="What the candidates are; a vertex is closed with all of its edges."
    )
    top: int | None = Field(default=10, ge=1, le=MAX_TOP, description="Candidates that cost most; null: all of them.")
    min_version: int | None = Field(default=None, ge=1, le=2**63 - 1)
    time_limit_s: Seconds | None = None

    def study_args(self, max_rows: int, max_patch_rows: int, *, lines: bool) -> ClosureStudyArgs:
        """What the worker gets. Raises too_large for more than `max_rows` candidates or `max_patch_rows` edges."""
        if isinstance(self.candidates, list):
            n_edges = sum(len(each) if isinstance(each, list) else 1 for each in self.candidates)
            if len(self.candidates) > max_rows:
                limit = f"a study names at most {max_rows} candidates (HEADRACE_MAX_QUESTION_ROWS)"
                detail = f'{limit}, not {len(self.candidates)}: ask for "all", or several times'
                raise ServiceError("too_large", detail, field="/candidates")
            if n_edges > max_patch_rows:
                detail = f"a study names at most {max_patch_rows} {self.close} (HEADRACE_MAX_PATCH_ROWS), not {n_edges}"
                raise ServiceError("too_large", detail, field="/candidates")
        return ClosureStudyArgs.model_construct(
            sources=self.sources,
            sinks=self.sinks,
            supply=self.supply,
            demand=self.demand,
            rounding=self.rounding,
            min_version=self.min_version,
            time_limit_s=self.time_limit_s,
            candidates=self.candidates,
            close=self.close,
            most=self.top,
            lines=lines,
        )


class ClosureInfo(BaseModel):
    """A candidate, and what is left of the flow without it. One that the flow of `base` does not use costs nothing, and
    has neither `mode` nor `certificate`."""

    row: int
    """Which candidate, from 0; among all edges, that of the edge."""
    edges: list[int] | list[str] | None = None
    vertices: list[int] | list[str] | None = None
    """In place of `edges`, where vertices are closed."""
    value: Amount
    loss: Amount
    """The value of `base` less this one."""
    mode: Literal["unchanged", "warm", "cold"] | None = None
    certificate: CertificateInfo | None = None


class ClosureStudyInfo(AboutInfo):
    """The candidates that cost most, the worst first, equal ones by row. All are about one version of the graph."""

    base: BaseInfo
    candidates: int
    solved: int
    skipped: int
    """Those that need not be solved: the flow of `base` says that they cost nothing, or too little to be listed."""
    skipped_at_most: Amount
    """The most that any of those can cost which are not known."""
    answers: list[ClosureInfo]
