"""Mistakes in what callers pass that are told here, since the service could not say what was meant."""

import math
import re
from collections.abc import Iterable
from decimal import Decimal
from numbers import Real
from typing import Any
from urllib.parse import quote

import numpy as np

from headrace._errors import InvalidInput

GRAPH_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def graph_name(name: object) -> str:
    """The name, if a graph can have it: "..", say, would be the path of something else. Raises `InvalidInput`."""
    if isinstance(name, str) and GRAPH_NAME.fullmatch(name):
        return name
    form = "1 to 128 of a-z, A-Z, 0-9, '.', '_' and '-', first a letter or digit"
    raise InvalidInput(f"{name!r} is no graph name: that is {form}")


def segment(name: object) -> str:
    """The name of a watch, a webhook, a job or a worker as a part of a path.

    Raises `InvalidInput` for what is none. ".." would be the path above: to delete that watch would delete its graph.
    """
    if isinstance(name, str) and name not in ("", ".", ".."):
        return quote(name, safe="")
    raise InvalidInput(f"{name!r:.80} is no name: a name is text of one character or more, and neither '.' nor '..'")


def seconds(given: object, name: str = "timeout_s") -> float:
    """Raises `InvalidInput` for anything but a number of seconds, 0 or more; its message has the ``name``."""
    if isinstance(given, bool) or not isinstance(given, Real) or given != given or given < 0:
        or_none = ", or None" if name == "timeout_s" else ""
        raise InvalidInput(f"{name} is a number of seconds from 0 on{or_none}, not {given!r}")
    return float(given)


def silence(timeout_s: object) -> float:
    """How long a client lets the service be silent. Raises `InvalidInput` for what is no number of seconds above 0."""
    silent_s = 0.0 if timeout_s is None else seconds(timeout_s)  # None is for a call, which may wait without end
    if not 0 < silent_s < math.inf:
        raise InvalidInput(f"timeout_s of a client is a number of seconds above 0, not {timeout_s!r}")
    return silent_s


def refuse_set(column: object, name: str) -> None:
    """Raise `InvalidInput` for a set where the rows of columns belong together."""
    if isinstance(column, set | frozenset):
        raise InvalidInput(f"{name} is a set, which has no order: send a list")


def refuse_index(caps: Any, terminals: Any, name: str) -> None:
    """Raise `InvalidInput` for a Series of pandas whose index names the terminals: it counts by position, so that caps
    would go to others, or to none."""
    if not hasattr(caps, "to_dict") or not hasattr(caps, "index"):
        return
    index = list(caps.index)
    named = None if terminals is None else np.asarray(terminals, object).tolist()
    if named is None or (index not in (named, [*range(len(named))]) and set(index) == set(named)):
        others = "" if named is None else " in another order"
        way = f"{name}=series.to_dict() has them by their names"
        raise InvalidInput(f"{name} is a Series, whose index{others} does not count: {way}")


def n_rows(names: Any, column: str) -> int:
    """How many there are. Raises `InvalidInput` for a single one, or anything else that is no column."""
    try:
        return len(names)
    except TypeError:
        raise InvalidInput(f"{column} is a list, as in {column}=[{names!r:.80}]") from None


def refuse_node(given: object) -> None:
    """Raise `InvalidInput` for a node of NetworkX that is a place, as (8.69, 49.41), or for a list with a tuple."""
    if not isinstance(given, list | tuple):
        return
    is_place = isinstance(given, tuple) and any(isinstance(part, float) for part in given)
    node = given if is_place else next((one for one in given if isinstance(one, tuple)), None)
    if node is not None:
        raise InvalidInput(f'a vertex is named by an integer or text; a node that is a tuple by its str(): "{node}"')


def refuse_beside(what: str, **options: object) -> None:
    """Raise `InvalidInput` for the first option that does nothing beside ``what``."""
    for name, given in options.items():
        if given is not None and given is not False:
            raise InvalidInput(f"{name}= is for a call that waits for its whole answer, and does nothing beside {what}")


def refuse_others(given: Iterable[object], kind: type, wanted: str) -> None:
    """Raise `InvalidInput` for the first that is not of the kind that is `wanted`."""
    for one in given:
        if not isinstance(one, kind):
            raise InvalidInput(f"{wanted}, not {one!r:.80}")


def refuse_missing(column: Any, name: str) -> None:
    """Raise `InvalidInput` with the first row in which a table has nothing."""
    if isinstance(column, np.ndarray):
        if column.dtype.kind == "f":
            rows = np.flatnonzero(np.isnan(column)).tolist()
            _refuse_rows(rows, name, "nan")
        if column.dtype.kind != "O":
            return
    if not isinstance(column, list | tuple | np.ndarray) or not any(map(_may_be_missing, set(map(type, column)))):
        return
    rows = [row for row, value in enumerate(column) if _is_missing(value)]
    _refuse_rows(rows, name, str(column[rows[0]]) if rows else "")


def counted(count: int, one: str, many: str = "") -> str:
    """``1 row``, ``2 rows``: the count, and `one` or `many`, which is `one` with an s unless it is given."""
    return f"{count} {one if count == 1 else many or f'{one}s'}"


def is_nan(amount: float | Decimal) -> bool:
    """Whether it is no number; a signalling NaN of `Decimal` cannot be compared to find out."""
    return amount.is_nan() if isinstance(amount, Decimal) else amount != amount


def flag(value: object, name: str) -> bool:
    """True or False. Raises `InvalidInput` for all else, such as "false", which Python takes for true."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise InvalidInput(f"{name} is True or False, not {value!r:.80}")


def one_or_many(fields: str | Iterable[str]) -> list[str]:
    """The names of fields; one alone may be given as text. Raises `InvalidInput` for what is neither."""
    if not isinstance(fields, Iterable):
        raise InvalidInput(f"names of fields stand in a list, or one alone as text: {fields!r:.80} is neither")
    return [fields] if isinstance(fields, str) else list(fields)


def _refuse_rows(rows: list[int], name: str, shown: str) -> None:
    if rows:
        more = f" (and {len(rows) - 1} more)" if len(rows) > 1 else ""
        raise InvalidInput(f"row {rows[0]}: {name} is missing ({shown}){more}")


def _may_be_missing(kind: type) -> bool:
    """Whether values of this type may stand for nothing; `NAType` is that of pandas."""
    return kind is type(None) or kind.__name__ == "NAType" or issubclass(kind, float | Decimal)


def _is_missing(value: Any) -> bool:
    return _may_be_missing(type(value)) and (not isinstance(value, float | Decimal) or is_nan(value))
