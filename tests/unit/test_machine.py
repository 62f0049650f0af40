"""What memory there is, by the control groups of a process."""

import os
from pathlib import Path

import pytest

from service.machine import memory_bytes
from service.settings import Settings

HERE = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize(
    ("groups", "limits", "found"),
    [
        ("0::/\n", {}, HERE),
        ("0::/\n", {"memory.max": "max\n"}, HERE),
        ("0::/\n", {"memory.max": "1000000\n"}, 1_000_000),  # a container, of the second version
        (
            "0::/a.slice/b.service\n",
            {"a.slice/memory.max": "2000000\n", "a.slice/b.service/memory.max": "max"},
            2_000_000,
        ),
        ("0::/a/b\n", {"a/memory.max": "3000\n", "a/b/memory.max": "2000\n"}, 2000),
        ("4:cpu,memory:/docker/0a1b\n0::/\n", {"memory/memory.limit_in_bytes": "5000\n"}, 5000),  # of the first
        ("4:memory:/job\n", {"memory/job/memory.limit_in_bytes": f"{2**63 - 4096}\n"}, HERE),
        ("4:cpu:/job\n", {"memory/memory.limit_in_bytes": "7\n"}, HERE),
    ],
)
def test_the_least_limit_counts(tmp_path: Path, groups: str, limits: dict[str, str], found: int) -> None:
    (tmp_path / "groups").write_text(groups)
    for name, limit in limits.items():
        path = tmp_path / "mounted" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(limit)
    assert memory_bytes(tmp_path / "groups", tmp_path / "mounted") == found


def test_a_machine_without_control_groups(tmp_path: Path) -> None:
    assert memory_bytes(tmp_path / "none", tmp_path) == HERE


def test_workers_of_one_command_share_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.settings.memory_bytes", lambda: 1 << 32)
    settings = Settings()
    assert (settings.host_budget, settings.body_memory_bytes) == (1 << 31, 1 << 30)
    assert settings.of_one_worker(4).host_budget == 1 << 29
    said = Settings(memory_budget_bytes=5000)
    assert said.of_one_worker(4).host_budget == said.host_budget == 5000
