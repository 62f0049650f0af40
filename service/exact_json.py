"""JSON text with exact numbers: amounts are written from integers, never through floats."""

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Raw:
    """JSON text that is put in as it stands."""

    text: str


def dumps(value: object) -> str:
    """JSON of dicts, lists and plain values, any of which may hold `Raw`. A plain list costs C speed."""
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{dumps(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list) and any(isinstance(item, (Raw, dict, list)) for item in value):
        return "[" + ",".join(dumps(item) for item in value) + "]"
    return json.dumps(value, separators=(",", ":"))
