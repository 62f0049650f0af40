"""The committed OpenAPI document is the one the application has, and it hangs together."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute, iter_route_contexts

from gpu_engine.formats import MEDIA_TYPES
from service.api.app import create_app
from service.api.collection import collection
from service.api.replies.signposts import header_parameters, query_parameters
from service.errors import STATUS
from service.settings import Settings

ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "docs" / "openapi.json"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return create_app(Settings()).openapi()


def test_the_committed_document_is_current(document: dict[str, Any]) -> None:
    command = "python -m service.api.document > docs/openapi.json"
    assert json.loads(COMMITTED.read_text()) == document, f"run: {command}"


def test_the_committed_collection_is_current(document: dict[str, Any]) -> None:
    committed = json.loads((ROOT / "docs" / "headrace.postman_collection.json").read_text())
    command = "python -m service.api.collection > docs/headrace.postman_collection.json"
    assert committed == collection(document), f"run: {command}"
    requests = [each["request"] for folder in committed["item"] for each in folder["item"]]
    assert len(requests) == sum(len(operations) for operations in document["paths"].values())
    variables = {each["key"] for each in committed["variable"]}
    for each in requests:
        assert {*re.findall(r"\{\{(\w+)\}\}", each["url"]["raw"])} <= variables
        if each["method"] in ("PATCH", "POST") and "body" in each:
            assert json.loads(each["body"]["raw"]) is not None


def test_what_is_read_from_the_routes_is_what_the_document_says(document: dict[str, Any]) -> None:
    """Refusals go by the routes: the document is not there before somebody has asked for it."""
    app = create_app(Settings())
    paths = document["paths"]
    assert app.state.operations == {path: {method.upper() for method in paths[path]} for path in paths}
    for context in iter_route_contexts(app.routes):
        route = context.original_route
        if not isinstance(route, APIRoute) or not route.include_in_schema:
            continue
        for method in route.methods:
            told = paths[route.path_format][method.lower()].get("parameters", [])
            whole = {each["name"]: '"integer"' in json.dumps(each["schema"]) for each in told if each["in"] == "query"}
            assert query_parameters(route) == whole, route.path
            headers = {each["name"].lower() for each in told if each["in"] == "header"}
            assert header_parameters(route) == headers, route.path


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    for name in re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document)):
        assert name in document["components"]["schemas"]


def test_every_form_is_told_by_what_this_version_of_openapi_has(document: dict[str, Any]) -> None:
    """Validators and generators refuse the whole document else."""
    assert document["openapi"] == "3.1.0"
    for operation in (each for path in document["paths"].values() for each in path.values()):
        for told in (operation.get("requestBody", {}), *operation["responses"].values()):
            for form in told.get("content", {}).values():
                assert {"schema"} <= set(form) <= {"schema", "example", "examples", "encoding"}


def test_json_is_the_first_form_of_all_that_have_it(document: dict[str, Any]) -> None:
    """Generators take the first that they know: a map, of which nothing is told, for the answer of a flow."""
    for each in (document, json.loads(COMMITTED.read_text())):
        for operation in (operation for path in each["paths"].values() for operation in path.values()):
            for told in (operation.get("requestBody", {}), *operation["responses"].values()):
                forms = list(told.get("content", {}))
                assert "application/json" not in forms[1:], operation["operationId"]


def test_every_operation_says_what_it_refuses(document: dict[str, Any]) -> None:
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert "default" in operation["responses"], (method, path)
            assert "422" not in operation["responses"], (method, path)


def test_a_drain_says_when_it_is_refused_for_good(document: dict[str, Any]) -> None:
    """Its 503 is worth another try, and this is not."""
    answer = document["paths"]["/v1/workers/{worker}/drain"]["put"]["responses"]["409"]
    assert "`worker_drained`" in answer["description"]
    assert answer["content"] == document["paths"]["/livez"]["get"]["responses"]["default"]["content"]


def test_every_member_of_a_body_or_an_answer_has_a_type(document: dict[str, Any]) -> None:
    """No generated client has to guess: amounts are one component, everywhere."""
    schemas = document["components"]["schemas"]
    says = {"type", "anyOf", "$ref", "enum", "const", "oneOf"}
    for name, schema in schemas.items():
        for member, content in schema.get("properties", {}).items():
            parts = [content, *content.get("anyOf", ())]
            parts += [part["items"] for part in parts if "items" in part]
            assert all(says & set(part) for part in parts), (name, member)
    amount = {"$ref": "#/components/schemas/Amount"}
    assert schemas["MaxFlowInfo"]["properties"]["value"] == schemas["CutInfo"]["properties"]["pays"]["items"] == amount
    for name, member in (("PatchBody", "set"), ("MaxFlowBody", "supply"), ("GraphBody", "cost")):
        assert {"type": "array", "items": amount} in schemas[name]["properties"][member]["anyOf"]
    assert amount in schemas["MinCostFlowBody"]["properties"]["value"]["anyOf"]


def test_every_form_of_a_load_and_of_a_result_is_in_the_document(document: dict[str, Any]) -> None:
    load = document["paths"]["/v1/graphs/{name}"]["put"]["requestBody"]["content"]
    assert set(load) == set(MEDIA_TYPES)
    forms: set[str] = set()
    for operations in document["paths"].values():
        answers = operations.get("post", {}).get("responses", {})
        if {"200", "202"} <= set(answers):
            forms |= set(answers["200"]["content"])
    assert "application/x-ndjson" in forms
    result = document["paths"]["/v1/jobs/{job_id}/result"]["get"]["responses"]["200"]["content"]
    assert set(result) == forms


def test_a_page_is_never_said_to_be_a_job(document: dict[str, Any]) -> None:
    for page in ("capacities", "vertices"):
        assert "202" not in document["paths"][f"/v1/graphs/{{name}}/{page}"]["get"]["responses"]


def test_questions_ignore_keys_and_say_so(document: dict[str, Any]) -> None:
    """Whatever leaves something behind takes a key, whatever leaves nothing does not."""
    said: dict[bool, set[str]] = {True: set(), False: set()}
    for path, operations in document["paths"].items():
        for operation in operations.values():
            for parameter in operation.get("parameters", ()):
                if parameter["name"] == "Idempotency-Key":
                    said[parameter["description"].startswith("Ignored")].add(path.rpartition("}")[2])
    rows = {"/what-if", "/closure-study", "/pairs", "/gomory-hu-tree", "/global-min-cut"}
    assert said[True] == rows | {"/max-flow", "/min-cut", "/matching", "/min-cost-flow", *NEWER} - {"/vertices"}
    assert said[False] == {
        "",
        "/capacities",
        "/costs",
        "/lower",
        "/vertices",
        "/edges",
        "/snapshots",
        ":copy",
        ":restore",
        ":move",
        ":rotate",
        ":redeliver",
    }


NEWER = ("/parametric", "/capacity-expansion", "/circulation", "/partition", "/vertices")


def test_bodies_are_strict_and_have_examples(document: dict[str, Any]) -> None:
    for name in (
        *("PatchBody", "OperationBody", "CostsBody", "CostOperation", "EstimateBody", "GraphBody"),
        *("VerticesBody", "VertexOperation"),
        *("MaxFlowBody", "MatchingBody", "MinCostFlowBody", "WhatIfBody", "ScenarioBody", "ClosureStudyBody"),
        *("PairsBody", "CutTreeBody", "GlobalCutBody", "ParametricBody", "CapacityExpansionBody"),
        *("CirculationBody", "PartitionBody"),
    ):
        assert document["components"]["schemas"][name]["additionalProperties"] is False
    resources = ("", "/capacities", "/costs", "/max-flow", "/matching", "/min-cost-flow", "/what-if", "/closure-study")
    pairs = ("/pairs", "/gomory-hu-tree", "/global-min-cut")
    for resource in (*resources, *pairs, *NEWER):
        path = f"/v1/graphs/{{name}}{resource}"
        for operation in document["paths"][path].values():
            content = operation.get("requestBody", {}).get("content", {})
            assert not content or content["application/json"]["examples"], path


def test_every_code_is_documented() -> None:
    table = (ROOT / "docs" / "api.md").read_text()
    documented = {code: int(status) for code, status in re.findall(r"^\| ([a-z_]+) \| (\d{3}) \|", table, re.M)}
    assert documented == STATUS
