"""What a name stands for in the catalogue: what a worker must agree with before it touches a graph it holds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from service.store.keys import Keys
from service.store.unreadable import reading
from service.store.watched import Read

HELD: Final = ("version", "epoch", "base")
"""The fields of a graph's hash that `Held` has."""


class Held(BaseModel):
    """A graph as the catalogue has it."""

    model_config = {"frozen": True}

    graph_id: str
    version: int
    epoch: int
    base: str
    """Blob of the packed edge list the graph was loaded from."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a name stands for."""

    graph_id: str | None = None
    """None: there is no graph of the name."""
    owner: str | None = None
    """The worker that is to serve it."""
    row: Sequence[bytes] | None = None
    """The fields `HELD` of the graph; None: there is none, or it is being loaded or removed just now."""
    key: str = ""
    """Where they lie."""

    @property
    def held(self) -> Held | None:
        """The graph, if it is there. Raises `Unreadable`: who loads or deletes the name need not look."""
        if self.graph_id is None or self.row is None:
            return None
        with reading("the graph", self.key):
            version, epoch, base = self.row
            return Held(graph_id=self.graph_id, version=int(version), epoch=int(epoch), base=base.decode())


def before_found(keys: Keys, name: str, guess: str) -> tuple[Read, ...]:
    """What to read for `found`: what the graph of the id `guess` is at, and then whether it is the one of this name."""
    return ("HMGET", keys.graph(guess), *HELD), ("HGET", keys.names, name), ("HGET", keys.owners, name)


def found(keys: Keys, guess: str, answers: Sequence[Any]) -> Found | None:
    """What the name stands for by these answers; None if that is not the graph of the id `guess`.

    An id is never used twice. So a graph that has the name after its row was read had it then, and was at that
    version: the reads need no MULTI around them.
    """
    row, current, owner = answers  # the first is None for a key of another kind, which is looked at once more
    if row is None or current != guess.encode() or None in row:
        return None
    return Found(guess, None if owner is None else owner.decode(errors="replace"), row, keys.graph(guess))
