"""What the asynchronous client has for workers."""

from typing import Any

from headrace import _moves as moves
from headrace._async_caller import AsyncCaller


class AsyncWorkers:
    """The workers of the service. To drain them takes a key of scope `admin` that is good for all graphs."""

    _caller: AsyncCaller

    async def workers(self) -> tuple[dict[str, Any], ...]:
        """All workers, as of their last heartbeats."""
        return await self._caller.ask(moves.workers())

    async def drain(self, worker: str) -> moves.Drained:
        """Have a worker give its graphs to the others, and get no new ones. Ask again to see how many are left."""
        return await self._caller.ask(moves.drain(worker))

    async def undrain(self, worker: str) -> moves.Drained:
        """Let a worker have graphs again. Those that it gave away stay where they are."""
        return await self._caller.ask(moves.undrain(worker))
