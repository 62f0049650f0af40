"""When a cluster gets one more worker, and when one less."""

import sys
from dataclasses import dataclass

import pytest
from typer.testing import CliRunner

from service.cli.main import app
from service.cluster.scaling import Scale


@dataclass
class Seen:
    oldest_s: float = 0.0
    waiting: int = 0
    alive: bool = True


def test_one_more_when_commands_wait_long() -> None:
    scale = Scale(1, 3, 2.0, 60.0)
    assert scale.wanted(1, [Seen(1.9, 3)], 0) == 1
    assert scale.wanted(1, [Seen(2.1, 3)], 1) == 2
    assert scale.wanted(2, [Seen(9, 3)], 2) == 2  # the second one is not there yet
    assert scale.wanted(2, [Seen(9, 3), Seen()], 3) == 3
    assert scale.wanted(3, [Seen(9, 3)] * 3, 4) == 3


def test_one_less_when_nobody_waits() -> None:
    scale = Scale(1, 3, 2.0, 60.0)
    quiet = [Seen(), Seen(), Seen()]
    assert [scale.wanted(3, quiet, now) for now in (0, 59, 60, 61, 120, 180)] == [3, 3, 2, 3, 2, 2]
    busy = [Seen(), Seen(0.1, 1)]
    assert [scale.wanted(2, each, now) for each, now in ((quiet[:2], 200), (busy, 230), (quiet[:2], 260))] == [2, 2, 2]
    assert scale.wanted(1, quiet[:1], 400) == 1


def test_what_is_dead_neither_waits_nor_counts() -> None:
    scale = Scale(1, 3, 2.0, 60.0)
    assert scale.wanted(1, [Seen(9, 2, alive=False)], 0) == 1


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--workers", "1"], 1, "this needs Ray: pip install 'headrace-server[ray]'"),
        ([], 2, "say --workers N or --gpus N"),
        (["--workers", "1", "--gpus", "1"], 2, "say --workers N or --gpus N"),
        (["--workers", "3", "--at-most", "2"], 2, "--at-most 2 is less than the 3 workers"),
    ],
)
def test_what_cannot_be_is_said(monkeypatch: pytest.MonkeyPatch, words: list[str], status: int, said: str) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    for module in ("service.cluster.fleet", "service.cluster.actor"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    done = CliRunner().invoke(app, ["up", "--ray", "nowhere:1", *words])
    assert (done.exit_code, said in done.output) == (status, True), done.output
