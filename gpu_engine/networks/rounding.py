"""To how many decimals amounts are kept, and what becomes of those that have more."""

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from gpu_engine.errors import InvalidNetwork
from gpu_engine.types import MAX_DECIMALS, BoolArray, UnitArray

Rounding: TypeAlias = Literal["error", "nearest", "down", "up"]
"""``error``: an amount that has more decimals is refused. ``nearest``: a tie goes to the even neighbour."""

ROUNDINGS: Final[tuple[Rounding, ...]] = get_args(Rounding)

OF_DECIMAL: Final[Mapping[Rounding, str]] = MappingProxyType(
    {"nearest": ROUND_HALF_EVEN, "down": ROUND_FLOOR, "up": ROUND_CEILING}
)
"""The names that the standard library's `decimal` has for them."""


@dataclass(frozen=True, slots=True)
class Precision:
    """What the caller says beside the body. None: the body itself may say so."""

    decimals: int | None = None
    """Without any, the fewest that hold every capacity exactly."""
    rounding: Rounding | None = None
    cost_decimals: int | None = field(default=None, repr=False)
    """Of the costs, in place of `decimals`. Not shown: requests are told apart by how the rest is shown."""
    name: str = field(default="decimals", repr=False)
    """By which name a caller says `decimals`."""

    def of_body(self, decimals: object, rounding: object = None) -> "Precision":
        """With what the body says where the caller does not. Raises `InvalidNetwork` for a statement of the body that
        is none, and for rounding to a number of decimals that nobody states."""
        own, mode = check_decimals(decimals), _check_rounding(rounding)
        precision = Precision(
            own if self.decimals is None else self.decimals,
            mode if self.rounding is None else self.rounding,
            self.cost_decimals,
        )
        if precision.rounds and precision.decimals is None:
            raise InvalidNetwork(f"rounding={precision.rounding} needs decimals=, the places to round to")
        return precision

    def of_costs(self, decimals: object) -> "Precision":
        """The same for costs, of which the body says that they have so many ``decimals``. They are rounded to stated
        places alone."""
        own = check_decimals(decimals, "cost_decimals")
        places = own if self.cost_decimals is None else self.cost_decimals
        return Precision(places, None if places is None else self.rounding, name="cost_decimals")

    def refuse_costs(self, decimals: object = None) -> None:
        """Where edges have no costs: raises `InvalidNetwork` if the body, or the caller, says how many ``decimals``
        these have."""
        detail = "cost_decimals is given, but the edges have no costs"
        if decimals is not None:
            raise InvalidNetwork(detail, field="/cost_decimals")
        if self.cost_decimals is not None:
            raise InvalidNetwork(detail, parameter="cost_decimals")

    @property
    def rounds(self) -> bool:
        return self.rounding not in (None, "error")

    @property
    def mode(self) -> Rounding:
        return self.rounding or "error"

    @property
    def allowed(self) -> int:
        """Decimals that an amount may have if it is not rounded."""
        return MAX_DECIMALS if self.decimals is None else self.decimals

    @property
    def too_fine(self) -> str:
        """What is said of an amount with more decimals than are kept."""
        return more_decimals(self.allowed, "" if self.decimals is not None else f"{self.name}=6 and ")


AS_WRITTEN: Final = Precision()


def more_decimals(allowed: int, places: str = "") -> str:
    """The refusal of an amount with more decimals, and what would round it; ``places`` says how places are stated."""
    noun = "decimal" if allowed == 1 else "decimals"
    return f"has more than {allowed} {noun}; {places}rounding=nearest (or down, up) rounds it"


def check_decimals(decimals: object, name: str = "decimals") -> int | None:
    """The caller's own statement, if there is one."""
    if decimals is None:
        return None
    if type(decimals) is not int or not 0 <= decimals <= MAX_DECIMALS:
        raise InvalidNetwork(f"{name} must be a whole number 0 .. {MAX_DECIMALS}, not {reprlib.repr(decimals)}")
    return decimals


def _check_rounding(rounding: object) -> Rounding | None:
    if rounding is None:
        return None
    for known in ROUNDINGS:
        if rounding == known:
            return known
    raise InvalidNetwork(f"rounding must be one of {', '.join(ROUNDINGS)}, not {reprlib.repr(rounding)}")


def divided(units: UnitArray, step: int | NDArray[np.int64], rounding: Rounding) -> tuple[UnitArray, BoolArray]:
    """``units / step`` rounded to whole numbers (down for ``error``), and which of them were none. Exact."""
    whole, rest = np.divmod(units, step)
    inexact: BoolArray = rest != 0
    if rounding == "up":
        whole += inexact
    elif rounding == "nearest":
        left = step - rest
        whole += (rest > left) | ((rest == left) & (whole % 2 == 1))
    return whole, inexact
