"""An engine for networks whose vertices have capacities: any other engine, on the split network."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpu_engine.checks.certificate import Certificate
from gpu_engine.control import Control
from gpu_engine.engine import Bottlenecks, Cut, Engine, FlowState, Fork, SolveReport
from gpu_engine.errors import EngineError, Unbounded, shown
from gpu_engine.footprint import Needs, Room, as_split, unlimited
from gpu_engine.networks.growing import Growth
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.trials import Trials
from gpu_engine.types import EdgeArray, End, UnitArray
from gpu_engine.vertices.split import Split


@dataclass(eq=False, slots=True)
class SplitState(FlowState):
    """A flow state of the split network, and the terminals as the caller knows them."""

    terminals: Terminals
    inner: FlowState


class SplitEngine(Engine):
    """``inner`` solves the split network; `network` is the one that the caller has, and all that goes in or out is told
    in its rows. In `update`, row m + i is the capacity of ``vertices[i]``.

    What is proven is the flow of the split network: it is feasible exactly if the caller's is, vertices included.
    """

    def __init__(self, network: Network, split: Split, inner: Engine) -> None:
        self.network = network
        self._split = split
        self._inner = inner
        self._states: list[SplitState] = []

    @property
    def name(self) -> str:  # type: ignore[override]  # a plain attribute elsewhere, here it may change
        """The name of the engine that solves."""
        return self._inner.name

    def open(self, terminals: Terminals) -> SplitState:
        terminals.check(self.network.n_vertices)
        with self._as_the_caller_knows_it(terminals):
            return self._keep(terminals, self._inner.open(self._split.terminals(terminals)))

    def update(self, rows: EdgeArray, capacity: UnitArray) -> None:
        with self._as_the_caller_knows_it():
            self._inner.update(*self._split.change(rows, capacity))
        own = rows < self._split.n_edges
        self.network.set_capacity(rows[own], capacity[own])  # their sum is within that of the split network

    def check_update(self, rows: EdgeArray, capacity: UnitArray) -> None:
        with self._as_the_caller_knows_it():
            self._inner.check_update(*self._split.change(rows, capacity))

    def capacity(self, rows: EdgeArray) -> UnitArray:
        return self._inner.capacity(rows)

    def grow(self, growth: Growth) -> None:
        raise NotImplementedError("out halves stand behind all vertices: whoever inserts splits the grown network anew")

    def solve(self, state: FlowState, control: Control | None = None, *, cold: bool = False) -> SolveReport:
        return self._inner.solve(self._own(state).inner, control, cold=cold)

    def cut(self, state: FlowState, control: Control | None = None, *, near: End = "sources") -> Cut:
        found, split = self._inner.cut(self._own(state).inner, control, near=near), self._split
        return Cut(
            split.in_halves(found.source_side),
            split.edges_of(found.edges),
            found.value,
            found.unique,
            split.vertices_of(found.edges),
            split.out_halves(found.source_side),
        )

    def bottlenecks(self, state: FlowState, control: Control | None = None) -> Bottlenecks:
        found, split = self._inner.bottlenecks(self._own(state).inner, control), self._split
        edges, surely = split.edges_of(found.edges), split.edges_of(found.edges[found.in_every])
        vertices = split.vertices_of(found.edges)
        of_all = np.isin(vertices, split.vertices_of(found.edges[found.in_every]))
        sinks = split.whole(found.sinks)
        rising = np.argsort(sinks)
        return Bottlenecks(
            edges,
            np.isin(edges, surely),
            found.sources,
            found.source_in_every,
            sinks[rising],
            found.sink_in_every[rising],
            vertices,
            of_all,
        )

    def flow(self, state: FlowState, control: Control | None = None, *, acyclic: bool = True) -> UnitArray:
        return self._split.joined_flow(self._inner.flow(self._own(state).inner, control, acyclic=acyclic))

    def certificate(self, state: FlowState, *, complete: bool = True) -> Certificate:
        return self._inner.certificate(self._own(state).inner, complete=complete)

    def fork(self, state: FlowState, room: Room = unlimited, *, on_host: bool = False) -> Fork:
        own = self._own(state)
        terminals, inner = own.terminals, self._inner.fork(own.inner, room, on_host=on_host)
        forked = type(self)(self.network.fork(), self._split, inner.engine)

        def copy() -> FlowState:
            return forked._keep(terminals, inner._copy())

        def is_copy(state: FlowState, rows: EdgeArray) -> bool:
            return inner._is_copy(forked._own(state).inner, self._split.rows(rows))

        def recap(state: FlowState, terminals: Terminals) -> bool:
            with forked._as_the_caller_knows_it(terminals):
                tried = forked._own(state)
                if not inner._recap(tried.inner, self._split.terminals(terminals)):
                    return False
                tried.terminals = terminals
                return True

        def trials(count: int) -> Sequence[Trials]:
            return []

        return Fork(forked, terminals, copy, is_copy, recap, trials)

    def export(self, state: FlowState) -> dict[str, NDArray[np.generic]]:
        return self._inner.export(self._own(state).inner)

    def restore(self, terminals: Terminals, arrays: Mapping[str, NDArray[np.generic]]) -> SplitState:
        terminals.check(self.network.n_vertices)
        with self._as_the_caller_knows_it(terminals):
            return self._keep(terminals, self._inner.restore(self._split.terminals(terminals), arrays))

    def close(self, state: FlowState) -> None:
        own = self._own(state)
        self._states.remove(own)
        self._inner.close(own.inner)

    @property
    def nbytes(self) -> int:
        return self.network.nbytes + self._split.nbytes + self._inner.nbytes

    @property
    def device_nbytes(self) -> int:
        return self._inner.device_nbytes

    @property
    def needs(self) -> Needs:
        """The needs of the engine of the split network, and of the columns of capacities and flow that the caller
        has. There are no trials."""
        return as_split(self._inner.needs, self.network.nbytes + self._split.nbytes, self.network.n_edges)

    def _keep(self, terminals: Terminals, inner: FlowState) -> SplitState:
        state = SplitState(terminals, inner)
        self._states.append(state)
        return state

    def _own(self, state: FlowState) -> SplitState:
        """Raises ValueError for a state of another engine, or one that was closed."""
        for own in self._states:
            if own is state:
                return own
        raise ValueError("a flow state of another engine, or one that was closed")

    @contextmanager
    def _as_the_caller_knows_it(self, asked: Terminals | None = None) -> Iterator[None]:
        """Errors of the inner engine name rows of the split network; ``asked`` are the terminals it is asked about."""
        try:
            yield
        except EngineError as error:
            split, where = self._split, error.where
            labels = self.network.vertex_labels
            rows = np.array([row for row in where.edges if isinstance(row, int)], np.int64)
            vertices = [v for v in where.vertices if isinstance(v, int)]
            named = np.concatenate([split.whole(vertices), split.vertices_of(rows)])
            edges = self.network.edge_ids.of(split.edges_of(rows))
            error.where = replace(where, vertices=shown(labels.of(named.astype(np.int64))), edges=shown(edges))
            if isinstance(error, Unbounded):
                known = [asked] if asked is not None else [state.terminals for state in self._states]
                error.terminals = next(t.key for t in known if split.terminals(t).key == error.terminals)
            raise
