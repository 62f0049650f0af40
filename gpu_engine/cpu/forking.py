"""Forks of flow states: copies of a state beside each other in an engine of their own (`gpu_engine.engine.Fork`)."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, Self, TypeVar

from gpu_engine.engine import FlowState, Fork
from gpu_engine.footprint import Room, unlimited
from gpu_engine.incremental import IncrementalEngine, IncrementalState
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.trials import Trials
from gpu_engine.types import EdgeArray


@dataclass(eq=False, slots=True, kw_only=True)
class ForkableState(IncrementalState):
    """A flow state that can be copied."""

    @abstractmethod
    def copied(self) -> Self:
        """A copy with arrays of its own; those that no call writes to are shared. It is open in no engine. O(n + m)."""


State = TypeVar("State", bound=ForkableState)


class ForkableEngine(IncrementalEngine[State], Generic[State]):
    """An engine whose states can be copied from one engine to another of its kind."""

    def fork(self, state: FlowState, room: Room = unlimited, *, on_host: bool = False) -> Fork:
        engine, pinned = self._alike(self.network.fork(), room), self._own(state).copied()
        copy, is_copy = partial(engine._open_copy, pinned), partial(engine._is_copy, pinned)
        trials = partial(engine._open_trials, pinned)
        return Fork(
            engine, state.terminals, copy, is_copy, lambda own, caps: engine._recap(engine._own(own), caps), trials
        )

    def _open_copy(self, state: State) -> State:
        """Open a copy of a state that an engine has which this one is like."""
        copied = state.copied()
        copied.moved = False
        self._states.append(copied)
        return copied

    def _is_copy(self, pinned: State, state: FlowState, rows: EdgeArray) -> bool:
        """Whether an open state is as ``pinned``, on which changes of these rows were made and undone; they are then
        forgotten. Flow that a solve has moved is not known to have come back."""
        own = next((own for own in self._states if own is state), None)
        if own is None or own.moved or not own.solved or not pinned.solved or self._is_changed(pinned):
            return False
        if own.value != pinned.value or not self._agree(own, pinned, rows):
            return False
        self._forget_changes(own)
        own.settled_value = pinned.settled_value
        return True

    @abstractmethod
    def _alike(self, network: Network, room: Room) -> Self:
        """Another engine of this kind, for a fork of the network."""

    @abstractmethod
    def _recap(self, state: State, terminals: Terminals) -> bool:
        """Give a solved state other caps of the same vertices, to be repaired; False, and nothing has changed, if that
        takes a cold solve. Raises `Unbounded`."""

    @abstractmethod
    def _open_trials(self, pinned: State, count: int) -> Sequence[Trials]:
        """Trials of a state that an engine has which this one is like; none if it is not solved."""

    @abstractmethod
    def _agree(self, one: State, other: State, rows: EdgeArray) -> bool:
        """Whether two states are equal at these rows and their ends, if that is known at little cost."""
