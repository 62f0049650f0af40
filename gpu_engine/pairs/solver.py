"""Many terminal pairs on one network as it is now, solved by as many threads as ask."""

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from gpu_engine.checks.certificate import Certificate
from gpu_engine.checks.reductions import Chains, Rows, is_reduction
from gpu_engine.control import Control
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.errors import Cancelled, EngineError, SourceIsSink, Unbounded, UnknownVertex
from gpu_engine.footprint import Footprint, Room, on_cpu, unlimited
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.pairs.reduced import Reduced, reduced
from gpu_engine.pairs.values import (
    NO_LIMIT,
    OPEN,
    Desk,
    Whole,
    desk,
    desk_nbytes,
    reduced_nbytes,
    solve_pairs,
)
from gpu_engine.types import INFINITE, UnitArray, VertexArray


class Values(Protocol):
    """Solves pairs for their values alone. One thread at a time may use it."""

    def values(self, sources: VertexArray, sinks: VertexArray, control: Control) -> UnitArray:
        """int64[k]: the value of each pair, proven, `INFINITE` if no cut of it is finite.

        Raises `SourceIsSink` and `Cancelled`.
        """


@dataclass(eq=False, slots=True)
class PairSolver:
    """Answers pairs of the vertices that it was made for. It reads the network, which must not change meanwhile.

    What a search from both ends does not find soon is solved from zero by an engine. Every value is proven: by a flow
    and a cut written out (`gpu_engine.checks.pairs`), or by a complete certificate.
    """

    network: Network
    whole: Whole
    small: Reduced
    _room: Room

    @classmethod
    def of(cls, network: Network, kept: VertexArray, room: Room = unlimited) -> Self:
        """A solver for pairs of the vertices ``kept``, int32[k]. O(n + m)."""
        wrong = kept[(kept < 0) | (kept >= network.n_vertices)]
        if len(wrong):
            raise UnknownVertex(f"{len(wrong)} unknown vertices", vertices=wrong.tolist())
        room(Footprint(reduced_nbytes(network.n_vertices, network.n_arcs)))
        whole = Whole(network.row_offsets, network.head, network.reverse_arc, network.arc_capacity())
        return cls(network, whole, reduced(*whole, kept.astype(np.int32)), room)

    @property
    def is_proven(self) -> bool:
        """Whether proofs in the reduced network hold in the whole one. O(n + m)."""
        small = self.small
        chains = Chains(small.offsets, small.chain, small.number)
        return is_reduction(Rows(*self.whole), Rows(*small[:4]), chains)

    def seat(self) -> "Seat":
        """The memory in which one thread solves pairs. Takes `desk_nbytes`."""
        self._room(Footprint(desk_nbytes(self.network.n_vertices, self.network.n_arcs)))
        return Seat(self, desk(self.whole, self.small), self._room)


@dataclass(eq=False, slots=True)
class Seat:
    """The memory of one thread, which solves pairs there one after the other."""

    solver: PairSolver
    desk: Desk
    _room: Room
    _engine: CpuEngine | None = None

    def values(self, sources: VertexArray, sinks: VertexArray, control: Control) -> UnitArray:
        """int64[k]: the value of each pair, `INFINITE` if no cut of it is finite. The GIL is released meanwhile.

        Raises `SourceIsSink` and `Cancelled`.
        """
        same = np.flatnonzero(sources == sinks)
        if len(same):
            raise SourceIsSink("a vertex is both source and sink", vertices=sources[same].tolist())
        whole, small = self.solver.whole, self.solver.small
        found = np.full(len(sources), OPEN, np.int64)
        done = solve_pairs(whole, small, self.desk, sources, sinks, found, control.slots)
        if done < len(sources) or control.cancelled:
            raise Cancelled("cancelled between two pairs")
        for i in np.flatnonzero(found == OPEN):
            found[i], _ = self.from_zero(int(sources[i]), int(sinks[i]), control)
        found[found == NO_LIMIT] = INFINITE
        return found

    @property
    def engine(self) -> CpuEngine:
        """An engine that solves on the same network from zero, for all that is asked of a pair beside its value."""
        if self._engine is None:
            self._engine = CpuEngine(self.solver.network, self._room)
        return self._engine

    def from_zero(self, source: int, sink: int, control: Control) -> tuple[int, VertexArray]:
        """The value and the source side of a minimum cut of a pair that took too long; `INFINITE` and nothing if no cut
        is finite. Raises `Cancelled`."""
        engine = self.engine
        try:
            state = engine.open(Terminals.of([source], [sink]))
        except Unbounded:
            return INFINITE, self.desk.side[:0]
        try:
            report = engine.solve(state, control, cold=True)
            certificate = engine.certificate(state)
            _refuse_unproven(certificate, report.value)
            side = engine.cut(state, control).source_side
            return report.value, np.flatnonzero(side).astype(np.int32)
        finally:
            engine.close(state)


def _refuse_unproven(certificate: Certificate, value: int) -> None:
    if not certificate.valid or certificate.value != value:
        raise EngineError(f"a pair could not be proven: {'; '.join(certificate.failures)}")


def solver_nbytes(network: Network) -> int:
    """Bytes that a `PairSolver` takes at most."""
    return reduced_nbytes(network.n_vertices, network.n_arcs)


def seat_nbytes(network: Network) -> int:
    """Bytes that a thread takes at most, an engine for long solves included."""
    needs = on_cpu(network.counts)
    engine = needs.state.host + needs.scratch.host + needs.cut.host + 8 * network.n_arcs
    return desk_nbytes(network.n_vertices, network.n_arcs) + engine
