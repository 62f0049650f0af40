"""The cookie that stands for an API key in a browser: how it is set, and when it counts.

A browser sends its cookies with whatever a page makes it ask for, so this one counts less than a key: for looking at
something, unless a page of another origin asks, and for anything else only where the browser says that a page of ours
asks. `SameSite=Strict` says the same to the browser; both have to fail before another page gets anything done.
"""

import re
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from service.store.sessions import SESSION_S

NAME: Final = "headrace"
SECURE_NAME: Final = "__Host-headrace"
"""Over TLS. Browsers take a cookie of this name from the very host alone, over TLS: nobody else can plant one."""

LOOKING: Final = frozenset({"GET", "HEAD"})

SHOWN: Final = re.compile(r"(?:^|;) *((?:__Host-)?headrace)=(hs(?:_[0-9a-f]{12}){2}_[A-Za-z0-9_-]{43})(?=;|$)")


def session_of(scope: Scope, headers: Headers) -> str | None:
    """The token of the session that the request shows, if its cookie counts.

    Over TLS the cookie of plain HTTP does not count, which others could have planted, nor do two of one name.
    """
    shown = headers.get("cookie", "")
    if NAME not in shown or not _may_speak(scope["method"], headers):
        return None
    tokens: dict[str, list[str]] = {NAME: [], SECURE_NAME: []}
    for name, token in SHOWN.findall(shown):
        tokens[name].append(token)
    counting = tokens[SECURE_NAME] or ([] if scope["scheme"] == "https" else tokens[NAME])
    return counting[0] if len(counting) == 1 else None


def _may_speak(method: str, headers: Headers) -> bool:
    """Whether the browser may have been asked by the person before it, or by a page of ours.

    What comes from another origin has been refused before (`service.api.guards.origin`), but for links that somebody
    follows and for programs, which send neither header.
    """
    sites = {site.lower() for site in headers.getlist("sec-fetch-site")}
    if method in LOOKING:
        return sites <= {"same-origin", "none"}
    return sites == {"same-origin"} or (not sites and "origin" in headers)


def set_session(response: Response, token: str, *, secure: bool) -> None:
    """Have the browser keep the session, out of reach of scripts, for as long as it lasts."""
    name = SECURE_NAME if secure else NAME
    response.set_cookie(name, token, max_age=SESSION_S, path="/", secure=secure, httponly=True, samesite="strict")


def forget_session(response: Response) -> None:
    """Have the browser drop it, by both names."""
    for name, secure in ((NAME, False), (SECURE_NAME, True)):
        response.delete_cookie(name, path="/", secure=secure, httponly=True, samesite="strict")


def is_secure(scope: Scope, headers: Headers) -> bool:
    """Whether the browser speaks TLS: to this process, or to a proxy before it, which the Origin of a form tells."""
    return scope["scheme"] == "https" or headers.get("origin", "").lower().startswith("https://")
