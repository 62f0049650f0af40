"""The request headers with a meaning of their own: Prefer, If-Match, Idempotency-Key, Content-Type, Accept."""

import re
from dataclasses import dataclass
from typing import Final

from fastapi import Request
from starlette.datastructures import Headers

from service.errors import ServiceError
from service.settings import Settings

IDEMPOTENCY_KEY: Final = re.compile(r"[\x20-\x7e]{1,256}")
MAX_PREFERENCES: Final = 16
"""The first ones are looked at; there are not that many kinds."""

ETAG: Final = re.compile(r'"([1-9][0-9]{0,17})"')


@dataclass(frozen=True, slots=True)
class Waiting:
    """How long the caller waits in place; 0: not at all."""

    wait_s: float
    applied: str | None = None
    """For Preference-Applied; None when the caller had no (understood) preference."""


def waiting(headers: Headers, settings: Settings, default_s: float | None = None) -> Waiting:
    """`Prefer: wait=SECONDS` or `respond-async`; preferences we do not know are ignored, as RFC 7240 says.

    Without one it is `default_s`, or the settings' `default_wait_s`.
    """
    for preference in ",".join(headers.getlist("prefer")).lower().split(",", MAX_PREFERENCES)[:MAX_PREFERENCES]:
        token = preference.split(";")[0].strip()
        if token == "respond-async":
            return Waiting(0, token)
        key, _, value = token.partition("=")
        seconds = value.strip().strip('"')
        if key.strip() == "wait" and seconds.isdecimal() and len(seconds) <= 9:
            wait_s = min(int(seconds), settings.max_wait_s)
            return Waiting(wait_s, f"wait={wait_s:g}")
    return Waiting(settings.default_wait_s if default_s is None else default_s)


def if_match(headers: Headers) -> int | None:
    """The version of `If-Match: "7"`; None without the header or for `*`.

    A tag that is none of ours names no version there is: version_conflict.
    """
    value = headers.get("if-match", "*").strip()
    if value == "*":
        return None
    match = ETAG.fullmatch(value)
    if match is None:
        raise ServiceError("version_conflict", 'If-Match names one version, as in If-Match: "7"')
    return int(match[1])


def idempotency_key(headers: Headers) -> str | None:
    """`Idempotency-Key`, 1 to 256 printable ASCII characters."""
    key = headers.get("idempotency-key")
    if key is not None and not IDEMPOTENCY_KEY.fullmatch(key):
        raise ServiceError("invalid_request", "an Idempotency-Key is 1 to 256 printable ASCII characters")
    return key


def media_type(headers: Headers) -> str:
    """The body's media type without parameters, lower case; "" if there is none."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def require_json(request: Request) -> None:
    """Refuse a body that is not declared as JSON (which also keeps web pages of other origins out)."""
    if media_type(request.headers) != "application/json":
        raise ServiceError("unsupported_media_type", "send application/json")


def accepts(headers: Headers, wanted: str) -> bool:
    """Whether `wanted` is named in Accept (no q-values: we offer one alternative to JSON)."""
    return wanted in headers.get("accept", "").lower()
