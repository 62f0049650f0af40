"""Infinity as programs write it into texts: `inf` in Python, `Inf` in R, `Infinity` in JavaScript, `INF` in XML."""

import re
from typing import Any, Final

SPELLED: Final = re.compile(r"inf(?:inity)?", re.ASCII | re.IGNORECASE)


def is_infinity(text: str) -> bool:
    """Whether this is one of these spellings, none of which has a sign."""
    return text[:1] in ("i", "I") and SPELLED.fullmatch(text) is not None


def as_inf(column: list[Any]) -> list[Any]:
    """The column with `inf` for each text that spells it otherwise; what is of a subclass of `str` is no text. 0.1 s
    for a million texts."""
    if str not in set(map(type, column)):
        return column
    return ["inf" if type(item) is str and is_infinity(item) else item for item in column]
