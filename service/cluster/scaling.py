"""How many workers a service wants, by how long commands wait."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class Load(Protocol):
    """What `/status` says of a worker."""

    alive: bool
    waiting: int
    oldest_s: float


@dataclass
class Scale:
    """One more when commands have waited too long, one less when nobody has waited for a while; asked now and again."""

    least: int
    most: int
    queue_age_s: float
    """One more worker is wanted when the oldest command of some worker is older than this."""
    idle_s: float
    """One less is wanted when no command has waited for so long."""
    _quiet_since: float | None = None

    def wanted(self, running: int, loads: Sequence[Load], now: float) -> int:
        """How many workers there should be, where ``running`` were asked for. ``now`` is in seconds that only grow."""
        late = max((load.oldest_s for load in loads if load.alive), default=0.0)
        if any(load.waiting for load in loads):
            self._quiet_since = None
        elif self._quiet_since is None:
            self._quiet_since = now
        all_there = sum(load.alive for load in loads) >= running
        if late > self.queue_age_s and all_there:
            return min(running + 1, self.most)
        if self._quiet_since is not None and now - self._quiet_since >= self.idle_s:
            self._quiet_since = now
            return max(running - 1, self.least)
        return max(min(running, self.most), self.least)
