"""Workers of a `headrace serve` with its own Redis know which workers there are; those of another Redis do not."""

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from service.host import supervisor
from service.host.gpus import WorkerPlan
from service.queue.models import WorkerReport
from service.settings import Settings
from service.store.keys import Keys
from tests.service_fixtures import StartWorker
from tests.serving import eventually


def told(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What two workers are told, as their processes are started."""
    environments: list[dict[str, str]] = []

    def start(_: list[str], **options: Any) -> None:
        environments.append(options["env"])

    started = SimpleNamespace(pid=1)
    monkeypatch.setattr(supervisor, "subprocess", SimpleNamespace(Popen=start, DEVNULL=-3))
    monkeypatch.setattr(supervisor.redis_server, "find_server", lambda *_: None)
    monkeypatch.setattr(supervisor.redis_server, "start", lambda *_, **__: started)
    plans, lock = [WorkerPlan("cpu-0"), WorkerPlan("cpu-1")], cast(Any, SimpleNamespace(descriptor=0))
    for child in supervisor._children(settings, plans, lock, []):
        if child.name.startswith("cpu-"):
            child.start()
    return [environment["HEADRACE_ONLY_WORKERS"] for environment in environments]


def test_a_serve_tells_its_workers_who_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another Redis may have workers elsewhere, whose graphs would be taken as soon as they are started again."""
    assert told(Settings(data_dir=tmp_path, redis_url=None), monkeypatch) == ["cpu-0,cpu-1"] * 2
    assert told(Settings(data_dir=tmp_path, redis_url="redis://there"), monkeypatch) == ["", ""]


def test_workers_are_told_by_names_with_commas(client: Any, keys: Keys, start_worker: StartWorker) -> None:
    for name in ("expected", "gone"):
        report = WorkerReport(name=name, pid=1, ready=True, engine="cpu", graphs=0, bytes=0, beat_at=time.time())
        client.hset(keys.workers, name, report.model_dump_json())
    start_worker("w0", lease_s=300.0, only_workers="w0,expected")
    eventually(lambda: not client.hexists(keys.workers, "gone"))
    assert client.hexists(keys.workers, "expected")
