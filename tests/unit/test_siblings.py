"""API processes that share a port: one scrape has the figures of all, each under its number."""

import asyncio
import os
import time
from pathlib import Path

import pytest
from starlette.types import Scope

from service.api.metrics import Metrics, scrape
from service.api.siblings import GONE_AFTER_S, Siblings
from service.host.listeners import listening
from service.host.refusal import CannotServe
from service.host.supervisor import CORES_PER_API, MOST_API_PROCESSES, api_processes
from service.settings import Settings
from tests.unit.test_metrics import figure, read

ASKED: Scope = {"type": "http", "method": "GET"}


def kept(folder: Path, number: int, requests: int) -> Siblings:
    """A process that has answered so many requests, and keeps that."""
    metrics = Metrics()
    for _ in range(requests):
        metrics.observe(ASKED, 200, 0.01)
    siblings = Siblings(folder / f"{number}.json", metrics)
    siblings._keep(folder / f"{number}.json")
    return siblings


def count(siblings: Siblings, number: str) -> float | None:
    figures = read(scrape(siblings._metrics, None, [], {}, siblings.families()))
    labels = {"process": number, "method": "none", "route": "none", "status": "200"}
    return figure(figures, "headrace_http_request_seconds_count", **labels)


def test_whichever_is_asked_shows_all(tmp_path: Path) -> None:
    first, second = kept(tmp_path, 0, 2), kept(tmp_path, 1, 3)
    for asked in (first, second):
        assert (count(asked, "0"), count(asked, "1")) == (2, 3)
    first._metrics.observe(ASKED, 200, 0.01)
    assert (count(first, "0"), count(second, "0")) == (3, 2), "its own are those of now"
    text = scrape(first._metrics, None, [], {}, first.families()).decode()
    announced = [line for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(announced) == len(set(announced))
    assert oct((tmp_path / "0.json").stat().st_mode)[-3:] == "600"


def test_one_alone_has_no_number(tmp_path: Path) -> None:
    alone = Siblings(None, Metrics())
    assert alone.families() == {}
    assert figure(read(scrape(alone._metrics, None, [], {}, {})), "headrace_http_requests_in_flight") == 0


@pytest.mark.parametrize("text", [b"{", b"[1]", b'[["x"]]', b'[["x", "", "gauge", [1]]]', b'[["x", "", "no", []]]'])
def test_what_no_process_wrote_is_left_out(tmp_path: Path, text: bytes) -> None:
    own = kept(tmp_path, 0, 2)
    (tmp_path / "1.json").write_bytes(text)
    kept(tmp_path, 2, 4)
    assert (count(own, "0"), count(own, "1"), count(own, "2")) == (2, None, 4)


def test_a_process_that_is_gone_is_not_shown(tmp_path: Path) -> None:
    own, _ = kept(tmp_path, 0, 2), kept(tmp_path, 1, 3)
    long_ago = time.time() - GONE_AFTER_S - 1
    os.utime(tmp_path / "1.json", (long_ago, long_ago))
    assert count(own, "1") is None


def test_figures_are_kept_until_it_ends_though_a_disk_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.api.siblings.KEPT_EVERY_S", 0.001)
    folder = tmp_path / "later"

    async def run() -> None:
        siblings = Siblings(folder / "0.json", Metrics())
        siblings.start()
        await asyncio.sleep(0.05)  # there is nowhere to write to yet
        folder.mkdir()
        while not (folder / "0.json").exists():
            await asyncio.sleep(0.01)
        await siblings.close()

    asyncio.run(asyncio.wait_for(run(), 30))


def test_several_sockets_of_one_port_that_no_other_service_joins() -> None:
    with listening("127.0.0.1", 0, 3) as listeners:
        (port,) = {listener.getsockname()[1] for listener in listeners}
        for n in (1, 3):
            with (
                pytest.raises(CannotServe, match=f"cannot listen on 127.0.0.1:{port}"),
                listening("127.0.0.1", port, n),
            ):
                pass
    with listening("127.0.0.1", port, 1):
        pass


def test_what_to_choose_instead_is_said() -> None:
    """An address of no machine, and a port that is taken."""
    with pytest.raises(CannotServe, match="choose another --host"), listening("192.0.2.1", 0, 1):
        pass
    with listening("127.0.0.1", 0, 1) as (taken,):
        port = taken.getsockname()[1]
        with pytest.raises(CannotServe, match="choose another --port"), listening("127.0.0.1", port, 1):
            pass


@pytest.mark.parametrize(("cores", "wanted", "n"), [(2, None, 1), (16, None, 4), (99, None, 8), (2, 3, 3), (99, 1, 1)])
def test_how_many(monkeypatch: pytest.MonkeyPatch, cores: int, wanted: int | None, n: int) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(cores))
    assert (CORES_PER_API, MOST_API_PROCESSES) == (4, 8)
    assert api_processes(Settings(api_processes=wanted)) == n
