"""The refusals of the engine, each with a stable code and the rows at fault.

EngineError
 +-- InvalidNetwork        malformed columns, lines, rows          invalid_body
 |    +-- TooLarge         over a stated limit                     too_large
 +-- CapacityOverflow      exact sums would leave int64            capacity_overflow
 +-- InvalidTerminals      no or unknown source or sink            invalid_body
 |    +-- SourceIsSink     one vertex on both sides                source_is_sink
 +-- Unbounded             an infinite path from source to sink    unbounded
 +-- NotBipartite          an edge within one side                 not_bipartite
 +-- UnknownEdge           an update names no edge of the network  unknown_edge
 +-- Cancelled             the caller's flag was raised            cancelled
 +-- TimedOut              the caller's time limit passed          timeout
 +-- OutOfMemory           needed bytes exceed the budget          out_of_memory
 +-- UnknownEngine         no engine or preset of that name        unknown_engine
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

ROWS_SHOWN = 10
"""At most this many offending rows travel with an error."""


def shown(rows: Sequence[object]) -> list[object]:
    """The rows that travel, as plain Python values: a NumPy scalar has no JSON."""
    return [row.item() if isinstance(row, np.generic) else row for row in rows[:ROWS_SHOWN]]


class EngineError(Exception):
    """Base of all refusals. `rows` are what is at fault (edge rows, lines or vertices), at most ten."""

    code: ClassVar[str] = "engine_error"

    def __init__(self, message: str, rows: Sequence[object] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.rows = shown(rows)


class InvalidNetwork(EngineError):
    """The columns, lines or rows do not describe a network."""

    code = "invalid_body"


class TooLarge(InvalidNetwork):
    """A count is over its stated limit."""

    code = "too_large"


class CapacityOverflow(EngineError):
    """The total of the finite capacities would exceed `types.MAX_TOTAL`."""

    code = "capacity_overflow"


class InvalidTerminals(EngineError):
    """No source, no sink, an unknown vertex, or a negative cap."""

    code = "invalid_body"


class SourceIsSink(InvalidTerminals):
    """A vertex is both source and sink."""

    code = "source_is_sink"


class Unbounded(EngineError):
    """A path of infinite edges leads from a source to a sink; `rows` are its vertices in order."""

    code = "unbounded"


class NotBipartite(EngineError):
    """Vertices are on both sides of a matching, or have an edge within their own; `rows` are those vertices."""

    code = "not_bipartite"


class UnknownEdge(EngineError):
    """An update names an edge the network does not have."""

    code = "unknown_edge"


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
