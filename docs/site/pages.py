"""What of the pages is made from other sources: the reference of the REST API, and that of the Python client."""

import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import headrace
from docutils import nodes
from docutils.nodes import TextElement
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

Document = Mapping[str, Any]
BOUNDS: Final = (
    ("minimum", "from {}"),
    ("exclusiveMinimum", "above {}"),
    ("maximum", "to {}"),
    ("maxLength", "at most {} characters"),
    ("maxItems", "at most {} rows"),
)
ASYNC: Final = "Async"


def fill(page: str, source: list[str], document: Document) -> None:
    """Append to the page `docs/rest` or `docs/sdk` what is made for it. `source` is the one text of the page."""
    if page == "docs/rest":
        source[0] += "\n".join(rest_reference(document))
    elif page == "docs/sdk":
        source[0] += "\n".join(sdk_reference())


def rest_reference(document: Document) -> Iterator[str]:
    """Every operation by its tag, then every schema, as Markdown."""
    by_tag: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            (tag,) = operation["tags"]
            by_tag.setdefault(tag, []).extend(_operation(method, path, operation))
    for tag, lines in by_tag.items():
        yield from ("", f"## {tag.capitalize()}", *lines)
    yield from ("", "## Schemas")
    for name, schema in sorted(document["components"]["schemas"].items()):
        yield from _schema(name, schema)


def _operation(method: str, path: str, operation: Document) -> Iterator[str]:
    name = operation["operationId"]
    yield from ("", f"(operation-{name})=", f"### `{method.upper()} {path}`", "")
    yield f"{operation.get('description') or operation['summary']}\n\nOperation id: `{name}`."
    parameters = [
        (f"`{part['name']}`", part["in"], _type(part.get("schema", {})), part.get("description", ""))
        for part in operation.get("parameters", [])
    ]
    yield from _table(("parameter", "in", "type", "what"), parameters)
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"\nBody `{media}`: {_type(content.get('schema', {}))}"
        for title, example in content.get("examples", {}).items():
            text = json.dumps(example["value"], indent=1, ensure_ascii=False)
            yield f"\n{title}:\n```json\n{text}\n```"
    answers = [
        (status, answer.get("description", ""), _content(answer)) for status, answer in operation["responses"].items()
    ]
    yield from _table(("status", "what", "answer"), answers)


def _content(answer: Document) -> str:
    return ", ".join(f"`{media}` {_type(one.get('schema', {}))}" for media, one in answer.get("content", {}).items())


def _schema(name: str, schema: Document) -> Iterator[str]:
    yield from ("", f"(schema-{name.lower()})=", f"### {name}", "", schema.get("description", ""))
    required = schema.get("required", ())
    rows = [
        (f"`{member}`", _type(part), "" if member in required else "may be left out", part.get("description", ""))
        for member, part in schema.get("properties", {}).items()
    ]
    yield from _table(("member", "type", "", "what"), rows) if rows else ("", _type(schema))


def _type(schema: Document) -> str:
    """A schema in a few words, with links to others."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return f"[{name}](#schema-{name.lower()})"
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return " or ".join(map(_type, schema[several]))
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if values:
        return ", ".join(f"`{json.dumps(value)}`" for value in values)
    if schema.get("type") == "array":
        return f"array of {_type(schema.get('items', {}))}"
    bounds = [words.format(schema[key]) for key, words in BOUNDS if key in schema]
    return ", ".join([str(schema.get("type", "anything")), *bounds])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if rows:
        yield from ("", _row(head), "|---" * len(head) + "|")
        yield from map(_row, rows)


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("\n", " ").replace("|", "\\|") for cell in cells) + " |"


def sdk_reference() -> Iterator[str]:
    """Every name that the package `headrace` offers, by its kind."""
    kinds: dict[str, list[str]] = {"Connections": ["Client", "Retry"], "Graphs and jobs": ["Graph", "Job"]}
    for name in headrace.__all__:
        if name not in ("Client", "Retry", "Graph", "Job"):
            kinds.setdefault(_kind(name), []).append(name)
    for kind in (*list(kinds)[:2], "Functions", "What callers send", "Answers", "Errors", "Types", "To await"):
        yield from ("", f"## {kind}", "", "```{eval-rst}")
        for name in sorted(kinds[kind]) if kind == "Answers" else kinds[kind]:
            yield from _entry(name, kind)
        yield "```"
    yield from ("", "## In the shape of other libraries", "", "```{eval-rst}")
    for module in ("csgraph", "igraph", "maxflow"):
        yield f".. automodule:: headrace.{module}\n   :members:\n"
    yield "```"


def _kind(name: str) -> str:
    found = getattr(headrace, name)
    if not isinstance(found, type):
        return "Functions" if inspect.isfunction(found) else "Types"
    if issubclass(found, Exception):
        return "Errors"
    if name.startswith(ASYNC):
        return "To await"
    sent = name.endswith("Options") or name in ("Update", "Scenario", "NewEdges", "Grid", "GraphColumns")
    return "What callers send" if sent else "Answers"


def _entry(name: str, kind: str) -> Iterator[str]:
    """The directive of one name. Classes to await have the methods of their twins, which are not listed again."""
    if kind == "Functions":
        yield f".. autofunction:: headrace.{name}"
    elif kind == "Types":
        yield f".. py:type:: headrace.{name}\n\n   ``{getattr(headrace, name)}``".replace("headrace._", "headrace.")
    else:
        yield f".. autoclass:: headrace.{name}"
        if kind != "To await":
            yield "   :members:"
        if kind in ("Connections", "Graphs and jobs"):
            yield "   :inherited-members:"
        if kind == "Errors":
            yield "   :show-inheritance:"
    yield ""


def markdown_to_rst(app: Sphinx, what: str, name: str, it: object, options: object, lines: list[str]) -> None:
    """The docstrings are plain text with code between backticks, as in Markdown: make it reStructured text."""
    text = re.sub(r"^```\w*\n(.*?)^```$", _indented, "\n".join(lines), flags=re.S | re.M)
    lines[:] = re.sub(r"(?<!`)`([^`\n]+)`(?!`)", r"``\1``", text).splitlines()


def _indented(block: re.Match[str]) -> str:
    return "::\n\n" + re.sub(r"(?m)^", "    ", block[1])


def public_name(app: Sphinx, env: BuildEnvironment, node: pending_xref, text: TextElement) -> nodes.Element | None:
    """Annotations name a class by the file it stands in; its entry has the name under which programs import it."""
    target = str(node.get("reftarget", ""))
    if not target.startswith("headrace._"):
        return None
    name = f"headrace.{target.rpartition('.')[2]}"
    return env.domains["py"].resolve_xref(env, node["refdoc"], app.builder, "obj", name, node, text)
