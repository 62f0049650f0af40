"""The page on which a person types an API key, and how all plain pages look. No script, nothing loaded from anywhere.

All links are relative, as those of the console are, so that the page stands wherever a proxy puts the service.
"""

import base64
import hashlib
import re
from html import escape
from typing import Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from service.store.sessions import SESSION_S

STYLE: Final = """
:root { color-scheme: light dark; --dim: #666; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --dim: #aaa; --bad: #ff8a80; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 32rem; margin: 4rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.5rem; margin: 0 0 .4rem; } .dim { color: var(--dim); } .bad { color: var(--bad); }
label, button { display: block; margin: .8rem 0 0; } button { padding: .3rem 1.2rem; font: inherit; }
input { display: block; width: 100%; box-sizing: border-box; padding: .4rem; font: inherit; }
[hidden] { display: none; }
"""
_HASH: Final = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
FORM_HEADERS: Final = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'",
    # Without a referrer browsers send `Origin: null` with a form, which is refused as that of another page.
    "Referrer-Policy": "same-origin",
    "Vary": "Accept, Cookie",
}

HOME: Final = "/console"
LOCAL: Final = re.compile(r"/(?![/\\])[!-~]{0,1023}")
"""A path of this service: no other host can be meant by it, and no header can be forged with it."""

LOG_OUT: Final = '<form method="post" action="logout"><button>Log out</button></form>'


def local_path(text: str) -> str:
    """Where to go after a log-in: the path, if it is one of this service, or else the console."""
    return text if LOCAL.fullmatch(text) else HOME


def login_page(
    wanted: str, *, root: str = "./", status: int = 200, said: str = "", came_by_link: bool = False
) -> Response:
    """The form. It leads to the page that was `wanted`; `said` is what was wrong with the key or session before.

    `root` leads from the page on which the form stands to that of the whole service.
    """
    to = escape(local_path(wanted))
    parts = [f'<p class="bad">{escape(said)}</p>'] if said else []
    if came_by_link:  # browsers hold a strict cookie back then, but not from the next link, which is ours
        parts.append(
            f'<p>You came by a link from another site. If you are logged in: <a href="{root}{to[1:]}">go on</a>.</p>'
        )
    parts.append(
        f'<form method="post" action="{root}login"><input type="hidden" name="next" value="{to}">'
        '<input name="username" value="API key" autocomplete="username" hidden><label>API key '  # for password managers
        '<input type="password" name="key" autocomplete="current-password" maxlength="200" required autofocus></label>'
        "<button>Log in</button></form>"
    )
    parts.append(
        '<p class="dim">A key is made by <code>headrace keys create</code>. Your browser stays logged in for '
        f"{SESSION_S // 3600} hours, "
        f'with the rights of the key. Programs send the key itself: see <a href="{root}docs">/docs</a>.</p>'
    )
    return _page(parts, status)


def asked_to_log_in(request: Request, said: str) -> Response:
    """The form in place of a page that wants a key: 401, at the same address. `said` is why, to who was logged in."""
    query = request.scope["query_string"].decode("ascii", "replace")
    wanted = request.scope["path"] + (f"?{query}" if query else "")
    by_link = request.headers.get("sec-fetch-site", "none").lower() not in ("none", "same-origin")
    root, said = root_of(request.scope["path"]), said and f"{said[0].upper()}{said[1:]}."
    response = login_page(wanted, root=root, status=401, said=said, came_by_link=by_link)
    response.headers["WWW-Authenticate"] = "Bearer"
    return response


def root_of(path: str) -> str:
    """What leads from the page at this path to that of the whole service."""
    return "../" * (path.count("/") - 1) or "./"


def session_page(key_id: str, scope: str) -> Response:
    """What somebody sees who is logged in."""
    who = f"<p>You are logged in with the key <code>{escape(key_id)}</code>, scope {escape(scope)}.</p>"
    return _page([who, LOG_OUT, f'<p><a href=".{HOME}">The console</a></p>'])


def open_page() -> Response:
    """What somebody sees who wants to log in where no keys were ever made."""
    return _page([f'<p>This service asks for no API keys. <a href=".{HOME}">Go on</a>.</p>'])


def _page(parts: list[str], status: int = 200) -> Response:
    return plain_page("Headrace: log in", parts, status)


def plain_page(title: str, parts: list[str], status: int) -> Response:
    """A page of these parts, which are markup; the title is text."""
    head = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head><body>'
    )
    return HTMLResponse(f"{head}<h1>Headrace</h1>{''.join(parts)}</body></html>", status, FORM_HEADERS)
