"""Connections belong to who opened them: a process, or an event loop."""

from collections.abc import Callable, Hashable
from typing import Generic, NoReturn, TypeVar

from headrace._errors import ClientClosed

Owner = TypeVar("Owner", bound=Hashable)
Pool = TypeVar("Pool")


class Pools(Generic[Owner, Pool]):
    """A pool of connections for each of its owners, which is opened when they first ask.

    Two processes that read from one connection, as a process and its fork would, get the answers of one another.

    Args:
        open: opens a pool.
        whose: who asks.
        is_gone: whether an owner will never ask again here; its pool is let go of.
    """

    def __init__(self, open: Callable[[], Pool], whose: Callable[[], Owner], is_gone: Callable[[Owner], bool]) -> None:
        self._open = open
        self._whose = whose
        self._is_gone = is_gone
        self._pools: dict[Owner, Pool] = {}
        self._is_closed = False

    def __reduce__(self) -> NoReturn:
        raise TypeError("connections cannot be pickled: open a client there, and ask it for its graph(name) or job(id)")

    def own(self) -> Pool:
        """The pool of who asks. Raises `ClientClosed`."""
        if self._is_closed:
            raise ClientClosed("the client is closed: open another one")
        owner = self._whose()
        pool = self._pools.get(owner)
        if pool is None:
            for other in filter(self._is_gone, list(self._pools)):
                self._pools.pop(other, None)
            pool = self._pools.setdefault(owner, self._open())  # another thread may have been faster
        return pool

    def forget(self, pool: Pool) -> None:
        """Whoever asks next opens another one; those who have this one go on with it."""
        owner = self._whose()
        if self._pools.get(owner) is pool:
            self._pools.pop(owner, None)

    def end(self) -> Pool | None:
        """No pool is given any more; the one of who asks, which is to be closed, if there is one."""
        self._is_closed = True
        return self._pools.pop(self._whose(), None)
