"""What the engine refuses, each with a stable code and what is at fault.

EngineError
 +-- InvalidNetwork       malformed columns, lines, rows          invalid_body
 |    +-- TooLarge        over a stated limit                     too_large
 +-- CapacityOverflow     exact sums would leave int64            capacity_overflow
 +-- CostOverflow         exact sums of costs would leave int64   cost_overflow
 +-- NoCosts              costs are needed, and edges have none   no_costs
 +-- HasVertexCapacities  the question cannot handle them         has_vertex_capacities
 +-- HasLowerBounds       the question does not keep them         has_lower_bounds
 +-- Infeasible           more flow is asked for than there is    infeasible
 +-- InvalidTerminals     missing or repeated, invalid caps       invalid_body
 |    +-- SourceIsSink    one vertex on both sides                source_is_sink
 |    +-- UnknownVertex   no vertex of the network                unknown_vertex
 +-- Unbounded            unlimited edges from source to sink     unbounded
 +-- NotBipartite         an edge within one side                 not_bipartite
 +-- NotUndirected        a tree of a directed network            not_undirected
 +-- NotDirected          a lower bound of an undirected edge     not_directed
 +-- UnknownEdge          an update names no edge of the network  unknown_edge
 +-- AlreadyExists        a name of what is inserted is taken     already_exists
 +-- Cancelled            the caller's flag was raised            cancelled
 +-- TimedOut             the caller's time limit passed          timeout
 +-- OutOfMemory          needed bytes exceed the budget          out_of_memory
 +-- UnknownEngine        no engine or preset of that name        unknown_engine
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from dataclasses import field as member
from typing import Any, ClassVar, Self

import numpy as np

ROWS_SHOWN = 10
"""An error names at most this many rows, lines, edges or vertices."""

CHARS_SHOWN = 1024
"""An error has at most this many characters of a name."""


MESSAGE_CHARS = 4096
"""A message has at most this many characters, whatever of a caller's text stands in it."""

LEFT_OUT_CHARS = 64
"""Characters of the end of a message that says that it was cut."""


def bounded(message: str) -> str:
    """A message with the end of a longer one left out."""
    if len(message) <= MESSAGE_CHARS:
        return message
    kept = message[: MESSAGE_CHARS - LEFT_OUT_CHARS]
    return f"{kept}... ({len(message) - len(kept)} characters left out)"


def shown(rows: Sequence[object]) -> list[object]:
    """The first `ROWS_SHOWN` values of a column as plain Python values that JSON can hold; long texts are cut."""
    values = [row.item() if isinstance(row, np.generic) else row for row in rows[:ROWS_SHOWN]]
    return [_legible(value) if isinstance(value, str) else value for value in values]


def pointer(*path: object) -> str:
    """The JSON pointer (RFC 6901) of a member."""
    return "".join(f"/{_legible(str(part)).replace('~', '~0').replace('/', '~1')}" for part in path)


def _legible(text: str) -> str:
    """The first `CHARS_SHOWN` characters, with "?" for what has no UTF-8 form, such as half a surrogate pair."""
    return text[:CHARS_SHOWN].encode("utf-8", "replace").decode("utf-8")


@dataclass(frozen=True, slots=True)
class Where:
    """What is at fault in a request. Each member has one meaning, and at most `ROWS_SHOWN` entries."""

    field: str | None = None
    """JSON pointer of the member of the body, ``/set`` or ``/batch/1/edges``; of other formats the column."""
    operation: int | None = None
    """Place of the operation in a batch of several, from 0."""
    rows: Sequence[object] = member(default_factory=list)
    """Rows of the columns as they were sent, from 0."""
    lines: Sequence[object] = member(default_factory=list)
    """Lines of a text, from 1."""
    edges: Sequence[object] = member(default_factory=list)
    """The caller's ids of edges."""
    vertices: Sequence[object] = member(default_factory=list)
    """The caller's names of vertices."""
    parameter: str | None = None
    """A parameter of the path or the query."""
    header: str | None = None

    @classmethod
    def of(cls, rows: Sequence[object] = (), **members: Any) -> Self:
        """A `Where` of columns of any length, of which it keeps the first entries. ``members`` are fields of the
        class."""
        found: dict[str, Any] = {"rows": rows} | members
        return cls(**{name: _shown_of(name, value) for name, value in found.items()})

    def members(self) -> dict[str, Any]:
        """The fields that are not empty, by name."""
        told = {part.name: getattr(self, part.name) for part in fields(self)}
        return {name: value for name, value in told.items() if value is not None and value != []}


COLUMNS = ("rows", "lines", "edges", "vertices")
"""Members of `Where` that have several entries."""


def _shown_of(name: str, value: Any) -> Any:
    return shown(value) if name in COLUMNS else value


class EngineError(Exception):
    """Base of all refusals. `where` says what is at fault.

    Args:
        message: one sentence for the caller.
        rows: rows of the columns at fault, from 0.
        where: any other members of `Where`.
    """

    code: ClassVar[str] = "engine_error"

    def __init__(self, message: str, rows: Sequence[object] = (), **where: Any) -> None:
        message = bounded(message)
        super().__init__(message)
        self.message = message
        self.where = Where.of(rows, **where)

    @property
    def rows(self) -> Sequence[object]:
        return self.where.rows


class InvalidNetwork(EngineError):
    """The columns, lines or rows do not describe a network."""

    code = "invalid_body"


class TooLarge(InvalidNetwork):
    """A count is over its stated limit."""

    code = "too_large"


class CapacityOverflow(EngineError):
    """An amount, or an exact sum of capacities, caps or lower bounds, is larger than `types.MAX_TOTAL`, or than a
    solver can add up."""

    code = "capacity_overflow"


class CostOverflow(EngineError):
    """A cost is so large that the cost of a path could leave int64."""

    code = "cost_overflow"


class NoCosts(EngineError):
    """The edges have no costs, and what is asked for needs them."""

    code = "no_costs"


class HasVertexCapacities(EngineError):
    """Vertices of the network have capacities, which the question cannot handle."""

    code = "has_vertex_capacities"


class HasLowerBounds(EngineError):
    """Edges of the network have lower bounds, which what is asked for does not keep; `edges` names some of them."""

    code = "has_lower_bounds"


class Infeasible(EngineError):
    """More flow is asked for than the network can carry."""

    code = "infeasible"


class InvalidTerminals(EngineError):
    """The sources and sinks are not valid: none is given, one is given twice, a cap is missing, negative or below its
    minimum; or there are too few vertices for the question."""

    code = "invalid_body"


class SourceIsSink(InvalidTerminals):
    """A vertex is both source and sink."""

    code = "source_is_sink"


class UnknownVertex(InvalidTerminals):
    """A vertex that the network does not have."""

    code = "unknown_vertex"


class Unbounded(EngineError):
    """The flow, or its cost, has no bound: a path of unlimited edges leads from a source to a sink, a cycle of
    unlimited edges costs less than nothing (`vertices` has either in order), or every cut holds an unlimited edge."""

    code = "unbounded"
    terminals: bytes = b""
    """The `Terminals.key` of the sources and sinks that have no bound."""


class NotBipartite(EngineError):
    """Vertices are on both sides of a matching, or have an edge within their own; `vertices` names them."""

    code = "not_bipartite"


class NotUndirected(EngineError):
    """What is asked for is known of undirected networks only; `edges` names directed edges."""

    code = "not_undirected"


class NotDirected(EngineError):
    """What is asked for is known of directed edges only; `edges` names undirected ones."""

    code = "not_directed"


class UnknownEdge(EngineError):
    """An update or a question names an edge that the network does not have."""

    code = "unknown_edge"


class AlreadyExists(EngineError):
    """What is inserted has a name that is taken, or was."""

    code = "already_exists"


class Cancelled(EngineError):
    """The solve was stopped by its cancel flag; the flow state can be solved again."""

    code = "cancelled"


class TimedOut(EngineError):
    """The solve was stopped by its time limit; the flow state can be solved again."""

    code = "timeout"


class OutOfMemory(EngineError):
    """The memory budget, or the device, has no room for what was asked; the message has the bytes."""

    code = "out_of_memory"


class UnknownEngine(EngineError):
    """There is no engine or preset of this name."""

    code = "unknown_engine"
