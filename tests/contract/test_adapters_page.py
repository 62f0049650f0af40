"""docs/adapters.md: each program runs in a process of its own, and prints what its comments say."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.foreign.installed import search_path, write_metadata

ROOT = Path(__file__).parents[2]
PROGRAMS = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "adapters.md").read_text(), re.S)
SHOWN = re.compile(r"print\(.*\)  # (.+)")


@pytest.fixture(scope="module")
def environment(service_url: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    installed = tmp_path_factory.mktemp("installed")
    write_metadata(installed)
    return os.environ | {"HEADRACE_URL": service_url, "PYTHONPATH": search_path(installed)}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.partition("\n")[0][:40])
def test_programs(program: str, environment: dict[str, str], beside_examples: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env=environment,
        cwd=beside_examples,
        capture_output=True,
        text=True,
    )
    assert run.stdout.splitlines() == SHOWN.findall(program), run.stderr


def test_there_are_some() -> None:
    assert len(PROGRAMS) >= 6
    assert all(SHOWN.findall(program) for program in PROGRAMS)
