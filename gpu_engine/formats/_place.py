"""Where in the caller's text or columns something is wrong."""

import reprlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpu_engine.errors import ROWS_SHOWN, EngineError, InvalidNetwork, pointer
from gpu_engine.types import BoolArray


@dataclass(frozen=True, slots=True)
class Place:
    """Translates an edge row to what the caller can find: a row of a column or a line of a text."""

    name: str = "row"
    first: int = 0
    """The number of edge row 0, if the others follow without a gap."""
    numbers: NDArray[np.int64] | None = None
    """int64[m], the number of every edge row, if they do not."""
    amounts: str = "capacity"
    """The column whose amounts are read."""

    def refuse(
        self,
        bad: BoolArray,
        message: str,
        error: type[EngineError] = InvalidNetwork,
        what: str = "",
        value_of: Callable[[int], object] | None = None,
        hint: str = "",
    ) -> None:
        """Raise `error` with the first rows where `bad` holds; nothing if there are none.

        Args:
            what: the column at fault.
            value_of: the value of a row, if the first one at fault is to be shown.
            hint: the end of the sentence.
        """
        if not bad.any():
            return
        rows = np.flatnonzero(bad)
        found = self.found(rows)
        more = f" (and {len(rows) - 1} more)" if len(rows) > 1 else ""
        subject = f"{what} " if what else ""
        value = f" ({shown(value_of(int(rows[0])))})" if value_of is not None else ""
        field = pointer(what) if what.isidentifier() else None
        raise error(f"{self.name} {found[0]}: {subject}{message}{value}{more}{hint}", **self.members(rows), field=field)

    def found(self, rows: NDArray[np.int64]) -> list[int]:
        """The numbers of the first of these edge rows."""
        first = rows[:ROWS_SHOWN]
        numbers: list[int] = (first + self.first if self.numbers is None else self.numbers[first]).tolist()
        return numbers

    def members(self, rows: NDArray[np.int64]) -> dict[str, list[int]]:
        """What a refusal says of where they are, as members of its `Where`."""
        return {f"{self.name}s": self.found(rows)} if self.name in ("row", "line") else {}


ROWS: Final = Place()


def shown(value: object) -> str:
    """The caller's value in an error message, abridged, as it was written rather than as Python has it."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str) and type(value) is not str:  # a number that is kept as its text
        return reprlib.repr(str(value))[1:-1]
    return reprlib.repr(value)


@contextmanager
def refusing(what: str, *failures: type[Exception]) -> Iterator[None]:
    """Translate a library's own `failures` on malformed input into `InvalidNetwork`; no memory is none of them."""
    try:
        yield
    except (EngineError, MemoryError):
        raise
    except failures as failure:
        reason = " ".join(str(failure).split())[:200] or type(failure).__name__
        if isinstance(failure, UnicodeEncodeError):
            reason = "half a surrogate pair is no character"
        raise InvalidNetwork(f"{what}: {reason}") from failure
