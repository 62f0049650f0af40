"""`python -m service.api.collection > docs/headrace.postman_collection.json`: each operation as a request to try.

In the format of Postman collections, version 2.1, which Postman, HTTPie, Insomnia and Bruno read. Bodies are the first
examples of the OpenAPI document; the address, the key and the names in paths are variables of the collection.
"""

import json
import sys
from collections.abc import Mapping
from typing import Any, Final

from service.api.document import document

SCHEMA: Final = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
VARIABLES: Final = {"url": "http://127.0.0.1:8080", "key": ""}
METHODS: Final = ("get", "put", "post", "patch", "delete")


def collection(api: Mapping[str, Any]) -> dict[str, Any]:
    """The collection of an OpenAPI document: a folder for each tag, the requests in the order of the document."""
    folders: dict[str, list[dict[str, Any]]] = {}
    variables: dict[str, Any] = {**VARIABLES}
    for path, operations in api["paths"].items():
        for method in METHODS:
            if method in operations:
                operation = operations[method]
                folders.setdefault(operation.get("tags", ["service"])[0], []).append(request(path, method, operation))
                variables |= {each["name"]: example(each["schema"]) for each in of(operation, "path")}
    return {
        "info": {"name": "Headrace", "schema": SCHEMA, "version": api["info"]["version"]},
        "auth": {"type": "bearer", "bearer": [{"key": "token", "value": "{{key}}", "type": "string"}]},
        "variable": [{"key": key, "value": str(value)} for key, value in variables.items()],
        "item": [{"name": name, "item": items} for name, items in folders.items()],
    }


def request(path: str, method: str, operation: Mapping[str, Any]) -> dict[str, Any]:
    """An operation; its options are listed and switched off."""
    query = [{"key": each["name"], "value": "", "disabled": True} for each in of(operation, "query")]
    parts = path.replace("{", "{{").replace("}", "}}").split("/")[1:]
    url: dict[str, Any] = {"raw": "/".join(["{{url}}", *parts]), "host": ["{{url}}"], "path": parts}
    if query:
        url["query"] = query
    made: dict[str, Any] = {"method": method.upper(), "url": url, "description": operation.get("description", "")}
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is not None:
        body: object = next((each["value"] for each in content.get("examples", {}).values()), {})
        made["header"] = [{"key": "Content-Type", "value": "application/json"}]
        made["body"] = {"mode": "raw", "raw": json.dumps(body, indent=2), "options": {"raw": {"language": "json"}}}
    return {"name": operation["operationId"], "request": made}


def of(operation: Mapping[str, Any], place: str) -> list[dict[str, Any]]:
    """Its parameters in the path, or in the query."""
    return [each for each in operation.get("parameters", []) if each["in"] == place]


def example(schema: Mapping[str, Any]) -> Any:
    return next(iter(schema.get("examples", [])), 1 if schema.get("type") == "integer" else "name")


if __name__ == "__main__":
    json.dump(collection(document()), sys.stdout, indent=1)
    sys.stdout.write("\n")
