"""Two API processes before one service: whichever a request comes to, it is the same request."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.serving import another_api, serving

EDGES = {"tail": [0, 0, 1, 2], "head": [1, 2, 3, 3], "capacity": [3, 2, 4, 2], "source": 0, "sink": 3}
REQUESTS: list[tuple[str, str, Any]] = [
    ("PUT", "/v1/graphs/g", EDGES),
    ("POST", "/v1/graphs/g/snapshots", None),
    ("PATCH", "/v1/graphs/g/capacities", {"edges": [0], "add": [1]}),
    ("DELETE", "/v1/graphs/g", None),
]


@pytest.fixture(scope="module")
def apis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx.Client, ...]]:
    """Three that keep their sets in different orders: see tests/unit/test_digests.py."""
    directory: Path = tmp_path_factory.mktemp("service")
    with (
        serving(directory, environment={"PYTHONHASHSEED": "0"}) as service,
        another_api(directory, {"PYTHONHASHSEED": "1"}) as second,
        another_api(directory, {"PYTHONHASHSEED": "2"}) as third,
    ):
        yield service.http, second, third


def test_a_repeated_request_gets_the_first_answer_at_every_process(apis: tuple[httpx.Client, ...]) -> None:
    first, *others = apis
    for number, (method, path, body) in enumerate(REQUESTS):
        headers = {"Idempotency-Key": f"key-{number}"}
        answer = first.request(method, path, json=body, headers=headers)
        assert answer.status_code < 300, (path, answer.text)
        for other in others:
            again = other.request(method, path, json=body, headers=headers)
            assert (again.status_code, again.content) == (answer.status_code, answer.content), path
