"""How graphs come into a worker's memory before anybody asks for them: its own when it starts, those of a worker that
is away, and those that another one hands over. Each is read in its graph's lane, and of many a few at a time: a command
of one that is not there yet brings it itself.
"""

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final

import redis
import structlog

from gpu_engine.errors import EngineError
from service.errors import ServiceError
from service.store.handover import Handover
from service.store.restores import Restores
from service.worker.graphs import Graphs
from service.worker.membership.gradually import Gradually
from service.worker.running.costs import RESTORE_S_PER_BYTE
from service.worker.running.lanes import SPARE
from service.worker.running.task import Forward

AT_ONCE_S: Final = 0.0
"""What is expected of graphs whose callers wait: they have a slot of short work."""

LONG_S: Final = float("inf")

OVER_AND_OVER: Final = "it was read over and over of late, as its worker began: it is left until somebody asks for it"

log = structlog.get_logger(__name__)


class Intake:
    """Restores graphs of one worker. From any thread."""

    def __init__(
        self,
        graphs: Graphs,
        handover: Handover,
        restores: Restores,
        defer: Callable[[str, Callable[[], None], float], None],
        on_all: Callable[[], None],
        threads: int,
    ) -> None:
        """`defer` queues work in a graph's lane, with the seconds that it is expected to take. `on_all` is called when
        all graphs of the start are there. `threads` is how much long work the lanes do side by side."""
        self._graphs = graphs
        self._handover = handover
        self._restores = restores
        self._defer = defer
        self._gradually = Gradually(defer, threads + SPARE)
        self._on_all = on_all
        self._to_restore = 0
        self._lock = threading.Lock()

    def begin(self, sizes: Mapping[str, int]) -> None:
        """Restore the worker's own graphs, each with its bytes in memory."""
        self._to_restore = len(sizes) + 1
        for name, n_bytes in sizes.items():
            self._gradually.put(name, partial(self._restore_own, name), RESTORE_S_PER_BYTE * n_bytes)
        self._one_restored()

    def take_over(self, names: list[str]) -> None:
        """Restore the graphs of a worker that is away, where they displace no others."""
        for name, n_bytes in self._graphs.sizes(names).items():
            restore = partial(self._restore_unasked, name, displaces=False)
            self._gradually.put(name, restore, RESTORE_S_PER_BYTE * n_bytes)

    def handed_over(self, name: str, reply: str) -> None:
        """Restore a graph that another worker has handed over, before anybody asks for it, and tell that worker."""
        self._graphs.expect(name)  # what is still solved ahead of it gives way

        def restore() -> None:
            self._restore(name)
            self._answer(reply, self._graphs.states_of(name))

        self._defer(name, restore, AT_ONCE_S)

    def prepare(self, name: str, reply: str) -> None:
        """Read a graph that another worker is about to hand over, and tell it when it is there."""

        def read_ahead() -> None:
            states = 0
            try:
                states = self._graphs.read_ahead(name)
            except (redis.RedisError, EngineError, ServiceError) as error:
                log.warning("not_read_ahead", graph=name, error=str(error))
            except Exception:  # whoever waits is answered all the same
                log.exception("not_read_ahead", graph=name)
            self._answer(reply, states)

        self._defer(name, read_ahead, LONG_S)

    def give_back(self, name: str, home: str) -> None:
        """Hand a graph to the worker that it belongs to, behind what its lane has."""
        self._defer(name, partial(self._graphs.hand_back, name, home), AT_ONCE_S)

    def _restore_own(self, name: str) -> None:
        self._restore_unasked(name)
        self._one_restored()

    def _restore_unasked(self, name: str, *, displaces: bool = True) -> None:
        with suppress(redis.RedisError):  # not counted, as Redis is away or full
            if self._restores.is_one_too_many(name):
                log.warning("not_restored", graph=name, error=OVER_AND_OVER)
                return
        self._restore(name, displaces=displaces)

    def _restore(self, name: str, *, displaces: bool = True) -> None:
        try:
            self._graphs.restore(name, displaces=displaces)
        except (redis.RedisError, EngineError, ServiceError, Forward) as error:
            log.warning("not_restored", graph=name, error=str(error))  # tried again when it is used
        except Exception:
            log.exception("not_restored", graph=name)

    def _one_restored(self) -> None:
        with self._lock:
            self._to_restore -= 1
            are_all_there = self._to_restore == 0
        if are_all_there:
            self._on_all()

    def _answer(self, reply: str, states: int) -> None:
        if reply:
            with suppress(redis.RedisError):  # it waits for a while, and goes on without
                self._handover.answer(reply, str(states))
