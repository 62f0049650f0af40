"""docs/adapters.md: each program runs in a process of its own, and prints what its comments say."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.host.sandbox import serving
from tests.foreign.installed import search_path, write_metadata

ROOT = Path(__file__).parents[2]
PROGRAMS = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "adapters.md").read_text(), re.S)
SHOWN = re.compile(r"print\(.*\)  # (.+)")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder, installed = tmp_path_factory.mktemp("adapters-page"), tmp_path_factory.mktemp("installed")
    write_metadata(installed)
    with serving(folder, folder / "serve.log") as url:
        yield os.environ | {"HEADRACE_URL": url, "PYTHONPATH": search_path(installed)}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.partition("\n")[0][:40])
def test_programs(program: str, environment: dict[str, str]) -> None:
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], env=environment, cwd=ROOT, capture_output=True, text=True
    )
    assert run.stdout.splitlines() == SHOWN.findall(program), run.stderr


def test_there_are_some() -> None:
    assert len(PROGRAMS) >= 6
    assert all(SHOWN.findall(program) for program in PROGRAMS)
