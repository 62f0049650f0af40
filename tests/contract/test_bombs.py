"""Small bodies that would take much to read are refused at once, before they have cost anything, and harm nobody."""

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests import bombs
from tests.bombs import Bomb
from tests.serving import Service, serving

REFUSED_S = 1.0
"""The goal is 0.1 s on an idle machine; this one may be busy."""
EXTRA_BYTES = 50 << 20

EDGES = {"tail": [0, 0, 1, 2], "head": [1, 2, 3, 3], "capacity": [3, 2.5, "inf", 2], "source": 0, "sink": 3}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("bombs")
    with serving(folder / "data", folder / "log", {"HEADRACE_ACCESS_LOG": "false"}) as service:
        service.wait_ready()
        service.http.put("/v1/graphs/city", json=EDGES).raise_for_status()
        yield service


def family(pid: int) -> list[int]:
    """A process and all its descendants."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(found for child in map(int, children) for found in family(child))]


def field(pid: int, name: str) -> int:
    """Bytes, from /proc/PID/status."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{name}:"))


class Memory:
    """The peak of an API process and its parsers above where they were."""

    def __init__(self, pid: int) -> None:
        self._before = {}
        for member in family(pid):
            Path(f"/proc/{member}/clear_refs").write_text("5")  # the peak begins anew
            self._before[member] = field(member, "VmRSS")

    def extra_bytes(self) -> int:
        return max(field(pid, "VmHWM") - before for pid, before in self._before.items())


def send(service: Service, method: str, path: str, bomb: Bomb) -> tuple[httpx.Response, float]:
    began = time.perf_counter()
    response = service.http.request(method, path, content=bomb.body, headers=bomb.headers)
    return response, time.perf_counter() - began


def trouble(service: Service, method: str, path: str, bomb: Bomb) -> str | None:
    """What is wrong with the answer to a bomb; None if it is refused as it should be."""
    memory = Memory(service.children()["api"])
    response, took_s = send(service, method, path, bomb)
    extra = memory.extra_bytes()
    code = response.json().get("code")
    right = code in bomb.codes and took_s < REFUSED_S and extra < EXTRA_BYTES
    figures = f"{bomb.name}: {response.status_code} {code}, {1e3 * took_s:.0f} ms, {extra >> 20} MiB"
    print(figures)
    return None if right else figures


def test_patches_are_refused(service: Service) -> None:
    path = "/v1/graphs/city/capacities"
    assert list(filter(None, (trouble(service, "PATCH", path, bomb) for bomb in bombs.patches()))) == []
    assert service.http.get("/v1/graphs/city").json()["version"] == 1


def test_graphs_are_refused(service: Service) -> None:
    assert list(filter(None, (trouble(service, "PUT", "/v1/graphs/bomb", bomb) for bomb in bombs.graphs()))) == []
    assert service.http.get("/v1/graphs/bomb").status_code == 404
