"""The graphs in a worker's memory, within its budget: who is there, what each holds, and who gives way.

What a graph holds is measured when it comes and after each of its commands. What its engine asks for in between counts
as well, so that graphs solved side by side do not count on the same room.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from gpu_engine.control import Control
from gpu_engine.errors import Cancelled, OutOfMemory
from gpu_engine.footprint import Footprint
from service.worker.graph import Graph

NOTHING: Final = Footprint()
WATCH_S: Final = 0.05
"""How often a thread that waits for room checks for a cancel."""


class Residents:
    """The graphs of one worker by name. Safe from any thread, as long as each graph runs one command at a time.

    ``spill`` gets each graph that has given way. It is nobody's any more, and can be restored.
    """

    def __init__(self, budget: Footprint, spill: Callable[[Graph], None]) -> None:
        self._budget = budget
        self._spill = spill
        self._graphs: OrderedDict[str, Graph] = OrderedDict()
        self._held: dict[str, Footprint] = {}
        self._promised: dict[str, Footprint] = {}
        """The memory that engines were promised since their graph was measured, by graph."""
        self._in_use = NOTHING
        """The sum of what is held and what is promised."""
        self._at_work: dict[str, Control | None] = {}
        self._waiting: set[str] = set()
        self._modest: set[str] = set()
        """Names of graphs whose work displaces no other graph: if there is no room for them they are refused at
        once, and do not wait."""
        self._changed = threading.Condition()

    @property
    def budget(self) -> Footprint:
        """What all graphs together may take."""
        return self._budget

    def resize(self, budget: Footprint) -> None:
        """Set another budget, such as that of a device which has been found. Nobody gives way before more is taken."""
        with self._changed:
            self._budget = budget
            self._wake()

    def get(self, name: str) -> Graph | None:
        return self._graphs.get(name)

    def all(self) -> list[Graph]:
        with self._changed:
            return list(self._graphs.values())

    @property
    def held(self) -> Footprint:
        """What all graphs hold at rest."""
        with self._changed:
            return sum(self._held.values(), NOTHING)

    @property
    def unused(self) -> Footprint:
        """The budget without what graphs hold and what engines were promised."""
        with self._changed:
            return self._budget - self._in_use

    def keep(self, graph: Graph) -> None:
        """Add the graph as the one most recently used, in place of one of the same name."""
        with self._changed:
            self._graphs[graph.name] = graph
        self.touch(graph.name)
        self.measure(graph)

    def touch(self, name: str) -> None:
        """Make the graph the one most recently used."""
        with self._changed:
            if name in self._graphs:
                self._graphs.move_to_end(name)

    def drop(self, name: str) -> bool:
        """Forget a graph and what was promised to it; False if it was not there."""
        with self._changed:
            self._count(self._held, name, NOTHING)
            self._count(self._promised, name, NOTHING)
            self._wake()
            return self._graphs.pop(name, None) is not None

    def measure(self, graph: Graph) -> None:
        """Count what the graph holds in place of what was promised to it."""
        footprint = graph.footprint
        with self._changed:
            self._count(self._promised, graph.name, NOTHING)
            if self._graphs.get(graph.name) is graph:
                self._count(self._held, graph.name, footprint)
            self._wake()

    def settle(self, graph: Graph) -> None:
        """`measure` it if it was promised anything. What a copy of it was promised counts until its command ends."""
        if graph.name in self._promised and self.get(graph.name) is graph:
            self.measure(graph)

    @contextmanager
    def at_work(self, name: str, control: Control | None = None, *, displaces: bool = True) -> Iterator[None]:
        """Around a command of the graph: meanwhile it gives way to no other graph, and others give way to it if it
        ``displaces`` any."""
        with self._changed:
            self._at_work[name] = control
            if not displaces:
                self._modest.add(name)
        try:
            yield
        finally:
            graph = self.get(name)
            if graph is not None:
                self.measure(graph)
            with self._changed:
                del self._at_work[name]
                self._modest.discard(name)
                self._count(self._promised, name, NOTHING)
                self._wake()

    def take(self, name: str, needed: Footprint) -> None:
        """Promise a graph so much more until it is measured; see `gpu_engine.footprint.Room`.

        Idle graphs that hold what is short give way, the least recently used first. If there are none, but others at
        work, it waits for these. Raises `OutOfMemory`, at once if all that would not help, or `Cancelled`.
        """
        while (victim := self._promise(name, needed)) is not None:
            self._spill(victim)

    def promise(self, name: str, amount: Footprint) -> None:
        """Count so much as promised to a name in place of what was, whether there is room or not."""
        with self._changed:
            self._count(self._promised, name, amount)
            self._wake()

    def refuse_hopeless(self, needed: Footprint) -> None:
        """Raises `OutOfMemory` for what would not fit if it were alone."""
        if not needed.within(self.budget):
            raise self._refusal(needed)

    def _promise(self, name: str, needed: Footprint) -> Graph | None:
        """Promise the memory and return None, or drop a graph that gives way and return it."""
        with self._changed:
            while True:
                short = self._in_use + needed - self.budget
                if short.within(NOTHING) or needed.within(NOTHING):
                    self._count(self._promised, name, self._promised.get(name, NOTHING) + needed)
                    return None
                own = self._held.get(name, NOTHING) + self._promised.get(name, NOTHING)
                if name in self._modest or not (own + needed).within(self.budget):
                    raise self._refusal(needed)
                victim = self._idle(name, short)
                if victim is not None:
                    del self._graphs[victim.name]
                    self._count(self._held, victim.name, NOTHING)
                    return victim
                if not self._at_work.keys() - self._waiting - {name}:
                    raise self._refusal(needed)
                self._wait(name)

    def _idle(self, name: str, short: Footprint) -> Graph | None:
        """The least recently used of the other graphs that are idle and hold what is short."""
        for other, graph in self._graphs.items():
            held = self._held.get(other, NOTHING)
            helps = (short.host > 0 and held.host > 0) or (short.device > 0 and held.device > 0)
            if helps and other != name and other not in self._at_work:
                return graph
        return None

    def _wake(self) -> None:
        """Wake all waiting threads. Until they have looked again they do not count as waiting."""
        self._waiting.clear()
        self._changed.notify_all()

    def _wait(self, name: str) -> None:
        """Wait until something has changed, or for a moment. Raises `Cancelled`."""
        control = self._at_work.get(name)
        self._waiting.add(name)
        self._changed.wait(WATCH_S)
        self._waiting.discard(name)
        if control is not None and control.cancelled:
            raise Cancelled("cancelled while it waited for memory")

    def _refusal(self, needed: Footprint) -> OutOfMemory:
        kinds = (
            ("host", needed.host, self._in_use.host, self.budget.host),
            ("device", needed.device, self._in_use.device, self.budget.device),
        )
        parts = [
            f"{more} more bytes of {kind} memory are needed, {used} of {budget} are in use"
            for kind, more, used, budget in kinds
            if more
        ]
        return OutOfMemory("; ".join(parts))

    def _count(self, amounts: dict[str, Footprint], name: str, now: Footprint) -> None:
        self._in_use = self._in_use - amounts.pop(name, NOTHING) + now
        if now != NOTHING:
            amounts[name] = now
