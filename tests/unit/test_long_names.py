"""A load whose names are longer than a question could say them: which one it is, and where it stands."""

import io
import json
from typing import Any

import pytest

from gpu_engine.formats import Limits
from service.api.bodies.tasks import JSON, GraphTask
from service.errors import ServiceError
from service.models.columns import MAX_LABEL_CHARS

LONG = "x" * (MAX_LABEL_CHARS + 1)
COLUMNS = {"tail": ["s", "s", "a"], "head": ["a", "t", "t"], "capacity": [3, 1, 2]}


def refusal(media_type: str, body: bytes) -> ServiceError:
    with pytest.raises(ServiceError) as refused:
        GraphTask(media_type, Limits()).run(memoryview(body), io.BytesIO())
    assert refused.value.code == "too_large"
    return refused.value


@pytest.mark.parametrize(
    ("changed", "rows", "field"),
    [
        ({"edge_ids": ["e", "f", LONG]}, [2], "/edge_ids"),
        ({"head": ["a", LONG, LONG]}, [1, 2], None),
        ({"vertex_labels": ["s", "a", "t", LONG]}, [], None),
    ],
)
def test_the_rows_of_a_name_that_is_too_long_are_told(changed: dict[str, Any], rows: list[int], field: str) -> None:
    refused = refusal(JSON, json.dumps(COLUMNS | changed).encode())
    assert refused.rows == rows
    assert refused.where.field == field
    assert refused.detail.endswith("1024 characters, and 'xxxxxxxxxxxxxxxxxxxx'... has 1025")
    assert refused.detail.startswith(f"row {rows[0]}: a label" if rows else "a label")


def test_so_it_is_in_csv() -> None:
    assert refusal("text/csv", f"tail,head,capacity\ns,a,3\ns,{LONG},1\n".encode()).rows == [1]


def test_the_longest_name_is_taken() -> None:
    body = json.dumps(COLUMNS | {"edge_ids": ["e", "f", LONG[1:]]}).encode()
    GraphTask(JSON, Limits()).run(memoryview(body), io.BytesIO())
