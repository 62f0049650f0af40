"""What several modules of tests ask a real service, and how its answers are read."""

from decimal import Decimal
from typing import Any

import httpx


def put(http: httpx.Client, name: str, columns: dict[str, Any]) -> str:
    """Load a graph; returns its path."""
    response = http.put(f"/v1/graphs/{name}", json=columns)
    assert response.status_code in (200, 201), response.text
    return f"/v1/graphs/{name}"


def post(http: httpx.Client, path: str, **body: Any) -> dict[str, Any]:
    """What a question is answered; numbers with a point are exact."""
    response = http.post(path, json=body)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json(parse_float=Decimal)
    return answer


def refusal(response: httpx.Response) -> tuple[int, str, Any]:
    """Status, code, and the member that is at fault, if any."""
    problem = response.json()
    return response.status_code, problem["code"], problem.get("field")
