# Made by scripts/synchronous_client.py from _async_workers.py: change that one.
"""What the synchronous client has for workers."""

from typing import Any

from headrace import _moves as moves
from headrace._caller import Caller


class Workers:
    """The workers of the service. To drain them takes a key of scope `admin` that is good for all graphs."""

    _caller: Caller

    def workers(self) -> tuple[dict[str, Any], ...]:
        """All workers, as of their last heartbeats."""
        return self._caller.ask(moves.workers())

    def drain(self, worker: str) -> moves.Drained:
        """Have a worker give its graphs to the others, and get no new ones. Ask again to see how many are left."""
        return self._caller.ask(moves.drain(worker))

    def undrain(self, worker: str) -> moves.Drained:
        """Let a worker have graphs again. Those that it gave away stay where they are."""
        return self._caller.ask(moves.undrain(worker))
