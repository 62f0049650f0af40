"""What to say to a request for a path or with a method that there is not: the one that was probably meant."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from fastapi import FastAPI

from gpu_engine.text.near import nearest

MAX_SEGMENTS: Final = 8
"""A path of more segments is not compared with those there are; no path of the API has as many."""

SHOWN_CHARS: Final = 120

QUESTION: Final = re.compile(
    r"/v1/graphs/[^/]+/(max-flow|min-cut|matching|min-cost-flow|what-if|closure-study|pairs|gomory-hu-tree"
    r"|global-min-cut|parametric|capacity-expansion|circulation|partition)"
)
"""Paths at which POST asks, and changes nothing: the method QUERY (RFC 10008) does as well there."""

ASKED: Final = "questions are asked by POST, with a body of JSON"
INSTEAD: Final[Mapping[tuple[str, str], str]] = {
    ("POST", "/v1/graphs"): "a graph is loaded by PUT /v1/graphs/{name}",
    (
        "POST",
        "/v1/graphs/{name}",
    ): "a graph is loaded by PUT, asked at /max-flow, /min-cut, /matching, /min-cost-flow, and copied by {name}:copy",
    ("PATCH", "/v1/graphs/{name}"): "capacities are changed by PATCH /v1/graphs/{name}/capacities",
    ("PUT", "/v1/graphs/{name}/capacities"): "capacities are changed by PATCH",
    ("POST", "/v1/graphs/{name}/capacities"): "capacities are changed by PATCH",
    ("POST", "/v1/graphs/{name}/watches"): "a watch is made by PUT /v1/graphs/{name}/watches/{watch}",
    ("PUT", "/v1/graphs/{name}/watches"): "a watch is made by PUT /v1/graphs/{name}/watches/{watch}",
    ("PATCH", "/v1/graphs/{name}/watches/{watch}"): "a watch is changed by PUT",
    ("POST", "/v1/webhooks"): "a webhook is made by PUT /v1/webhooks/{webhook}",
    ("PUT", "/v1/webhooks"): "a webhook is made by PUT /v1/webhooks/{webhook}",
    ("PATCH", "/v1/webhooks/{webhook}"): "a webhook is changed by PUT",
    ("POST", "/v1/graphs/{name}/edges"): "edges and vertices are inserted and deleted by PATCH",
    ("DELETE", "/v1/graphs/{name}/edges"): "edges and vertices are inserted and deleted by PATCH",
    ("POST", "/v1/workers/{worker}/drain"): "a worker is drained by PUT",
    ("GET", "/v1/graphs/{name}/costs"): "costs are read with the capacities: GET /v1/graphs/{name}/capacities",
    ("GET", "/v1/graphs/{name}/lower"): "lower bounds are read with the capacities: GET /v1/graphs/{name}/capacities",
    ("POST", "/v1/jobs/{job_id}"): "a job is cancelled by DELETE",
}


def not_found(app: FastAPI, path: str) -> str:
    """What to say about a path that there is not."""
    paths = app.openapi()["paths"]
    asked = [segment for segment in path.split("/") if segment][: MAX_SEGMENTS + 1]
    near = _nearest(asked, paths) or _nearest(["v1", *asked], paths)
    end = f"did you mean {_shown(near)}?" if near else "GET /openapi.json lists the paths there are"
    return f"there is no {_shown(path)}; {end}"


def not_allowed(app: FastAPI, method: str, path: str) -> tuple[str, list[str]]:
    """What to say about a method that a path does not have, and the methods that it has."""
    paths = app.openapi()["paths"]
    for template, operations in paths.items():
        if _fits(path, template):
            methods = sorted({*map(str.upper, operations), *(["HEAD"] if "get" in operations else [])})
            methods += ["QUERY"] if QUESTION.fullmatch(path) else []
            instead = (
                ASKED if method in ("GET", "HEAD") and QUESTION.fullmatch(path) else INSTEAD.get((method, template))
            )
            detail = f"{method} is not for {template}, which takes {' and '.join(methods)}"
            return detail + (f": {instead}" if instead else ""), methods
    return f"{method} is not for {_shown(path)}", []


def _fits(path: str, template: str) -> bool:
    """Whether the path is one of the template's: each ``{name}`` stands for one character or more, none of them "/"."""
    given, known = path.split("/"), template.split("/")
    return len(given) == len(known) and all(map(_fits_segment, given, known))


def _fits_segment(given: str, known: str) -> bool:
    start, brace, rest = known.partition("{")
    if not brace:
        return given == known
    end = rest.partition("}")[2]
    return len(given) > len(start) + len(end) and given.startswith(start) and given.endswith(end)


def query_parameters(app: FastAPI, method: str, template: str) -> dict[str, Mapping[str, Any]]:
    """The parameters that an operation takes in its query, by name, with what each may be."""
    return {each["name"]: each["schema"] for each in _parameters(app, method, template) if each["in"] == "query"}


def header_parameters(app: FastAPI, method: str, template: str) -> frozenset[str]:
    """The headers that an operation has a meaning of its own for, in lower case."""
    return frozenset(each["name"].lower() for each in _parameters(app, method, template) if each["in"] == "header")


def _parameters(app: FastAPI, method: str, template: str) -> Iterable[Mapping[str, Any]]:
    operation: Mapping[str, Any] = app.openapi()["paths"].get(template, {}).get(method.lower(), {})
    found: Iterable[Mapping[str, Any]] = operation.get("parameters", ())
    return found


def _nearest(asked: list[str], templates: Iterable[str]) -> str | None:
    """The path that differs from the one that was asked for in one of its segments at most, and there the least."""
    near: dict[int, dict[str, str]] = {}
    for template in templates:
        known = template.strip("/").split("/")
        if len(known) != len(asked):
            continue
        filled = [had if name.startswith("{") else name for had, name in zip(asked, known, strict=True)]
        other = [place for place, had in enumerate(asked) if had != filled[place]]
        whole = "/" + "/".join(filled)
        if not other:
            return whole
        if len(other) == 1:
            near.setdefault(other[0], {})[filled[other[0]]] = whole
    meant = {place: nearest(asked[place], paths) for place, paths in near.items()}
    return next((near[place][name] for place, name in meant.items() if name is not None), None)


def _shown(path: str) -> str:
    return path if len(path) <= SHOWN_CHARS else f"{path[:SHOWN_CHARS]}..."
