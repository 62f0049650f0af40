"""Secrets never reach the log: API keys and passwords in URLs are cut out of whatever is written.

The texts come from outside, a request's path among them, and the event loop waits meanwhile. So each is cut to
`LONGEST` first, and the time this takes grows with the text and no faster.
"""

import re
from collections.abc import MutableMapping
from typing import Any, Final

LONGEST: Final = 16 * 1024
"""Characters of one value that the log keeps."""

KEY: Final = re.compile(r"(h[rs]_[0-9a-f]{12}_)[A-Za-z0-9_-]+")
"""An API key: its id, which stays in the log, and the secret of the key, or of a session that stands for it."""

USER: Final = re.compile(r"://[^/:]*:")
"""The part of a URL before its password. No match reaches into the next "://", so a search is linear."""

OPTION: Final = re.compile(r"([?&](?:ssl_)?password=)[^&\s]+")
"""A password among the options of a URL."""

WORDS: Final = re.compile(r"(\s+)")


def redacted(text: str) -> str:
    """The text without its secrets, cut to `LONGEST`. A secret that the cut goes through is left out whole."""
    left_out = len(text) - LONGEST
    if left_out > 0:
        text = text[:LONGEST]
    if "://" in text:
        words = WORDS.split(text)
        last = _without_password(words.pop(), is_whole=left_out <= 0)
        text = "".join([*map(_without_password, words), last])
    if "password=" in text:
        text = OPTION.sub(r"\1***", text)
    if "hr_" in text or "hs_" in text:
        text = KEY.sub(r"\1***", text)
    return text if left_out <= 0 else f"{text}... ({left_out} characters left out)"


def _without_password(word: str, is_whole: bool = True) -> str:
    """The text without a password in a URL, which ends at the last "@": an "@" that is not escaped may be part of it.
    If the end of the word is cut off, nobody knows where that is, and all that could be the password goes."""
    end = word.rfind("@") if is_whole else len(word)
    user = USER.search(word, 0, max(end, 0))
    return word if user is None or user.end() == end else f"{word[: user.end()]}***{word[end:]}"


def redact(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Processor of structlog, after exceptions have become text."""
    for name, value in event.items():
        if isinstance(value, str):
            event[name] = redacted(value)
        elif not isinstance(value, bool | int | float | None):
            event[name] = redacted(str(value))
    return event
