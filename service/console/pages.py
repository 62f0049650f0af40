"""The frames of the console's pages. Scripts fill them from the REST API; nothing of a graph is in them but its name.

All links are relative, so that the pages stand wherever a proxy puts the service.
"""

from collections.abc import Mapping
from html import escape
from string import Template
from types import MappingProxyType
from typing import Final

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""No inline script or style, nothing of another origin; and text that becomes markup is an error in the browser."""

HEADERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Content-Security-Policy": POLICY,
        # Without a referrer browsers send `Origin: null` with a form, which is refused as that of another page.
        "Referrer-Policy": "same-origin",
        "Vary": "Accept, Cookie",
    }
)

FRAME: Final = Template(
    """<!doctype html>
<html lang="en" data-scope="$scope" data-session="$session">
<head>
<meta charset="utf-8">
<title>$title</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="${root}console/assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="${root}console/assets/console.css">
<script type="module" src="${root}console/assets/$script"></script>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header class="top">
<a class="brand" href="${root}console">\
<img src="${root}console/assets/icon.svg" alt="" width="22" height="22">Headrace</a>
<nav aria-label="Service"><a href="${root}console"$here>Overview</a><a href="${root}status">Status</a>\
<a href="${root}docs">API</a></nav>
<div class="who">$who</div>
</header>
<main id="main" tabindex="-1" data-graph="$graph">
<noscript><p class="notice bad">The console needs JavaScript, which this browser does not run. \
The state of the service without it: <a href="${root}status">status</a>.</p></noscript>
<p class="dim" id="loading">Loading…</p>
</main>
<div id="said" class="said" role="status" aria-live="polite"></div>
</body>
</html>
"""
)


def overview(key_id: str | None, scope: str, *, by_session: bool) -> str:
    """Graphs, workers and jobs. `key_id` is None where the service asks for no keys."""
    return _frame("./", "Headrace console", "overview.js", "", key_id, scope, by_session)


def graph(name: str, key_id: str | None, scope: str, *, by_session: bool) -> str:
    """One graph."""
    return _frame("../../", f"{name} · Headrace console", "graph.js", name, key_id, scope, by_session)


def _frame(root: str, title: str, script: str, name: str, key_id: str | None, scope: str, by_session: bool) -> str:
    if key_id is None:
        who = '<span class="dim">no keys: open to this machine</span>'
    else:
        who = f'<span class="dim">key <code>{escape(key_id)}</code>, {escape(scope)}</span>'
    if by_session:
        who += f'<form method="post" action="{root}logout"><button class="quiet">Log out</button></form>'
    texts = {"title": escape(title), "scope": escape(scope), "graph": escape(name)}
    session, here = "yes" if by_session else "no", "" if name else ' aria-current="page"'
    return FRAME.substitute(texts, root=root, script=script, who=who, session=session, here=here)
