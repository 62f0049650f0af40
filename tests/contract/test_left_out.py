"""No process of a service loads pandas, which is there for OR-tools, whatever Arrow is asked for; nor SciPy, for which
Numba looks."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gpu_engine.formats import write_arrow
from gpu_engine.networks.edgelist import EdgeList
from tests.graphs import CITY
from tests.serving import Service
from tests.shared_services import Services

MEDIA_TYPE = "application/vnd.apache.arrow.stream"


@pytest.fixture
def service(services: Services) -> Iterator[Service]:
    with services.lent() as running:
        yield running


def below(pid: int) -> Iterator[int]:
    """The processes that this one has started, and those that these have."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            yield child
            yield from below(child)


def test_no_process_loads_pandas_or_scipy(service: Service) -> None:
    http = service.http
    body = write_arrow(EdgeList(2, np.array([0, 1], np.int32), np.array([1, 0], np.int32), np.array([3, 4])))
    assert http.put("/v1/graphs/arrow", content=body, headers={"Content-Type": MEDIA_TYPE}).is_success
    assert http.put("/v1/graphs/city", json=CITY).is_success
    assert http.get("/v1/graphs/city/export", headers={"Accept": MEDIA_TYPE}).is_success
    loaded = {pid: Path(f"/proc/{pid}/maps").read_text() for pid in below(service.process.pid)}
    assert sum("/pyarrow/" in maps for maps in loaded.values()) >= 2
    assert not [pid for pid, maps in loaded.items() if "/pandas/" in maps or "/scipy/" in maps]
