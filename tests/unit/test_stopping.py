"""In which order `headrace serve` ends its processes."""

import threading
from pathlib import Path
from typing import Any, cast

import pytest

from service.host import supervisor
from service.host.gpus import WorkerPlan
from service.settings import Settings


class Noted:
    """A child, or the lock, of which is noted what is done to it."""

    def __init__(self, name: str, done: list[str]) -> None:
        self.name, self.done = name, done

    def tell_to_stop(self) -> None:
        self.done.append(f"tell {self.name}")

    def stop(self) -> None:
        self.done.append(f"stop {self.name}")

    def write(self, url: str) -> None:
        assert url

    def tell(self, data_gone: bool, url: str) -> None:
        assert not data_gone
        assert url


@pytest.mark.parametrize("ours", [["redis"], []])
def test_workers_are_told_before_one_of_them_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ours: list[str]
) -> None:
    """Told one after the other, those that were left took over the graphs of those that had ended."""
    done: list[str] = []
    children = [Noted(name, done) for name in [*ours, "cpu-0", "cpu-1", "api-0", "api-1"]]
    monkeypatch.setattr(supervisor, "_children", lambda *_: children)
    monkeypatch.setattr(supervisor, "_watch", lambda *_: None)
    settings = Settings(data_dir=tmp_path, port=0, api_processes=2)
    plans = [WorkerPlan("cpu-0"), WorkerPlan("cpu-1")]
    supervisor._serve(settings, plans, cast(Any, Noted("lock", done)), threading.Event(), print)
    together = [["api-0", "api-1"], ["cpu-0", "cpu-1"], *([name] for name in ours)]
    assert done == [f"{what} {name}" for names in together for what in ("tell", "stop") for name in names]
