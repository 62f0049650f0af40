"""What is noted of a copy that is read before its graph comes from another worker."""

import time
from dataclasses import dataclass, field
from typing import Final

KEPT_S: Final = 600.0
"""How long a copy is kept whose graph does not come."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """The graph is another worker's, which is about to hand it over."""

    run: str
    """Of the Redis server: one that was started since may have lost versions, and written others of their number."""
    since: float = field(default_factory=time.monotonic)

    @property
    def is_awaited(self) -> bool:
        """Whether the graph may still come."""
        return time.monotonic() - self.since < KEPT_S
