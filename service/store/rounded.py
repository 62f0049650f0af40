"""What rounding has changed of the amounts of a load or an update, as answers and the log say it."""

from typing import Self

from pydantic import BaseModel

from gpu_engine.networks.rounded import Rounded


class RoundedInfo(BaseModel):
    rows: int
    """Amounts that were rounded."""
    largest: str
    """The most that one of them has changed, up or down: an exact decimal."""

    @classmethod
    def of(cls, rounded: Rounded) -> Self | None:
        """None: nothing was rounded."""
        return cls(rows=rounded.rows, largest=rounded.largest_text) if rounded else None
