"""Secrets never reach the log: API keys and passwords in URLs are cut out of whatever is written."""

import re
from collections.abc import MutableMapping
from typing import Any, Final

SECRETS: Final = re.compile(r"(hr_[0-9a-f]{12}_)[A-Za-z0-9_-]+|(\w+://[^\s/:@]*:)[^\s@]+(?=@)", re.ASCII)
"""What stays of each is its first group: the key's id, or the URL up to the password."""


def redacted(text: str) -> str:
    return SECRETS.sub(lambda match: f"{match[1] or match[2]}***", text)


def redact(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Processor of structlog, after exceptions have become text."""
    for name, value in event.items():
        if isinstance(value, str):
            event[name] = redacted(value)
        elif not isinstance(value, bool | int | float | None):
            event[name] = redacted(str(value))
    return event
