"""/docs: the API as one page for people, made of the OpenAPI document."""

import json
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Any, Final

from fastapi import APIRouter, FastAPI, Request
from starlette.responses import HTMLResponse, Response

from service.api.replies.pages import WIDE, headers_of, page_of

router = APIRouter(include_in_schema=False)

STYLE: Final = (
    WIDE
    + """
:root { color-scheme: light dark; --line: #8884; --dim: #666; --box: #8881; }
@media (prefers-color-scheme: dark) { :root { --dim: #aaa; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.15rem; margin: 2.5rem 0 .4rem; }
h3 { font-size: 1rem; margin: 1.8rem 0 .2rem; font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
code, pre { font-family: ui-monospace, monospace; font-size: .9em; }
pre { background: var(--box); padding: .6rem .8rem; overflow-x: auto; margin: .3rem 0; }
table { border-collapse: collapse; margin: .4rem 0 .8rem; }
th, td { text-align: left; vertical-align: top; padding: .15rem 1rem .15rem 0; }
th { font-weight: 500; color: var(--dim); } td { border-top: 1px solid var(--line); }
.dim { color: var(--dim); } nav { display: flex; flex-wrap: wrap; gap: 0 1rem; }
summary { cursor: pointer; }
"""
)
BOUNDS: Final = (
    ("minimum", "from"),
    ("exclusiveMinimum", "above"),
    ("maximum", "to"),
    ("maxLength", "characters up to"),
)
Document = Mapping[str, Any]


@router.get("/docs")
def docs(request: Request) -> Response:
    """Written once for each process, since it does not change, and on a thread, since it takes a while."""
    app: FastAPI = request.app
    page = getattr(app.state, "docs_page", None)
    if page is None:
        page = app.state.docs_page = docs_page(app.openapi())
    return HTMLResponse(page, headers=headers_of(STYLE, has_form=False))


def docs_page(document: Document) -> str:
    """The markup of the whole page."""
    by_tag: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            tag = (operation.get("tags") or ["other"])[0]
            by_tag.setdefault(tag, []).append("".join(_operation(method, path, operation)))
    title = f"{document['info']['title']}, API version {document['info']['version']}"
    links = "".join(f'<a href="#{escape(tag)}">{escape(tag)}</a>' for tag in (*by_tag, "schemas"))
    parts = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{_prose(document['info'].get('description', ''))}</p>",
        '<p class="dim">The same for programs: <a href="openapi.json">/openapi.json</a>. '
        'In the browser: <a href="console">the console</a>. The state of the service: <a href="status">/status</a>. '
        'With API keys: <a href="login">log in</a>.</p>',
        f"<nav>{links}</nav>",
    ]
    for tag, operations in by_tag.items():
        parts += [f'<h2 id="{escape(tag)}">{escape(tag)}</h2>', *operations]
    parts.append('<h2 id="schemas">schemas</h2>')
    for name, schema in sorted(document["components"]["schemas"].items()):
        parts += _schema(name, schema)
    return page_of(title, STYLE, "\n".join(parts))


def _operation(method: str, path: str, operation: Document) -> Iterator[str]:
    name = escape(operation["operationId"])
    yield f'<h3 id="{name}">{method.upper()} {escape(path)}</h3>'
    yield f"<p>{_prose(operation.get('description') or operation.get('summary', ''))} "
    yield f'<span class="dim">{name}</span></p>'
    parameters = operation.get("parameters", [])
    if parameters:
        rows = [
            (part["name"], part["in"], _type(part.get("schema", {})), part.get("description", ""))
            for part in parameters
        ]
        yield _table(("parameter", "in", "type", ""), rows)
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"<p>Body <code>{escape(media)}</code>: {_type(content.get('schema', {}))}</p>"
        for title, example in content.get("examples", {}).items():
            yield f"<details><summary>{escape(title)}</summary>{_code(example['value'])}</details>"
    answers = [
        (status, answer.get("description", ""), _content(answer))
        for status, answer in operation.get("responses", {}).items()
    ]
    yield _table(("status", "", "answer"), answers)


def _content(answer: Document) -> "Html":
    parts = [
        f"<code>{escape(media)}</code> {_type(content.get('schema', {}))}"
        for media, content in answer.get("content", {}).items()
    ]
    return Html(", ".join(parts))


def _schema(name: str, schema: Document) -> Iterator[str]:
    yield f'<h3 id="schema-{escape(name)}">{escape(name)}</h3><p>{_prose(schema.get("description", ""))}</p>'
    required = schema.get("required", ())
    rows = [
        (member, _type(part), "" if member in required else "may be left out", part.get("description", ""))
        for member, part in schema.get("properties", {}).items()
    ]
    yield _table(("member", "type", "", ""), rows) if rows else f"<p>{_type(schema)}</p>"


class Html(str):
    """Text that is escaped already."""

    __slots__ = ()


def _type(schema: Document) -> Html:
    """A schema in a few words."""
    if "$ref" in schema:
        name = escape(str(schema["$ref"]).rpartition("/")[2])
        return Html(f'<a href="#schema-{name}">{name}</a>')
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return Html(" or ".join(_type(part) for part in schema[several]))
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if values:
        return Html(" | ".join(f"<code>{escape(json.dumps(value))}</code>" for value in values))
    if schema.get("type") == "array":
        return Html(f"array of {_type(schema.get('items', {}))}")
    bounds = [f"{sign} {schema[key]}" for key, sign in BOUNDS if key in schema]
    return Html(escape(", ".join([str(schema.get("type", "anything")), *bounds])))


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{_prose(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="wide"><table><tr>{top}</tr>{body}</table></div>'


def _code(value: object) -> str:
    return f"<pre>{escape(json.dumps(value, indent=1, ensure_ascii=False))}</pre>"


def _prose(text: str) -> Html:
    """A text of the document, whose words between backticks are code."""
    if isinstance(text, Html):
        return text
    pieces = escape(text).split("`")
    return Html("".join(f"<code>{piece}</code>" if at % 2 else piece for at, piece in enumerate(pieces)))
