"""In which form a caller wants the answer: the `Accept` header, as RFC 9110 section 12.5.1 reads it."""

import re
from collections.abc import Sequence
from typing import Final

from starlette.datastructures import Headers

from gpu_engine.text.near import did_you_mean
from service.api.headers import MEANT
from service.errors import ServiceError
from service.protocol import ENCODINGS, Encoding

MAX_RANGES: Final = 32
"""The first ones are looked at; there are not that many forms."""

VARY: Final = {"Vary": "Accept"}
"""Of an answer that has other forms: a cache must not give one caller the form of another."""

QUALITY: Final = re.compile(r"0(\.[0-9]{0,3})?|1(\.0{0,3})?")


def encoding_of(headers: Headers) -> Encoding:
    """The form of an answer with columns: JSON unless another is preferred. Raises not_acceptable."""
    return ENCODINGS[preferred(headers, tuple(ENCODINGS))]


def preferred(headers: Headers, offered: Sequence[str]) -> str:
    """The media type that the caller prefers among those on offer; the first of them without `Accept`.

    The most specific range that a type falls under gives its quality. Among types of the same quality the one that is
    named more specifically is taken, then the one that is offered first. Raises not_acceptable, with what is offered.
    """
    ranges = _ranges(headers)
    if not ranges:
        return offered[0]
    ranked = [(*_rank(media_type, ranges), -place) for place, media_type in enumerate(offered)]
    quality, _, place = max(ranked)
    if quality == 0:
        given = next(iter(ranges))
        hint = f"; did you mean {MEANT[given]}?" if MEANT.get(given) in offered else did_you_mean(given, offered)
        said = ", ".join(headers.getlist("accept"))[:100]
        detail = f"Accept {said!r} is not answered here: there are {', '.join(offered)}{hint}"
        raise ServiceError("not_acceptable", detail, header="Accept")
    return offered[-place]


def _ranges(headers: Headers) -> dict[str, float]:
    """The quality of each media range; empty if everything is accepted. Parameters other than `q` are passed over."""
    given = ",".join(headers.getlist("accept")).lower()
    found: dict[str, float] = {}
    for part in given.split(",", MAX_RANGES)[:MAX_RANGES]:
        name, *parameters = (word.strip() for word in part.split(";"))
        if name:
            found[name] = _quality(parameters)
    return found


def _quality(parameters: Sequence[str]) -> float:
    """1 unless it is said; 0 for what is no quality."""
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            return float(value) if QUALITY.fullmatch(value.strip()) else 0.0
    return 1.0


def _rank(media_type: str, ranges: dict[str, float]) -> tuple[float, int]:
    """Quality, and how specific the range is that gives it: 2 for the type itself, 0 for any."""
    family = f"{media_type.partition('/')[0]}/*"
    for specific, name in ((2, media_type), (1, family), (0, "*/*")):
        if name in ranges:
            return ranges[name], specific
    return 0.0, 0
