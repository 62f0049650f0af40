"""The parts of the OpenAPI document FastAPI cannot see: bodies we read ourselves, and the problem answers."""

import threading
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from fastapi import FastAPI, Request
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.responses import JSONResponse, Response

from service.models.capacities import PatchBody
from service.models.capacity_expansion import CapacityExpansionBody
from service.models.circulation import CirculationBody
from service.models.closure_study import ClosureStudyBody
from service.models.costs import CostsBody
from service.models.edges import EdgesBody
from service.models.flows import MaxFlowBody
from service.models.graphs import CopyBody, EstimateBody, GraphBody, RestoreBody
from service.models.lower import LowerBody
from service.models.matching import MatchingBody
from service.models.min_cost_flow import MinCostFlowBody
from service.models.pairs import CutTreeBody, GlobalCutBody, PairsBody
from service.models.parametric import ParametricBody
from service.models.partition import PartitionBody
from service.models.problem import ProblemInfo
from service.models.vertices import VerticesBody
from service.models.watches import WatchBody
from service.models.webhooks import WebhookBody
from service.models.what_if import WhatIfBody
from service.models.workers import MoveBody
from service.protocol import ARROW_TYPE, GEOJSON_TYPE, JSON_TYPE, LINES_TYPE, NPZ_TYPE, STRING_LINES_TYPE, STRINGS_TYPE

READ_BY_US: Final[tuple[type[BaseModel], ...]] = (
    GraphBody,
    PatchBody,
    CostsBody,
    LowerBody,
    VerticesBody,
    EdgesBody,
    MaxFlowBody,
    MatchingBody,
    MinCostFlowBody,
    WhatIfBody,
    ClosureStudyBody,
    PairsBody,
    CutTreeBody,
    GlobalCutBody,
    ParametricBody,
    CapacityExpansionBody,
    CirculationBody,
    PartitionBody,
    WatchBody,
    WebhookBody,
    EstimateBody,
    CopyBody,
    RestoreBody,
    MoveBody,
    ProblemInfo,
)
HEADERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ETag": "The version that it is about: see docs/api.md, Conventions",
        "Vary": "`Accept`: the answer has other forms",
        "Content-Location": "Of lines: where whoever is cut off goes on",
        "Content-Disposition": "The name of the file",
        "Repr-Digest": "The SHA-256 of the file",
        "Location": "The job",
        "Retry-After": "Whole seconds after which it may be sent again",
        "Preference-Applied": "What was looked at of `Prefer`",
        "WWW-Authenticate": "`Bearer`, where there is no good API key",
        "Accept-Encoding": "What a body may be encoded in, where it is encoded in something else",
    }
)
"""Headers of answers that mean something, by name."""


def told(*names: str) -> dict[str, Any]:
    """The headers of an answer, by reference."""
    return {"headers": {name: {"$ref": f"#/components/headers/{name}"} for name in names}}


BINARY: Final = {"schema": {"type": "string", "format": "binary"}}
TEXT: Final = {"schema": {"type": "string"}}
EVENTS: Final = {"schema": {"description": "Server-sent events."}}
"""Without a type: some tools hold the whole text against it, and others each event."""
GRAPH_MEDIA: Final[dict[str, Any]] = {
    "application/vnd.apache.arrow.stream": BINARY,
    "application/x-npz": BINARY,
    "application/x-npy": BINARY,
    "text/x-dimacs": TEXT,
    "text/x-matrix-market": TEXT,
    "text/x-adjacency-matrix": TEXT,
    "text/csv": TEXT,
}

STRINGS: Final[dict[str, Any]] = {
    STRINGS_TYPE: {"schema": {"type": "object", "description": "As `application/json`, with each amount a string."}}
}
"""The other form of every answer that has amounts."""
ROW_FORMS: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {LINES_TYPE: TEXT, **STRINGS, STRING_LINES_TYPE: TEXT}, **told("ETag", "Vary", "Content-Location")}
}
"""The responses of a question whose answer is rows: see `service.api.accept.rows_form`."""
TEXT_FORMS: Final[dict[int | str, dict[str, Any]]] = {200: {"content": STRINGS, **told("Vary")}}
"""The responses of a question whose answer has amounts and is about no version."""
OF_VERSION: Final = told("ETag", "Vary")
VERSION_FORMS: Final[dict[int | str, dict[str, Any]]] = {200: {"content": STRINGS, **OF_VERSION}}
"""The responses of a question whose answer is about a version."""
UPDATE_FORMS: Final[dict[int | str, dict[str, Any]]] = {200: {"content": STRINGS, **told("ETag")}}
"""The responses of a change, which no cache keeps."""
FORMS: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {NPZ_TYPE: BINARY, ARROW_TYPE: BINARY, **STRINGS}, **OF_VERSION}
}
"""The responses of a question whose answer has columns, in forms beside JSON: see docs/formats.md."""
MAP: Final = {GEOJSON_TYPE: {"schema": {"type": "object", "description": "A FeatureCollection (RFC 7946)."}}}
FORMS_AND_MAP: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {**FORMS[200]["content"], **MAP}, **OF_VERSION}
}
"""The responses of a question whose answer may be a map as well."""
RESULT_FORMS: Final = {**FORMS_AND_MAP[200]["content"], **ROW_FORMS[200]["content"]}
"""The responses with the result of a job, in the form that its question asked for."""

PROBLEM: Final = {"content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemInfo"}}}}
PROBLEMS: Final[dict[int | str, dict[str, Any]]] = {
    "default": {
        "description": "A refusal, with its stable `code`",
        **PROBLEM,
        **told("Retry-After", "WWW-Authenticate", "Accept-Encoding"),
    }
}
LAST_WORKER: Final[dict[int | str, dict[str, Any]]] = {
    409: {"description": "`worker_drained`: no other worker may have the graphs, nor is one expected", **PROBLEM}
}
NOT_MODIFIED: Final[dict[int | str, dict[str, Any]]] = {
    304: {"description": "The caller has this answer", **told("ETag")}
}
NOT_MODIFIED_FORM: Final[dict[int | str, dict[str, Any]]] = {
    304: {"description": "The caller has this answer, in this form", **OF_VERSION}
}

ON_MISSING: Final = "What becomes of names that the graph does not have; counts for more than the body's own."
"""What the parameter `on_missing` of an update is for: a body in Arrow cannot say it."""

DRY_RUN: Final = "Say what the PATCH would do, and change nothing"
"""What the parameter `dry_run` of an update is for."""

ACCEPTED: Final[dict[int | str, dict[str, Any]]] = {
    202: {
        "description": "Still at work; `Location` names the job",
        **told("Location", "Retry-After", "Preference-Applied"),
        "links": {"job": {"operationId": "get_job", "parameters": {"job_id": "$response.body#/id"}}},
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["id", "location"],
                    "properties": {"id": {"type": "string"}, "location": {"type": "string"}},
                }
            }
        },
    }
}


def _header(name: str, description: str, **form: Any) -> dict[str, Any]:
    return {"name": name, "in": "header", "schema": {"type": "string", **form}, "description": description}


SOME: Final[dict[str, Any]] = {"minLength": 1}
KEY: Final[dict[str, Any]] = {"minLength": 1, "maxLength": 256}


PREFER: Final = _header("Prefer", "`wait=SECONDS` or `respond-async`")
IDEMPOTENCY_KEY: Final = _header("Idempotency-Key", "The same key and body give the first answer again", **KEY)
KEY_IGNORED: Final = _header("Idempotency-Key", "Ignored: a question changes nothing and may be asked again")
IF_MATCH: Final = _header("If-Match", 'The version the change is meant for, as in `"7"`, or a list of them', **SOME)
IF_NONE_MATCH: Final = _header("If-None-Match", "`*`: replace no graph", enum=["*"])
UNLESS_HELD: Final = _header(
    "If-None-Match", "ETags of answers that the caller has, or `*`: 304 if this is one of them", **SOME
)


def request_body(
    model: type[BaseModel],
    examples: dict[str, Any],
    *headers: dict[str, Any],
    required: bool = True,
    media: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """`openapi_extra` of a route that reads its body itself."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    content = {"application/json": {"schema": schema, "examples": examples}, **(media or {})}
    return {"requestBody": {"required": required, "content": content}, "parameters": list(headers)}


SECURITY: Final[dict[str, Any]] = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "`Authorization: Bearer hr_...`"},
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}
"""The ways to show an API key. One of them is needed, or none while the service has no keys."""


def _put_right(document: dict[str, Any]) -> None:
    """What FastAPI makes of the forms of answers, put right.

    JSON comes first: generators take the first form that they know for the answer. `itemSchema`, which it has for event
    streams, is of OpenAPI 3.2: no validator takes a document with it that says that it is of 3.1.
    """
    for operation in (each for path in document["paths"].values() for each in path.values()):
        for answer in operation["responses"].values():
            forms = answer.get("content", {})
            if JSON_TYPE in forms:
                answer["content"] = {JSON_TYPE: forms[JSON_TYPE], **forms}
            for form in forms.values():
                if form.pop("itemSchema", None) is not None:
                    form.update(EVENTS)


def install(app: FastAPI) -> None:
    """Have the application answer with its document, which has the ways to show an API key, and the schemas that
    `request_body` and `PROBLEMS` refer to.

    It is made when somebody asks for it first, on a thread: it takes a third of a second, in which others are answered.
    """
    generate, one_at_a_time = app.openapi, threading.Lock()
    made: list[dict[str, Any]] = []

    def openapi() -> dict[str, Any]:
        with one_at_a_time:
            if not made:
                document = generate()
                _, schemas = models_json_schema(
                    [(model, "validation") for model in READ_BY_US], ref_template="#/components/schemas/{model}"
                )
                document["components"]["schemas"].update(schemas["$defs"])
                document["components"]["securitySchemes"] = SECURITY
                document["components"]["headers"] = {
                    name: {"schema": {"type": "string"}, "description": description}
                    for name, description in HEADERS.items()
                }
                document["security"] = [{}, *({name: []} for name in SECURITY)]
                _put_right(document)
                made.append(document)
        return made[0]

    def answer(_: Request) -> Response:
        return JSONResponse(openapi())

    app.openapi = openapi  # type: ignore[method-assign]  # the way FastAPI documents
    app.add_route("/openapi.json", answer, include_in_schema=False)
