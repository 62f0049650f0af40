"""What to say to a request for a path or with a method that there is not: the one that was probably meant.

It is read from the routes. The OpenAPI document says the same, and takes a third of a second to make.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, get_args

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from gpu_engine.text.near import nearest

MAX_SEGMENTS: Final = 8
"""A path of more segments is not compared with those there are; no path of the API has as many."""

SHOWN_CHARS: Final = 120

QUESTION: Final = re.compile(
    r"/v1/graphs/[^/]+/(max-flow|min-cut|matching|min-cost-flow|what-if|closure-study|pairs|gomory-hu-tree"
    r"|global-min-cut|parametric|capacity-expansion|circulation|partition)"
)
"""Paths at which POST asks, and changes nothing: the method QUERY (RFC 10008) does as well there."""

NAME: Final = re.compile(r"\{\w*\}")
"""What stands for any name in the path of a route."""

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
    ("GET", "/v1/graphs/{name}/edges"): "edges are read with their capacities: GET /v1/graphs/{name}/capacities",
    ("POST", "/v1/workers/{worker}/drain"): "a worker is drained by PUT",
    ("GET", "/v1/graphs/{name}/costs"): "costs are read with the capacities: GET /v1/graphs/{name}/capacities",
    ("GET", "/v1/graphs/{name}/lower"): "lower bounds are read with the capacities: GET /v1/graphs/{name}/capacities",
    ("POST", "/v1/jobs/{job_id}"): "a job is cancelled by DELETE",
}


def not_found(app: FastAPI, path: str) -> str:
    """What to say about a path that there is not."""
    paths = _operations(app)
    asked = [segment for segment in path.split("/") if segment][: MAX_SEGMENTS + 1]
    near = _nearest(asked, paths) or _nearest(["v1", *asked], paths)
    if near:
        end = f"did you mean {_shown(near)}?"
    elif asked[:1] == ["console"]:
        end = "the console is at /console"
    else:
        end = "GET /openapi.json lists the paths there are"
    return f"there is no {_shown(path)}; {end}"


def not_allowed(app: FastAPI, method: str, path: str) -> tuple[str, list[str]]:
    """What to say about a method that a path does not have, and the methods that it has."""
    known = {**_operations(app), **app.state.pages}
    template = _closest(path, known)
    if template is None:
        return f"{method} is not for {_shown(path)}", []
    operations = known[template]
    methods = sorted({*operations, *(["HEAD"] if "GET" in operations else [])})
    methods += ["QUERY"] if QUESTION.fullmatch(path) else []
    instead = ASKED if method in ("GET", "HEAD") and QUESTION.fullmatch(path) else INSTEAD.get((method, template))
    taken = " and ".join(filter(None, (", ".join(methods[:-1]), methods[-1])))
    detail = f"{method} is not for {template}, which takes {taken}"
    return detail + (f": {instead}" if instead else ""), methods


def meant(app: FastAPI, path: str) -> str | None:
    """The path of the API that this one is, as its routes write it. None: there is none."""
    return _closest(path, _operations(app))


def _closest(path: str, templates: Iterable[str]) -> str | None:
    """The path that this one is; of several the one that leaves the least to names: ``x:copy`` is no graph, and a copy
    is made of it."""
    fitting = (template for template in templates if _fits(path, template))
    return max(fitting, key=lambda template: len(NAME.sub("", template)), default=None)


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


def query_parameters(route: APIRoute) -> dict[str, bool]:
    """The parameters that a route takes in its query, and of each whether it is a whole number."""
    given = {
        field.alias: field.field_info.annotation for part in _parts(route.dependant) for field in part.query_params
    }
    return {name: annotation is int or int in get_args(annotation) for name, annotation in given.items()}


def header_parameters(route: APIRoute) -> frozenset[str]:
    """The headers that a route has a meaning of its own for, in lower case."""
    read_by_us = [each["name"] for each in (route.openapi_extra or {}).get("parameters", ()) if each["in"] == "header"]
    resolved = [field.alias for part in _parts(route.dependant) for field in part.header_params]
    return frozenset(name.lower() for name in (*read_by_us, *resolved))


def _parts(function: Dependant) -> Iterator[Dependant]:
    """A function that the framework calls, and all those whose answers it is given."""
    yield function
    for each in function.dependencies:
        yield from _parts(each)


def install(app: FastAPI, routes: Iterable[object]) -> None:
    """Keep for the functions above what the service can be asked for: the methods of each path. Pages for people are
    kept apart from the API, as none of them is what somebody meant who asked for another path."""
    operations: dict[str, set[str]] = {}
    pages: dict[str, set[str]] = {}
    for route in routes:
        if isinstance(route, APIRoute):
            kept = operations if route.include_in_schema else pages
            kept.setdefault(route.path_format, set()).update(route.methods or ())
    app.state.operations, app.state.pages = operations, pages


def _operations(app: FastAPI) -> Mapping[str, set[str]]:
    found: Mapping[str, set[str]] = app.state.operations
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
