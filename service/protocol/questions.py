"""The arguments of commands that ask, and change nothing."""

from typing import Annotated, Literal

from service.protocol.message import AnswerArgs, InOrder, Message, Rounding, Wanted
from service.protocol.updates import Operation


class QuestionArgs(AnswerArgs):
    """Of a question whose answer has columns."""


class MaxFlowArgs(QuestionArgs):
    sources: list[int] | list[str] | None = None
    sinks: list[int] | list[str] | None = None
    supply: list[str] | None = None
    demand: list[str] | None = None
    rounding: Rounding = "error"
    """What becomes of caps that have more decimals than the graph keeps."""
    fields: Annotated[frozenset[Literal["value", "cut", "flow", "terminals", "paths", "bottlenecks"]], InOrder] = (
        frozenset({"value"})
    )
    zeros: bool = False
    acyclic: bool = True
    top: int = 100
    """Paths that are listed at most."""
    min_version: int | None = None
    time_limit_s: float | None = None
    up_to: int = 0
    """Bottlenecks of which is asked at most what they would gain without a limit."""
    near: Literal["sources", "sinks"] = "sources"
    """Which of several minimum cuts is the answer: the one nearest this end."""
    sides: bool = True
    """Whether a cut is answered with the vertices on either side."""

    def to_json(self) -> bytes:
        """Without what is not asked for, so that workers of the release before can read it."""
        return self.model_dump_json(exclude=self._usual()).encode()

    def _usual(self) -> set[str]:
        later = ("encoding", "json"), ("up_to", 0), ("near", "sources"), ("sides", True), ("close", "edges")
        return {name for name, usual in later if getattr(self, name, None) == usual}


class MatchingArgs(QuestionArgs):
    left: list[int] | list[str] | None = None
    fields: Annotated[frozenset[Literal["size", "matching", "cover"]], InOrder] = frozenset(
        {"size", "matching", "cover"}
    )
    min_version: int | None = None
    time_limit_s: float | None = None


class MinCostFlowArgs(QuestionArgs):
    sources: list[int] | list[str] | None = None
    sinks: list[int] | list[str] | None = None
    supply: list[str] | None = None
    demand: list[str] | None = None
    value: str | None = None
    """Decimal literal; None: as much as can flow."""
    rounding: Rounding = "error"
    """What becomes of caps and of a value with more decimals than the graph keeps."""
    lower: Literal["ignore"] | None = None
    """What becomes of lower bounds of the graph; None: it has none, or is refused."""
    fields: Annotated[frozenset[Literal["value", "cost", "flow", "terminals", "dual", "paths"]], InOrder] = frozenset(
        {"value"}
    )
    zeros: bool = False
    top: int = 100
    """Paths that are listed at most."""
    min_version: int | None = None
    time_limit_s: float | None = None

    def unsaid(self) -> set[str]:
        return super().unsaid() | ({"lower"} if self.lower is None else set())


class Scenario(Message):
    """What is otherwise than it is. Members that are None are as the question has them."""

    id: int | str | None = None
    """The caller's name for it."""
    batch: list[Operation] | None = None
    vertex_batch: list[Operation] | None = None
    """Operations on vertices, as in PATCH_VERTICES."""
    sources: list[int] | list[str] | None = None
    sinks: list[int] | list[str] | None = None
    supply: list[str] | None = None
    demand: list[str] | None = None


class WhatIfArgs(MaxFlowArgs):
    """A maximum flow, and what it would be in each of some scenarios."""

    scenarios: list[Scenario]
    on_missing: Literal["error", "skip"] = "error"
    lines: bool = False
    """Answer as `LINES_TYPE`."""

    def to_json(self) -> bytes:
        """Without members that are None either, of which a hundred thousand scenarios have more than of others."""
        return self.model_dump_json(exclude=self._usual(), exclude_none=True).encode()


class ClosureStudyArgs(MaxFlowArgs):
    """A maximum flow, and what it would be with each of some candidates closed."""

    candidates: Literal["all", "cut"] | list[int] | list[str] | list[list[int] | list[str]] = "all"
    """Edges, or lists of edges that are closed together; or vertices."""
    close: Literal["edges", "vertices"] = "edges"
    """What the candidates are; a vertex is closed with all of its edges."""
    most: int | None = 10
    """How many candidates are answered, those that cost most; None: all."""
    lines: bool = False
    """Answer as `LINES_TYPE`."""


class PairsArgs(MaxFlowArgs):
    """Maximum flows of many pairs: `source` and `sink` row by row, each of `sources` to each of `sinks`, or `among`."""

    source: list[int] | list[str] | None = None
    sink: list[int] | list[str] | None = None
    among: list[int] | list[str] | None = None
    most: int
    """Rows that the answer has at most."""
    lines: bool = False
    """Answer as `LINES_TYPE`."""


class CutTreeArgs(QuestionArgs):
    terminals: list[int] | list[str] | None = None
    """None: all vertices."""
    fields: Annotated[frozenset[Literal["tree", "groups"]], InOrder] = frozenset({"tree"})
    most: int
    """Terminals that the tree has at most."""
    min_version: int | None = None
    time_limit_s: float | None = None


class GlobalCutArgs(QuestionArgs):
    fields: Annotated[frozenset[Literal["value", "cut"]], InOrder] = frozenset({"value", "cut"})
    min_version: int | None = None
    time_limit_s: float | None = None


class TerminalArgs(QuestionArgs):
    """From where to where, and how much at most."""

    sources: list[int] | list[str] | None = None
    sinks: list[int] | list[str] | None = None
    supply: list[str] | None = None
    demand: list[str] | None = None
    rounding: Rounding = "error"
    min_version: int | None = None
    time_limit_s: float | None = None


class ParametricArgs(TerminalArgs):
    """A maximum flow at every factor from one to another."""

    edges: list[int] | list[str] | None = None
    """What the factor multiplies: the capacities of these, or what `scale` names."""
    scale: Literal["supply", "demand"] | None = None
    first: str = "0"
    """A fraction such as "7/6", as `last`."""
    last: str
    max_segments: int = 10_000


class CapacityExpansionArgs(TerminalArgs):
    """What to add to edges so that more can flow."""

    raise_by: str
    edges: list[int] | list[str]
    price: list[str]
    max_add: list[str] | None = None


class CirculationArgs(TerminalArgs):
    """A flow that keeps lower bounds. Without terminals of the question or of the graph it is a circulation."""

    edges: list[int] | list[str] | None = None
    """Those that `lower` is for; all others have a lower bound of 0."""
    lower: list[str] | None = None
    min_supply: list[str] | None = None
    min_demand: list[str] | None = None
    fields: Annotated[frozenset[Literal["flow"]], InOrder] = frozenset()
    zeros: bool = False


class PartitionArgs(QuestionArgs):
    """A graph in k parts."""

    k: int
    epsilon: str = "0.03"
    """Decimal literal."""
    weights: Literal["capacity", "one"] = "capacity"
    """What an edge weighs."""
    seed: int = 0
    vertices: list[int] | list[str] | None = None
    """Those that `vertex_weight` is for; all others weigh 1."""
    vertex_weight: list[int] | None = None
    fields: Annotated[frozenset[Literal["parts", "cut"]], InOrder] = frozenset({"parts"})
    min_version: int | None = None
    time_limit_s: float | None = None


class CapacitiesArgs(QuestionArgs):
    offset: int = 0
    limit: int = 10_000
    if_match: Wanted | None = None
    """The version that the page is to be of; None: whatever there is."""

    def to_json(self) -> bytes:
        """Without what is not asked for, so that workers of the release before can read it."""
        return self.model_dump_json(exclude_none=True, exclude=self._left_out()).encode()

    def _left_out(self) -> set[str]:
        return set() if self.encoding != "json" else {"encoding"}


class VerticesArgs(CapacitiesArgs):
    all: bool = False
    """A page of all vertices, not of those alone that have capacities."""

    def _left_out(self) -> set[str]:
        return super()._left_out() | (set() if self.all else {"all"})


class ExportArgs(Message):
    format: Literal["npz", "arrow", "dimacs", "dimacs-min", "packed"] = "npz"
    """``packed`` is the form in which a load has its edges (gpu_engine.formats.pack)."""
    version: int | None = None
    """The version whose capacities and closed edges the file is to hold; None: the present one."""
    if_match: Wanted | None = None
    """What that version has to be; None: any."""

    def to_json(self) -> bytes:
        """Without what is not asked for, so that workers of the release before can read it."""
        return self.model_dump_json(exclude={"if_match"} if self.if_match is None else None).encode()
