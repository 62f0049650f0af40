"""Pages for people that are one document: an inline style, no script, and nothing loaded from anywhere.

So they are there without the internet, and no script can do anything on them. All links are relative, as those of the
console are, so that a page works wherever a proxy puts the service.
"""

import base64
import hashlib
from html import escape
from typing import Final

from starlette.responses import HTMLResponse, Response

HOME: Final = "/console"

STYLE: Final = """
:root { color-scheme: light dark; --dim: #666; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --dim: #aaa; --bad: #ff8a80; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 32rem; margin: 4rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.5rem; margin: 0 0 .4rem; } .dim { color: var(--dim); } .bad { color: var(--bad); }
label, button { display: block; margin: .8rem 0 0; } button { padding: .3rem 1.2rem; font: inherit; }
input { display: block; width: 100%; box-sizing: border-box; padding: .4rem; font: inherit; }
[hidden] { display: none; }
"""
"""The style of short pages: the log-in and refusals."""

VARIES: Final = {"Vary": "Accept, Cookie"}
"""The header of pages at an address that also answers JSON, or answers otherwise to a caller who is logged in."""

WIDE: Final = """
.wide { overflow-x: auto; background:
  linear-gradient(to right, Canvas 75%, transparent) left / 1.2rem 100% no-repeat local,
  linear-gradient(to left, Canvas 75%, transparent) right -1px top 0 / 1.2rem 100% no-repeat local,
  linear-gradient(to right, #8886, transparent) left / .9rem 100% no-repeat scroll,
  linear-gradient(to left, #8886, transparent) right / .9rem 100% no-repeat scroll; }
"""
"""The style of what may be wider than a phone: a shadow where it goes on, which its end covers."""


def headers_of(style: str, *, has_form: bool) -> dict[str, str]:
    """The headers of a page that has this inline style, and nothing else but perhaps a form for this service."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    target = "'self'" if has_form else "'none'"
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action {target}"
    headers = {"Content-Security-Policy": f"{policy}; frame-ancestors 'none'"}
    if has_form:
        # Without a referrer browsers send `Origin: null` with a form, which is refused as that of another page.
        headers["Referrer-Policy"] = "same-origin"
    return headers


def page_of(title: str, style: str, body: str, head: str = "") -> str:
    """The markup of a page. `body`, and `head`, which is added to the other tags of its head, are markup; `title` is
    text."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">{head}<style>{style}</style></head>'
        f"<body>{body}</body></html>"
    )


PLAIN_HEADERS: Final = headers_of(STYLE, has_form=True) | VARIES


def plain_page(title: str, parts: list[str], status: int) -> Response:
    """A short page of these parts, which are markup; the title is text."""
    return HTMLResponse(page_of(title, STYLE, f"<h1>Headrace</h1>{''.join(parts)}"), status, PLAIN_HEADERS)


def root_of(path: str) -> str:
    """The relative address of the service's root from the page at this path."""
    return "../" * (path.count("/") - 1) or "./"
