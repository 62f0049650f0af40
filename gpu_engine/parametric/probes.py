"""The maximum flow at one factor, solved in whole numbers: at ``p / q`` every capacity is multiplied by q, or by p if
the factor scales it.

A maximum flow stays one if it and all capacities are multiplied alike. So each solve begins from the flow at factor 1
times q, on an engine of its own on the host, and repairs it where capacities are scaled. A capacity without a limit has
none at any factor.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np

from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.cpu.lines import crossing_sums
from gpu_engine.engine import Engine, FlowState
from gpu_engine.errors import CapacityOverflow
from gpu_engine.footprint import Footprint, Needs, Room, on_cpu, unlimited
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.parametric.curve import Line, Point
from gpu_engine.types import INFINITE, MAX_TOTAL, BoolArray, EdgeArray, UnitArray

Solve = Callable[[Engine, FlowState, Terminals], int]
"""Brings a state to a maximum flow, proves it, and returns its value."""

SPANS_BYTES: Final = 160
"""Bytes that `gpu_engine.parametric.spans` takes for each arc of the whole network, those at the source and the sink
included: columns and flows of contracted networks, and working memory for the largest."""

NO_ROWS: EdgeArray = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Scaled:
    """What a factor multiplies: distinct edge rows, or the caps of all sources, or those of all sinks."""

    rows: EdgeArray = field(default_factory=lambda: NO_ROWS)
    supply: bool = False
    demand: bool = False


class Answer(NamedTuple):
    """A maximum flow and a minimum cut at one factor ``p / q``."""

    point: Point
    side: BoolArray
    """bool[n]: the source side of the cut, the one nearest the sources."""
    flow: UnitArray
    """int64[arcs]: the flow, multiplied by q, without what sources supply and sinks take. On either side of the cut it
    may leave excess where none can go on, and deficits where none can come."""


@dataclass(eq=False, slots=True)
class Prober:
    """Solves copies of one flow state at one factor after the other. One thread at a time may use it."""

    network: Network
    """The prober's own fork of the network, which nobody else changes."""
    terminals: Terminals
    scaled: Scaled
    solve: Solve
    room: Room = unlimited
    _flow: UnitArray = field(init=False)
    _excess: UnitArray = field(init=False)
    _source_side: BoolArray = field(init=False)
    rows: EdgeArray = field(init=False)
    """int64[k]: the edges that are scaled and have a limit."""
    is_scaled: BoolArray = field(init=False)
    """bool[m]: which edges are scaled; bool[1] where none is."""

    @classmethod
    def of(
        cls,
        engine: Engine,
        state: FlowState,
        terminals: Terminals,
        scaled: Scaled,
        solve: Solve,
        room: Room = unlimited,
    ) -> "Prober":
        """A prober from a solved state, which it does not change. O(n + m). The memory is that of `probing`."""
        made = cls(engine.network.fork(), terminals, scaled, solve, room)
        arrays = engine.export(state)
        made._flow, made._excess = arrays["flow"].astype(np.int64), arrays["excess"].astype(np.int64)
        made._source_side = arrays["source_side"].astype(np.bool_)
        made.rows = scaled.rows[made.network.capacity[scaled.rows] != INFINITE]
        made.is_scaled = np.zeros(made.network.n_edges if len(made.rows) else 1, np.bool_)
        made.is_scaled[made.rows] = True
        return made

    def __call__(self, factor: Fraction) -> Point:
        """The value at a factor, and the line of a minimum cut there. Raises as `ask`."""
        return self.ask(factor).point

    def ask(self, factor: Fraction) -> "Answer":
        """The flow and the cut at a factor. Raises `CapacityOverflow` where the multiplied capacities do not fit into
        int64, `Cancelled`, and what ``solve`` raises."""
        p, q = factor.numerator, factor.denominator
        if max(p, q) > MAX_TOTAL:
            raise overflow(factor)
        try:
            network = self.network.multiplied(q)
            engine: Engine = CpuEngine(network, self.room)
            arrays = {"flow": self._flow * q, "excess": self._excess * q, "source_side": self._source_side}
            state: FlowState = engine.restore(self._times(q, q), arrays)
            del arrays
            terminals = self._times(p if self.scaled.supply else q, p if self.scaled.demand else q)
            if terminals.key != state.terminals.key:
                fork = engine.fork(state, self.room)
                engine.close(state)
                engine, state = fork.engine, fork.overlay(NO_ROWS, NO_ROWS, terminals)
            elif len(self.rows):
                engine.update(self.rows, _product(self.network.capacity[self.rows], p))
        except CapacityOverflow:
            raise overflow(factor) from None
        value = Fraction(self.solve(engine, state, terminals), q)
        side = engine.cut(state).source_side
        return Answer(self.point(factor, value, side), side, engine.export(state)["flow"].astype(np.int64))

    def point(self, factor: Fraction, value: Fraction, side: BoolArray) -> Point:
        """The point of a factor at which a flow of this value is proven. It is the maximum because a cut of the whole
        network has the same capacity; raises RuntimeError if ``side``, bool[n], has not. O(m)."""
        line = self._line(side)
        if line.at(factor) != value:
            raise RuntimeError(f"the cut at factor {factor} is {line.at(factor)}, and the flow {value}")
        return Point(factor, value, line)

    def _times(self, supply: int, demand: int) -> Terminals:
        """The terminals with caps multiplied. Raises `CapacityOverflow`."""
        ends = self.terminals
        return Terminals.of(ends.sources, ends.sinks, _product(ends.supply, supply), _product(ends.demand, demand))

    def _line(self, source_side: BoolArray) -> Line:
        """The capacity of a cut, as a line in the factor."""
        network, ends = self.network, self.terminals.paid_by(source_side)
        edges = network.edge_arc, network.head, network.reverse_arc, network.capacity, network.undirected
        constant, rate = map(int, crossing_sums(*edges, self.is_scaled, source_side))
        for caps, is_scaled in ((ends.supply, self.scaled.supply), (ends.demand, self.scaled.demand)):
            paid = int(caps.sum())
            constant, rate = (constant, rate + paid) if is_scaled else (constant + paid, rate)
        return Line(constant, rate)


def probing(network: Network) -> Footprint:
    """Memory that a `Prober` takes while it is asked: its own copy of the flow, the engine of a factor with the copy
    that is changed, and all spans of factors that wait. The network counts, which it shares with the graph."""
    needs: Needs = on_cpu(network.counts)
    spans = SPANS_BYTES * (network.n_arcs + 4 * network.n_vertices)
    return needs.fork + needs.fork + needs.state + needs.cut + Footprint(network.n_edges + spans)


def _product(amounts: UnitArray, by: int) -> UnitArray:
    """The amounts multiplied, those without limit as they are. Raises `CapacityOverflow`."""
    finite = amounts != INFINITE
    if int(amounts.max(where=finite, initial=0)) * by > MAX_TOTAL:
        raise CapacityOverflow("multiplied, an amount is over every limit")
    return np.multiply(amounts, by, out=amounts.copy(), where=finite)


def overflow(factor: Fraction) -> CapacityOverflow:
    """The refusal of a factor for which the multiplied amounts do not fit into int64."""
    return CapacityOverflow(
        f"the flow at the factor {factor} takes amounts multiplied by {max(factor.numerator, factor.denominator)}, "
        f"and then they add up to more than {MAX_TOTAL} units: use fewer decimals, or smaller amounts"
    )
