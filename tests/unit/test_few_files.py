"""A process may open as many files as the machine allows; too few are told of before anything is started."""

import subprocess
import sys
from pathlib import Path

import pytest

from service.beginning import REFUSED
from service.machine import FEWEST


@pytest.mark.parametrize("words", ["serve --port 0", "worker --redis-url redis://127.0.0.1:1/0 --name w"])
def test_too_few_files_stop_the_start(words: str, tmp_path: Path) -> None:
    """Redis could not start, and was started again for ever."""
    shell = f"ulimit -n {FEWEST - 1}; exec {sys.executable} -m service.cli {words}"
    environment = {"HEADRACE_DATA_DIR": str(tmp_path / "data"), "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(["bash", "-c", shell], env=environment, capture_output=True, text=True, timeout=120)
    told = f"headrace: a process may have {FEWEST - 1} files open here, and {FEWEST} are needed: see ulimit -n\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", told)
    assert not (tmp_path / "data").exists(), "nothing was started"


@pytest.mark.parametrize("words", ["service.api --port 0", "service.worker --name w"])
def test_nor_does_a_process_start_that_is_started_by_itself(words: str) -> None:
    """As in a container: an API process closed connections as they came, without a word."""
    shell = f"ulimit -n {FEWEST - 1}; exec {sys.executable} -m {words}"
    environment = {"HEADRACE_REDIS_URL": "redis://127.0.0.1:1/0", "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(["bash", "-c", shell], env=environment, capture_output=True, text=True, timeout=120)
    told = f"headrace: a process may have {FEWEST - 1} files open here, and {FEWEST} are needed: see ulimit -n\n"
    assert (done.returncode, done.stdout, done.stderr) == (REFUSED, "", told)


@pytest.mark.parametrize(
    ("soft", "hard", "after"), [(256, 1024, 1024), (1024, 1024, 1024), (256, 4096, 2048), (3000, 4096, 3000)]
)
def test_a_process_may_open_as_many_files_as_the_machine_allows(soft: int, hard: int, after: int) -> None:
    program = f"""
from resource import RLIMIT_NOFILE, getrlimit, setrlimit
from service import machine
machine.ENOUGH = 2048
setrlimit(RLIMIT_NOFILE, ({soft}, {hard}))
print(machine.raise_limit(), *getrlimit(RLIMIT_NOFILE))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == [str(after), str(after), str(hard)]
