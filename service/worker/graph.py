"""A graph in a worker's memory: network, engine, capacity table and the flow states that are kept solved."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np

from gpu_engine.checks.certificate import Certificate
from gpu_engine.control import Control
from gpu_engine.engine import Engine, FlowState, Mode, SolveReport
from gpu_engine.errors import EngineError, OutOfMemory, Unbounded
from gpu_engine.footprint import Counts, Footprint, Room, needs_of, on_split
from gpu_engine.networks.costs import CostTable
from gpu_engine.networks.growing import grow, growing_bytes
from gpu_engine.networks.lowers import LowerTable, lowers_of
from gpu_engine.networks.network import Network
from gpu_engine.networks.structure import Structure
from gpu_engine.networks.terminals import Terminals
from gpu_engine.networks.updates import CapacityTable, Change
from gpu_engine.partition.problem import Question
from gpu_engine.partition.resident import KeptPartition
from gpu_engine.types import EdgeArray, UnitArray
from gpu_engine.vertices.table import VertexChange, VertexTable, vertices_of
from service.protocol import Kind
from service.store.applied import Applied
from service.store.feed.writing import Feed
from service.store.keys import generation_of
from service.store.snapshots import KnownKey
from service.store.states import Noted
from service.worker.ahead import Ahead


class OpenEngine(Protocol):
    """An engine for a network, which asks ``room`` before it takes memory; the network itself is there already."""

    def __call__(self, network: Network, *, room: Room = ...) -> Engine: ...


MAX_STATES: Final = 16
"""At most so many flow states are kept for one graph. The least recently used one is forgotten first."""

MAX_KNOWN: Final = 10_000
"""At most so many Idempotency-Keys are remembered for one graph, far more than commands may wait for a worker."""

COMPLETE_EVERY: Final = 256
"""After so many proofs of what has changed alone, the next proof checks the whole state."""

KNOWN_BYTES: Final = 1_700
"""Bytes that one remembered key takes, as tracemalloc counts it."""


def least_footprint(engine: str, n_vertices: int, n_edges: int, n_limited: int = 0) -> Footprint:
    """What a graph needs to be of use, known before any of it is built: if all of its edges shared one link, and none
    were undirected at the ``n_limited`` vertices with a capacity. Host memory is what "auto" cannot do without."""
    counts = Counts(n_vertices, n_edges, 2 if n_edges else 0)
    needs = on_split(needs_of(engine), counts, n_limited)
    return needs.of_one_state + Footprint(n_edges)


def grown_lowers(table: LowerTable | None, before: Network, after: Network, structure: Structure) -> LowerTable | None:
    """The lower bounds of a network that has grown by what is inserted. O(m) if there are any."""
    if table is None and structure.lower is None:
        return None
    return lowers_of(table, before).grown(after, structure.lower)


class NotProven(EngineError):
    """Two solves in a row, the second from zero flow, failed their certificate: a fault of the engine."""


@dataclass(slots=True)
class Solved:
    """A flow state and what was proven about it last."""

    state: FlowState
    terminals: Terminals
    kind: Kind = Kind.MAX_FLOW
    """The question for which it was used last: a max flow or a matching."""
    proven_at: int | None = None
    """The version of the graph that the certificate is for."""
    certificate: Certificate | None = None
    report: SolveReport | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """One solve with its proof."""

    report: SolveReport
    certificate: Certificate
    solve_ms: float
    certificate_ms: float


@dataclass(slots=True)
class Graph:
    """One thread at a time. `version` and `epoch` are what the catalogue must say for this copy to be good."""

    name: str
    graph_id: str
    epoch: int
    version: int
    network: Network
    engine: Engine
    table: CapacityTable
    costs: CostTable | None = None
    """The costs of edges; None where they were loaded without any."""
    vertices: VertexTable | None = None
    """The capacities of vertices; None where no vertex has one."""
    lowers: LowerTable | None = None
    """The lower bounds of edges; None where no edge has ever had one."""
    states: "OrderedDict[bytes, Solved]" = field(default_factory=OrderedDict)
    known: "OrderedDict[str, KnownKey]" = field(default_factory=OrderedDict)
    unsaved: int = 0
    """The number of updates since the newest snapshot."""
    saved_at: float = field(default_factory=time.monotonic)
    saving: bool = False
    """Whether a snapshot is being written."""
    to_reopen: list[Noted] = field(default_factory=list)
    """Flow states it had before it was restored and does not have yet, the most recently used last."""
    noted: tuple[str, tuple[bytes, ...], int] | None = None
    """The engine, the keys of the flow states, and how many partitions, that the catalogue has been told of."""
    pinned: frozenset[bytes] = frozenset()
    """Keys of the flow states that watches keep: they stand beside those of questions, and give way to none."""
    feed: Feed | None = None
    """The watches of the graph, with what they have been told; None where they were not read yet."""
    partitions: "OrderedDict[Question, KeptPartition]" = field(default_factory=OrderedDict)
    """The partitions, each as of its last question; the most recently used one is last."""
    since_complete: int = COMPLETE_EVERY
    """How many proofs of any flow state came since the last complete one; the first proof of all is complete."""
    sides: Terminals | None = None
    """The terminals of a matching, once one was asked for: they do not depend on capacities."""
    ahead: Ahead | None = None
    """Set while the graph is another worker's, which is about to hand it over."""
    unwritten_at: float = field(default_factory=time.monotonic)
    """The time, of `time.monotonic`, at which it reached a version that Redis may lose with its process."""

    @property
    def generation(self) -> str:
        """A text that only this load of the name has."""
        return generation_of(self.graph_id)

    @property
    def noteworthy(self) -> list[Noted]:
        """The flow states it has, or had before it was restored, the most recently used last."""
        missing = [noted for noted in self.to_reopen if noted.terminals.key not in self.states]
        there = [Noted(state.kind, state.terminals) for state in list(self.states.values())]
        return (missing + there)[-self.most_states :]

    @property
    def most_states(self) -> int:
        """How many flow states may be kept: those of questions, and those of watches."""
        return MAX_STATES + len(self.pinned)

    @property
    def footprint(self) -> Footprint:
        """The memory that the graph takes at rest."""
        tables = self.table, self.costs, self.vertices, self.lowers
        n_bytes = sum(table.nbytes for table in tables if table is not None)
        parts = sum((partition.footprint for partition in self.partitions.values()), Footprint())
        return self.engine.footprint + parts + Footprint(n_bytes + KNOWN_BYTES * len(self.known))

    def open(self, terminals: Terminals, kind: Kind = Kind.MAX_FLOW) -> Solved:
        """The flow state of these terminals, opened if there is none, now the most recently used one."""
        solved = self.states.get(terminals.key)
        if solved is None:
            solved = Solved(self.engine.open(terminals), terminals)
            self.states[terminals.key] = solved
            while sum(key not in self.pinned for key in self.states) > MAX_STATES:
                self.close_oldest()
        self.states.move_to_end(terminals.key)
        solved.kind = kind
        return solved

    def close_oldest(self, but: Solved | None = None) -> bool:
        """Forget the flow state that was not asked for the longest, unless a watch keeps it, or else a partition; False
        if there is neither, other than ``but``."""
        loose = (solved for key, solved in self.states.items() if key not in self.pinned)
        oldest = next((solved for solved in loose if solved is not but), None)
        if oldest is not None:
            self.close(oldest)
        elif self.partitions:
            self.partitions.popitem(last=False)
        else:
            return False
        return True

    def close(self, solved: Solved) -> None:
        """Forget a flow state."""
        del self.states[solved.terminals.key]
        self.engine.close(solved.state)

    def lacks(self, terminals: Terminals) -> bool:
        """Whether one of the terminals is a vertex that was deleted."""
        return any(bool(self.network.are_gone(ends).any()) for ends in (terminals.sources, terminals.sinks))

    def carry_proofs(self, version: int) -> None:
        """What is proven of flows at the present version holds at the next one as well: no capacity has changed."""
        for solved in self.states.values():
            if solved.proven_at == self.version:
                solved.proven_at = version

    def columns(self, change: Change, vertices: VertexChange | None = None) -> tuple[EdgeArray, UnitArray]:
        """The rows and capacities of a checked change as the engine knows them."""
        if self.vertices is None or vertices is None:
            return change.rows, change.effective
        rows = np.concatenate([change.rows, self.vertices.edge_rows(vertices)])
        return rows, np.concatenate([change.effective, vertices.capacity])

    def update(self, change: Change, vertices: VertexChange | None = None) -> list[Solved]:
        """Give the engine and the tables what a checked batch changes, of edges and of ``vertices``.

        A flow state that the change leaves without a bound is closed: what was once asked must not stand in the way of
        an update. Returns those that were closed, the most recently used first. Raises `CapacityOverflow` before
        anything changes. O(k) for each state, and O(n + m) where unlimited edges come or go.
        """
        unbounded: list[Solved] = []
        rows, capacity = self.columns(change, vertices)
        while len(rows):
            try:
                self.engine.update(rows, capacity)
                self.table.apply(change)
                if self.vertices is not None and vertices is not None:
                    self.vertices.apply(vertices)
                break
            except Unbounded as error:  # no capacity has changed
                unbounded += self._close_all([self.states[error.terminals]])
        return unbounded

    def splits(self, vertices: VertexChange | None) -> bool:
        """Whether a checked change gives a vertex its first capacity, for which the network is to be split anew."""
        if vertices is None:
            return False
        return not bool(vertices_of(self.vertices, self.network).has(vertices.vertices).all())

    def move(self, after: "Graph") -> list[Solved]:
        """Go on with the network, the engine and the tables of another one. Returns the flow states of the engine
        before, which are closed."""
        states = list(self.states.values())
        for solved in states:
            self.close(solved)
        self.network, self.engine, self.sides = after.network, after.engine, None
        self.table, self.costs, self.vertices, self.lowers = after.table, after.costs, after.vertices, after.lowers
        self.noted = None  # what it takes is told anew
        return states

    def open_again(self, states: list[Solved]) -> list[Solved]:
        """Open flow states of an engine before, in their order, as long as there is room. Returns matchings, which no
        engine with vertices of a capacity has, and states without a bound, or without a terminal."""
        gone: list[Solved] = []
        for solved in states:
            if solved.kind is Kind.MATCHING or self.lacks(solved.terminals):
                gone.append(solved)
                continue
            try:
                state = self.engine.open(solved.terminals)
            except Unbounded:
                gone.append(solved)
            except OutOfMemory:
                continue
            else:
                again = Solved(state, solved.terminals, solved.kind, report=solved.report)
                self.states[solved.terminals.key] = again
        return gone[::-1]

    def restructure(
        self, structure: Structure, change: Change, room: Room, vertices: VertexChange | None = None
    ) -> list[Solved]:
        """Insert and delete what a checked batch says, and give the edges their capacities.

        Flow states stay as for `update`, but for those of which a terminal is deleted, and matchings where anything is
        inserted, or is there again: their terminals are all vertices with edges. Returns those that were closed. Raises
        `CapacityOverflow`, `TooLarge` or `OutOfMemory` before anything changes. O(n + m) for each state where anything
        is inserted.
        """
        growth = None
        if structure.grows:
            room(Footprint(growing_bytes(self.network, structure)))
            growth = grow(self.network, structure)
        (self.network if growth is None else growth.network).check_update(change.rows, change.effective)
        dropped = self._close_matchings() if growth is not None or len(structure.revived) else []
        if growth is not None:
            self.engine.grow(growth)
            before = self.network
            self.network = growth.network
            self.table.grow(self.network)
            if self.costs is not None and structure.cost is not None:
                self.costs = self.costs.grown(self.network, structure.cost)
            self.lowers = grown_lowers(self.lowers, before, self.network, structure)
        self.network.mark_vertices(structure.deleted_vertices, structure.revived_vertices)
        dropped += self._close_lost() if len(structure.deleted_vertices) else []
        unbounded = self.update(change, vertices)
        self.network.mark(structure.deleted, structure.revived)
        self.table.forget_ends()
        return dropped + unbounded

    def _close_matchings(self) -> list[Solved]:
        """Forget which vertices match, and the flow states between them."""
        self.sides = None
        return self._close_all([solved for solved in self.states.values() if solved.kind is Kind.MATCHING])

    def _close_lost(self) -> list[Solved]:
        """Forget the flow states that have lost a terminal, and which vertices match if one of these is gone."""
        if self.sides is not None and self.lacks(self.sides):
            self.sides = None
        return self._close_all([solved for solved in self.states.values() if self.lacks(solved.terminals)])

    def _close_all(self, states: list[Solved]) -> list[Solved]:
        for solved in states:
            self.close(solved)
        return states

    def remember(self, version: int, applied: Applied) -> None:
        """Keep what an update under an Idempotency-Key has come to, for a PATCH that is sent again."""
        self.known[applied.key] = KnownKey(version=version, applied=applied)
        while len(self.known) > MAX_KNOWN:
            self.known.popitem(last=False)

    def solve(
        self, solved: Solved, control: Control, on_failure: Callable[[], None], *, complete: bool = False
    ) -> Answer:
        """Bring the state to a maximum flow and prove it; one that cannot be proven is solved again from zero.

        Unless ``complete`` the proof may be one of what has changed, `COMPLETE_EVERY` times at most.

        Raises `Cancelled`, or `NotProven` after the second failure. `on_failure` counts each.
        """
        failures: tuple[str, ...] = ()
        for cold in (False, True):
            started = time.perf_counter()
            report = self.engine.solve(solved.state, control, cold=cold)
            solved_at = time.perf_counter()
            certificate = solved.certificate
            is_proven = solved.proven_at == self.version and report.mode is Mode.UNCHANGED
            if certificate is None or not is_proven or (complete and not certificate.complete):
                whole = complete or cold or self.since_complete >= COMPLETE_EVERY
                certificate = self.engine.certificate(solved.state, complete=whole)
                self.since_complete = 0 if certificate.complete else self.since_complete + 1
            proven_at = time.perf_counter()
            if certificate.valid and certificate.value == report.value:
                solved.proven_at, solved.certificate, solved.report = self.version, certificate, report
                return Answer(report, certificate, 1e3 * (solved_at - started), 1e3 * (proven_at - solved_at))
            solved.proven_at, failures = None, certificate.failures
            on_failure()
        raise NotProven(f"the answer could not be proven: {'; '.join(failures) or 'values differ'}")
