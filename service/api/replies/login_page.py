"""The page on which a person types an API key, and what the same address shows to a person who is logged in."""

import re
from html import escape
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from service.api.replies.pages import HOME, plain_page, root_of
from service.store.sessions import SESSION_S

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


def session_page(key_id: str, scope: str) -> Response:
    """What somebody sees who is logged in."""
    who = f"<p>You are logged in with the key <code>{escape(key_id)}</code>, scope {escape(scope)}.</p>"
    return _page([who, LOG_OUT, f'<p><a href=".{HOME}">The console</a></p>'])


def open_page() -> Response:
    """What somebody sees who wants to log in where no keys were ever made."""
    return _page([f'<p>This service asks for no API keys. <a href=".{HOME}">Go on</a>.</p>'])


def _page(parts: list[str], status: int = 200) -> Response:
    return plain_page("Headrace: log in", parts, status)
