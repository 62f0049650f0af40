"""Terminal sets: who supplies, who demands, and how much at most."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpu_engine.errors import CapacityOverflow, InvalidTerminals, SourceIsSink, UnknownVertex
from gpu_engine.networks.validate import exact_total, twice
from gpu_engine.types import INFINITE, MAX_TOTAL, BoolArray, UnitArray, VertexArray


@dataclass(frozen=True, eq=False, slots=True)
class Terminals:
    """Sources with supply caps and sinks with demand caps, each sorted by vertex; `INFINITE` is uncapped.

    A cap is an amount at the vertex, not an arc: no super-vertex enters the arrays.
    """

    sources: VertexArray
    supply: UnitArray
    sinks: VertexArray
    demand: UnitArray

    @classmethod
    def of(
        cls,
        sources: Sequence[int] | VertexArray,
        sinks: Sequence[int] | VertexArray,
        supply: Sequence[int] | UnitArray | None = None,
        demand: Sequence[int] | UnitArray | None = None,
        *,
        may_be_empty: bool = False,
    ) -> "Terminals":
        """Raises `InvalidTerminals` for a repeated vertex, a negative cap, or an empty side unless it ``may_be_empty``.

        Errors name indices.
        """
        source_side = _side("source", sources, supply, may_be_empty)
        sink_side = _side("sink", sinks, demand, may_be_empty)
        both = np.intersect1d(source_side[0], sink_side[0], assume_unique=True)
        if len(both):
            several = f"{len(both)} vertices are" if len(both) > 1 else "a vertex is"
            raise SourceIsSink(f"{several} both source and sink", vertices=both.tolist())
        return cls(*source_side, *sink_side)

    @property
    def key(self) -> bytes:
        """Equal for equal terminal sets, whatever the order they were given in."""
        parts = (self.sources, self.supply, self.sinks, self.demand)
        return b"|".join(part.tobytes() for part in parts)

    def joins_as(self, other: "Terminals") -> bool:
        """Whether these are the same vertices, perhaps with other caps."""
        return np.array_equal(self.sources, other.sources) and np.array_equal(self.sinks, other.sinks)

    def paid_by(self, source_side: BoolArray, passed: BoolArray | None = None) -> "Terminals":
        """The terminals whose caps belong to a cut: sources on its sink side and sinks on its source side, in order.

        ``source_side`` bool[n]; ``passed``: see `gpu_engine.engine.Cut`. Caps of 0 are left out, and either side may be
        empty. O(terminals).
        """
        sources = ~source_side[self.sources] & (self.supply > 0)
        sinks = (source_side if passed is None else passed)[self.sinks] & (self.demand > 0)
        return Terminals(self.sources[sources], self.supply[sources], self.sinks[sinks], self.demand[sinks])

    def check(self, n_vertices: int) -> None:
        """Raises `UnknownVertex` for a vertex the network does not have."""
        for name, vertices in (("source", self.sources), ("sink", self.sinks)):
            bad = vertices[(vertices < 0) | (vertices >= n_vertices)]
            if len(bad):
                raise UnknownVertex(f"{len(bad)} unknown {name} vertices", vertices=bad.tolist())


def _side(
    kind: str, vertices: Sequence[int] | VertexArray, caps: Sequence[int] | UnitArray | None, may_be_empty: bool
) -> tuple[VertexArray, UnitArray]:
    if len(vertices) == 0 and not may_be_empty:
        raise InvalidTerminals(f"no {kind}")
    column = np.asarray(vertices, dtype=np.int32)
    amount = np.full(len(column), INFINITE, np.int64) if caps is None else np.asarray(caps, np.int64)
    if len(amount) != len(column):
        raise InvalidTerminals(f"{len(amount)} caps for {len(column)} {kind} vertices")
    if (amount < 0).any():
        raise InvalidTerminals(f"negative {kind} caps", vertices=column[amount < 0].tolist())
    if exact_total(amount, np.zeros(1, np.bool_)) > MAX_TOTAL:
        raise CapacityOverflow(f"the {kind} caps add up to more than {MAX_TOTAL} units", vertices=column[:10].tolist())
    at = twice(column)
    if at:
        repeated = np.unique(column[at])
        several = f"{len(repeated)} {kind} vertices stand" if len(repeated) > 1 else f"a {kind} stands"
        raise InvalidTerminals(f"{several} twice or more", at, vertices=repeated.tolist(), field=f"/{kind}s")
    order = np.argsort(column, kind="stable")
    return column[order], amount[order]
