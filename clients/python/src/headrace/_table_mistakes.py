"""Mistakes in tables of edges that would load another graph without a word."""

from typing import Any

import numpy as np

from headrace._errors import InvalidInput


def refuse_units(capacity: Any) -> None:
    """Raise `InvalidInput` for whole numbers that may count units of which nothing says how many make one."""
    values = capacity if isinstance(capacity, np.ndarray) else list(capacity)
    kinds = {type(value) for value in values} if isinstance(values, list) or values.dtype.kind == "O" else set()
    whole = values.dtype.kind in "iu" if isinstance(values, np.ndarray) and not kinds else bool(kinds)
    if whole and all(kind is int or issubclass(kind, np.integer) for kind in kinds):
        raise InvalidInput(
            "the table has 'unlimited' beside whole capacities, as a file of the service has, and does not say "
            "how many decimals they have: pandas and others drop what the file says of that, and of the names of "
            "vertices. Send the file, by its path, or the Arrow table as it was read; or divide the capacities by "
            "10 ** decimals; with decimals=0 they are taken as they stand"
        )
