"""A private service of a script: it is there for it, it is nobody else's, and it is gone with it."""

import os
import signal
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

import headrace
import pytest
from headrace import CannotStart, Client, Retry, local

from tests.serving import eventually

SCRIPT = """
import headrace, sys, time
hr = headrace.local(sys.argv[1], settings={"HEADRACE_ENGINE": "cpu"})
hr.put_graph("g", tail=[0, 1], head=[1, 2], capacity=[3, 2])
print(hr.url, hr.graph("g").max_flow(0, 2).value, flush=True)
time.sleep(600)
"""


def is_gone(url: str) -> bool:
    with Client(url, retry=Retry(attempts=1)) as client:
        return not client.ready()


def test_it_keeps_its_graphs_and_ends_with_its_script(tmp_path: Path) -> None:
    """Which is killed: nothing of it can tell the service. Of the folder it stands in, nothing is imported."""
    beside = tmp_path / "beside"
    (beside / "service").mkdir(parents=True)
    for module in ("redis.py", "service/__init__.py"):
        (beside / module).write_text("raise SystemExit('another module of this name')\n")
    command = [sys.executable, "-c", SCRIPT, tmp_path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=beside) as script:
        assert script.stdout is not None
        url, value = script.stdout.readline().split()
        script.send_signal(signal.SIGKILL)
    assert value == "2"
    eventually(lambda: is_gone(url))
    eventually(lambda: not {*processes_of(tmp_path)})
    with local(tmp_path) as again:
        assert again.graph("g").info.version == 1
        assert again.url != url or is_gone(url)
        if (fork := os.fork()) == 0:
            again._stop()  # as the end of a forked process would
            os._exit(0)
        os.waitpid(fork, 0)
        assert again.ready()
    assert is_gone(again.url)
    assert not {*processes_of(tmp_path)}


def processes_of(data_dir: Path) -> list[int]:
    """Those that were started with this folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            except OSError:
                continue
            if os.fsencode(data_dir) in words and int(entry.name) != os.getpid():
                found.append(int(entry.name))
    return found


def test_what_keeps_it_from_starting_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began = time.monotonic()
    with pytest.raises(CannotStart, match="HEADRACE_FSYNC"):
        local(tmp_path, settings={"HEADRACE_FSYNC": "never"})
    with pytest.raises(CannotStart, match=r"not ready within 0 s"):
        local(tmp_path, timeout_s=0)
    assert time.monotonic() - began < 60
    assert not processes_of(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(CannotStart, match=r"no data can be kept in .*file: File exists"):
        local(tmp_path / "file")

    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(headrace._local.metadata, "version", missing)
    with pytest.raises(CannotStart, match=r"needs headrace-server .* pip install '\.\[embedded\]'"):
        local(tmp_path)
