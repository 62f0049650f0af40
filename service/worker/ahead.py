"""The mark of a copy that is read before its graph comes from another worker."""

import time
from dataclasses import dataclass, field
from typing import Final

KEPT_S: Final = 600.0
"""How long a copy is kept if its graph does not come."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """Marks a copy whose graph is still another worker's, which is about to hand it over."""

    run: str
    """The run of the Redis server. A server that was started later may have lost versions, and have written others with
    their numbers."""
    since: float = field(default_factory=time.monotonic)

    @property
    def is_awaited(self) -> bool:
        """Whether the graph may still come."""
        return time.monotonic() - self.since < KEPT_S
