"""The bodies of pairs, gomory-hu-tree and global-min-cut, and the shapes of their answers."""

from typing import Any, Literal, Self

from pydantic import BaseModel, Field, model_validator

from service.errors import ServiceError
from service.models.amounts import Amount
from service.models.body import Body
from service.models.columns import IdColumn, Ids, Seconds
from service.models.faults import ColumnFault
from service.models.flows import (
    AboutInfo,
    CertificateInfo,
    CutInfo,
    CutOptions,
    FlowField,
    FlowInfo,
    FlowOptions,
    PathOptions,
    PathsInfo,
    TerminalsInfo,
)
from service.models.shown import refuse_unshown
from service.models.what_if import RowProblem
from service.protocol import CutTreeArgs, Encoding, GlobalCutArgs, PairsArgs

PAIRS_EXAMPLES: dict[str, Any] = {
    "pair by pair": {"value": {"source": ["s", "s"], "sink": ["u", "v"]}},
    "each source to each sink": {"value": {"sources": [0, 1], "sinks": [5, 6, 7]}},
    "all pairs of some vertices, with their cuts": {"value": {"among": [0, 5, 9], "fields": ["cut"]}},
}
TREE_EXAMPLES: dict[str, Any] = {
    "all vertices": {"value": {}},
    "a tree of some": {"value": {"terminals": ["x", "z"], "fields": ["tree", "groups"]}},
}
GLOBAL_EXAMPLES: dict[str, Any] = {
    "the cheapest way to divide the graph": {"value": {}},
    "its value alone": {"value": {"fields": ["value"]}},
}


class PairsBody(Body):
    """Pairs row by row, each of some sources to each of some sinks, or all pairs among some vertices."""

    source: Ids | None = Field(default=None, description="The source of each row.")
    sink: Ids | None = Field(default=None, description="The sink of each row.")
    sources: Ids | None = Field(default=None, description="Rows are each of these to each of `sinks`.")
    sinks: Ids | None = None
    among: Ids | None = Field(default=None, description="All pairs; both ways if some edge is directed.")
    fields: list[FlowField] | None = Field(default=None, max_length=6)
    cut: CutOptions = CutOptions()
    flow: FlowOptions = FlowOptions()
    paths: PathOptions = PathOptions()
    min_version: int | None = Field(default=None, ge=1, le=2**63 - 1)
    time_limit_s: Seconds | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        forms = (("source", "sink"), ("sources", "sinks"), ("among",))
        used = [form for form in forms if any(getattr(self, name) is not None for name in form)]
        if len(used) != 1:
            raise ColumnFault(
                "name pairs by `source` and `sink`, by `sources` and `sinks`, or by `among`", field="source"
            )
        for name in used[0]:
            if getattr(self, name) is None:
                raise ColumnFault(f"goes with `{' and '.join(n for n in used[0] if n != name)}`", field=name)
        if self.source is not None and self.sink is not None and len(self.source) != len(self.sink):
            raise ColumnFault(f"there is one sink a row, not {len(self.sink)} for {len(self.source)}", field="sink")
        if "paths" in (self.fields or ()) and not self.flow.acyclic:
            raise ColumnFault("`paths` are those of an acyclic flow: leave `flow.acyclic` out", field="flow")
        return self

    @property
    def n_rows(self) -> int:
        """How many there are at least."""
        if self.source is not None:
            return len(self.source)
        if self.among is not None:
            return len(self.among) * (len(self.among) - 1) // 2
        return _length(self.sources) * _length(self.sinks)

    def pairs_args(self, max_rows: int, *, lines: bool) -> PairsArgs:
        """What the worker gets. Raises too_large for more than `max_rows` pairs."""
        if self.n_rows > max_rows:
            limit = f"a question has at most {max_rows} pairs (HEADRACE_MAX_QUESTION_ROWS)"
            raise ServiceError("too_large", f"{limit}, not {self.n_rows}: ask several")
        fields = frozenset({"value"} if self.fields is None else self.fields)
        refuse_unshown(self, fields)
        return PairsArgs.model_construct(
            source=self.source,
            sink=self.sink,
            sources=self.sources,
            sinks=self.sinks,
            among=self.among,
            fields=fields,
            zeros=self.flow.zeros,
            acyclic=self.flow.acyclic,
            top=self.paths.top,
            near=self.cut.near,
            sides=self.cut.sides,
            most=max_rows,
            min_version=self.min_version,
            time_limit_s=self.time_limit_s,
            lines=lines,
        )


def _length(column: IdColumn | None) -> int:
    return 0 if column is None else len(column)


class CutTreeBody(Body):
    """A question for the Gomory-Hu tree of an undirected graph."""

    terminals: Ids | None = Field(default=None, description="The vertices of the tree; all by default.")
    fields: list[Literal["tree", "groups"]] | None = Field(default=None, max_length=2)
    min_version: int | None = Field(default=None, ge=1, le=2**63 - 1)
    time_limit_s: Seconds | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.terminals is not None and not len(self.terminals):
            raise ColumnFault("has one vertex at least: leave it out for all", field="terminals")
        return self

    def args(self, max_rows: int, encoding: Encoding = "json") -> CutTreeArgs:
        """What the worker gets. Raises too_large for more than `max_rows` terminals."""
        if _length(self.terminals) > max_rows:
            limit = f"a tree has at most {max_rows} terminals (HEADRACE_MAX_QUESTION_ROWS)"
            raise ServiceError("too_large", f"{limit}, not {_length(self.terminals)}", field="/terminals")
        return CutTreeArgs.model_construct(
            terminals=self.terminals,
            fields=frozenset({"tree"} if self.fields is None else self.fields),
            most=max_rows,
            min_version=self.min_version,
            time_limit_s=self.time_limit_s,
            encoding=encoding,
        )


class GlobalCutBody(Body):
    """A question for the least cut of all."""

    fields: list[Literal["value", "cut"]] | None = Field(default=None, max_length=2)
    min_version: int | None = Field(default=None, ge=1, le=2**63 - 1)
    time_limit_s: Seconds | None = None

    def args(self, encoding: Encoding = "json") -> GlobalCutArgs:
        return GlobalCutArgs.model_construct(
            fields=frozenset({"value", "cut"} if self.fields is None else self.fields),
            min_version=self.min_version,
            time_limit_s=self.time_limit_s,
            encoding=encoding,
        )


class PairInfo(BaseModel):
    """The answer for one pair, or why there is none."""

    row: int
    source: int | str
    sink: int | str
    value: Amount | None = None
    certificate: CertificateInfo | None = None
    """With fields beside `value`. Without, each value has been proven as well, or the row is an error."""
    cut: CutInfo | None = None
    flow: FlowInfo | None = None
    terminals: TerminalsInfo | None = None
    paths: PathsInfo | None = None
    error: RowProblem | None = None


class PairsInfo(AboutInfo):
    """The answer of pairs. All rows are about one version of the graph."""

    rows: int
    answers: list[PairInfo]


class RowsProof(BaseModel):
    valid: bool
    rows: int
    """So many rows are proven, which is all of them."""


class TreeInfo(BaseModel):
    """A row removed splits the tree into the two sides of a minimum cut of its ends."""

    tail: list[int] | list[str]
    head: list[int] | list[str]
    value: list[Amount]
    """The minimum cut of the two, "inf" if edges without limit join them."""


class GroupsInfo(BaseModel):
    """Which terminal each vertex that is none goes with, on whichever side of a cut that lies."""

    vertices: list[int] | list[str]
    terminal: list[int] | list[str]


class CutTreeInfo(BaseModel):
    """The answer of gomory-hu-tree."""

    graph: str
    version: int
    certificate: RowsProof
    timings_ms: dict[str, float]
    tree: TreeInfo | None = None
    groups: GroupsInfo | None = None


class GlobalSides(BaseModel):
    """A cut of the least value. In an undirected graph `source_side` is the smaller side."""

    value: Amount
    edges: list[int] | list[str]
    pays: list[Amount]
    """The capacity of each of `edges`."""
    source_side: list[int] | list[str]
    sink_side: list[int] | list[str]


class GlobalCutInfo(AboutInfo):
    """The answer of global-min-cut."""

    certificate: RowsProof
    timings_ms: dict[str, float]
    value: Amount
    reason: str | None = None
    """Why it is 0; else the member is not there."""
    cut: GlobalSides | None = None
