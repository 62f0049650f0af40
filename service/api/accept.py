"""In which form a caller wants the answer: the `Accept` header, as RFC 9110 section 12.5.1 reads it."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Final

from starlette.datastructures import Headers

from gpu_engine.text.near import did_you_mean
from service.api.headers import MEANT
from service.errors import ServiceError
from service.protocol import (
    ENCODINGS,
    EVENTS_TYPE,
    GEOJSON_TYPE,
    JSON_TYPE,
    LINES_TYPE,
    STRING_EVENTS_TYPE,
    STRING_LINES_TYPE,
    STRINGS_TYPE,
    Encoding,
)

MAX_RANGES: Final = 32
"""How many media ranges of a header are looked at. There are fewer forms than this."""

HTML: Final = "text/html"

VARY: Final = {"Vary": "Accept"}
"""The header `Vary` of an answer that exists in other forms, so that a cache does not give one caller the form of
another."""

OF_ROWS: Final[Mapping[str, tuple[bool, Encoding]]] = MappingProxyType(
    {
        JSON_TYPE: (False, "json"),
        LINES_TYPE: (True, "json"),
        STRINGS_TYPE: (False, "strings"),
        STRING_LINES_TYPE: (True, "strings"),
    }
)
"""Whether an answer of rows comes in lines, and how its amounts are written, by media type."""

QUALITY: Final = re.compile(r"0(\.[0-9]{0,3})?|1(\.0{0,3})?")


def encoding_of(headers: Headers) -> Encoding:
    """The form of an answer with columns: JSON unless another is preferred. Raises not_acceptable."""
    return ENCODINGS[preferred(headers, tuple(ENCODINGS))]


def map_or_encoding_of(headers: Headers) -> tuple[Encoding, ...]:
    """`encoding_of` for the answers that may be a map as well; behind a map the form that is preferred where there is
    none, if the caller takes any. Raises not_acceptable."""
    media_type = preferred(headers, (*ENCODINGS, GEOJSON_TYPE))
    if media_type != GEOJSON_TYPE:
        return (ENCODINGS[media_type],)
    with suppress(ServiceError):
        return "geojson", encoding_of(headers)
    return ("geojson",)


def texts_of(headers: Headers) -> Encoding:
    """The form of an answer that is JSON in any case. Raises not_acceptable."""
    return ENCODINGS[preferred(headers, (JSON_TYPE, STRINGS_TYPE))]


def rows_form(headers: Headers) -> tuple[bool, Encoding]:
    """Whether an answer of rows comes in lines, and how its amounts are written. Raises not_acceptable."""
    return OF_ROWS[preferred(headers, tuple(OF_ROWS))]


def asks_for_lines(headers: Headers) -> bool:
    """Whether lines are what the caller prefers, by their name, of all forms that an answer of rows has."""
    with suppress(ServiceError):
        return rows_form(headers)[0]
    return False


def strings_of_events(headers: Headers) -> bool:
    """Whether the amounts in a stream of events are to be decimal strings. Raises not_acceptable."""
    return preferred(headers, (EVENTS_TYPE, STRING_EVENTS_TYPE)) == STRING_EVENTS_TYPE


def wants_page(headers: Headers) -> bool:
    """Whether a page for people is preferred to JSON, as it is by browsers, which name HTML."""
    with suppress(ServiceError):
        return preferred(headers, (JSON_TYPE, HTML)) == HTML
    return False


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
    """The quality of each media range; empty if everything is accepted.

    The parameter `numbers` belongs to the name of the range; others than that and `q` are passed over.
    """
    given = ",".join(headers.getlist("accept")).lower()
    found: dict[str, float] = {}
    for part in given.split(",", MAX_RANGES)[:MAX_RANGES]:
        name, *parameters = (word.strip() for word in part.split(";"))
        if name:
            numbers = [value for key, value in map(_parameter, parameters) if key == "numbers"]
            found["; numbers=".join([name, *numbers[:1]])] = _quality(parameters)
    return found


def _quality(parameters: Sequence[str]) -> float:
    """The quality that the parameters give: 1 without one, 0 for a malformed one."""
    for name, value in map(_parameter, parameters):
        if name == "q":
            return float(value) if QUALITY.fullmatch(value) else 0.0
    return 1.0


def _parameter(text: str) -> tuple[str, str]:
    """Its name and its value, which may be quoted."""
    name, _, value = text.partition("=")
    return name.strip(), value.strip().strip('"')


def _rank(media_type: str, ranges: dict[str, float]) -> tuple[float, int]:
    """Quality, and how specific the range is that gives it: 3 for the type with its parameter, 0 for any."""
    plain, _, parameter = media_type.partition(";")
    family = f"{media_type.partition('/')[0]}/*"
    own = [(3, media_type)] if parameter else []
    for specific, name in (*own, (2, plain), (1, family), (0, "*/*")):
        if name in ranges:
            return ranges[name], specific
    return 0.0, 0
