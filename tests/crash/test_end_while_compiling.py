"""A worker that is told to end, or is killed, while it compiles: it and its second process are gone. Processes that are
told to end while they import."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpu_engine.kernels.cache import VARIABLE
from service.settings import Settings
from service.store.connection import connect
from service.store.keys import Keys
from tests.serving import PATIENCE_S, eventually

pytestmark = pytest.mark.crash


@pytest.fixture
def compiling(settings: Settings, tmp_path: Path) -> "Iterator[subprocess.Popen[bytes]]":
    """A worker whose cache is empty, once its second process has begun."""
    environment = {
        "HEADRACE_REDIS_URL": settings.redis_location,
        "HEADRACE_REDIS_PREFIX": settings.redis_prefix,
        VARIABLE: str(tmp_path),
    }
    command = [sys.executable, "-m", "service.worker", "--name", "w0"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, env=os.environ | environment, stdout=log, stderr=log)
    try:
        eventually(lambda: b'"compiling"' in (tmp_path / "log").read_bytes())
        eventually(lambda: seconds_of(process) != [] or len(os.sched_getaffinity(0)) < 2)
        yield process
    finally:
        process.kill()
        process.wait()


def seconds_of(worker: "subprocess.Popen[bytes]") -> list[int]:
    """Process ids of the second process of this worker, if it runs."""
    words = b"\0service.worker.compile\0%d\0" % worker.pid
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and words in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:  # it has ended meanwhile
            continue
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_it_ends_with_its_second_process(
    number: signal.Signals, compiling: "subprocess.Popen[bytes]", settings: Settings, tmp_path: Path
) -> None:
    compiling.send_signal(number)
    assert compiling.wait(PATIENCE_S) == (-number if number == signal.SIGKILL else 0)
    assert b'"compiled"' not in (tmp_path / "log").read_bytes(), "it did not wait for its compiler"
    eventually(lambda: not seconds_of(compiling))
    if number != signal.SIGKILL:
        redis: Any = connect(settings)
        assert redis.get(Keys(settings.redis_prefix).lease("w0")) is None
        redis.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("words", [["worker", "--name", "w0"], ["api", "--port", "0"]], ids=["worker", "api"])
def test_it_ends_in_silence_while_it_imports(number: signal.Signals, words: list[str]) -> None:
    """By a handler of its own: the first process of a container is ended by no other signals."""
    with subprocess.Popen([sys.executable, "-m", f"service.{words[0]}", *words[1:]], stderr=subprocess.PIPE) as process:
        eventually(lambda: b"/pydantic_core/" in Path(f"/proc/{process.pid}/maps").read_bytes())
        process.send_signal(number)
        _, said = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, said) == (0, b"")
