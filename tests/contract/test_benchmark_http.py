"""The HTTP benchmark against a service it starts itself."""

import pytest

from benchmarks import http
from benchmarks.instances import Instance
from benchmarks.serve import service

pytest.importorskip("service.cli", reason="no service in this tree")


def test_http_rows_have_their_fields() -> None:
    instance = Instance("road", "road", {"rows": 12, "columns": 12, "terminals": 6})
    edges = instance.load()
    assert edges is not None
    with service() as url:
        rows = http.measure(instance, edges, url, http.Load(requests=16, warm_up=1, updates=20))
    assert [(row["clients"], row["requests"]) for row in rows] == [(1, 16)] * 3 + [(8, 16)] * 2
    assert all({"p50_ms", "p90_ms", "p99_ms", "per_s", "load_ms"} <= row.keys() for row in rows)
