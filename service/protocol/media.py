"""The forms in which answers are written."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

JSON_TYPE: Final = "application/json"
NPZ_TYPE: Final = "application/x-npz"
ARROW_TYPE: Final = "application/vnd.apache.arrow.stream"
LINES_TYPE: Final = "application/x-ndjson"
"""Answers of several rows: a line of JSON that says what they are about, one for each row, and one that ends them."""

STRINGS_TYPE: Final = f"{JSON_TYPE}; numbers=string"
"""JSON whose amounts are decimal strings, for readers that take each number for a binary float."""
STRING_LINES_TYPE: Final = f"{LINES_TYPE}; numbers=string"

EVENTS_TYPE: Final = "text/event-stream"
STRING_EVENTS_TYPE: Final = f"{EVENTS_TYPE}; numbers=string"

GEOJSON_TYPE: Final = "application/geo+json"
"""A map of a flow (RFC 7946), of a graph whose vertices have coordinates."""

Encoding: TypeAlias = Literal["json", "npz", "arrow", "strings", "geojson"]
ENCODINGS: Final[Mapping[str, Encoding]] = MappingProxyType(
    {JSON_TYPE: "json", NPZ_TYPE: "npz", ARROW_TYPE: "arrow", STRINGS_TYPE: "strings"}
)
"""In which forms a worker writes an answer with columns, by media type."""
TEXTS: Final[frozenset[Encoding]] = frozenset({"json", "strings"})
"""The forms that are JSON."""

MEDIA_TYPES: Final[Mapping[Encoding, str]] = MappingProxyType(
    {form: media for media, form in ENCODINGS.items()} | {"geojson": GEOJSON_TYPE}
)
