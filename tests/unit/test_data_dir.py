"""A data directory that cannot be used is refused in one line, and what lies in one that can is left alone."""

import fcntl
import json
import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from service.cli.main import app
from service.host import data_dir
from service.host.data_dir import DataDirInUse, Kept, is_not_kept, locked
from service.host.refusal import CannotServe
from service.host.supervisor import _metrics_folder
from service.settings import Settings
from service.store.lost_data import data_is_gone


@pytest.mark.parametrize(
    ("name", "reason"),
    [("file", "it is no folder"), ("file/below", "Not a directory"), ("long" * 100, "File name too long")],
)
@pytest.mark.parametrize("words", [["serve", "--port", "0"], ["keys", "create", "x", "--yes"]])
def test_a_folder_that_cannot_be_made(words: list[str], name: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("of somebody")
    done = CliRunner().invoke(app, [*words, "--data-dir", str(tmp_path / name)])
    assert done.exit_code == 1
    assert done.output.count("headrace: no data can be ") == 1
    assert f"{tmp_path / name}: {reason}; " in done.output
    assert "--data-dir" in done.output
    assert (tmp_path / "file").read_text() == "of somebody"


def test_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.pwrite", full)
    with pytest.raises(CannotServe, match="No space left on device; choose another"), locked(tmp_path):
        pass


def test_a_folder_that_another_process_serves_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: pytest.fail("it was waited for"))
    with locked(tmp_path):
        with pytest.raises(DataDirInUse, match=f"is served by process {os.getpid()}; stop it"), locked(tmp_path):
            pass
        (tmp_path / "serve.lock").write_text("no JSON")
        with pytest.raises(DataDirInUse, match="is served by another process; stop it"), locked(tmp_path):
            pass


def test_children_of_a_killed_supervisor_are_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They hold the lock after it, which the file says is that of a process that has ended."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    path = tmp_path / "serve.lock"
    path.write_text(json.dumps({"pid": ended.pid}))
    child = os.open(path, os.O_RDWR)
    fcntl.flock(child, fcntl.LOCK_EX)
    monkeypatch.setattr(data_dir, "ORPHANS_S", 0.2)
    with pytest.raises(DataDirInUse, match=f"that process {ended.pid} has left behind"), locked(tmp_path):
        pass
    monkeypatch.setattr(data_dir, "ORPHANS_S", 60.0)
    threading.Timer(0.2, os.close, [child]).start()
    with locked(tmp_path):
        assert json.loads(path.read_text())["pid"] == os.getpid()


def test_of_a_folder_that_was_there_only_figures_of_api_processes_go(tmp_path: Path) -> None:
    """The data directory may be the folder somebody works in."""
    for name in ("api/routes.py", "api-processes/notes.json", "api-processes/0.json", "api-processes/12.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    assert _metrics_folder(Settings(data_dir=tmp_path)) == tmp_path / "api-processes"
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")}
    assert left == {"api/routes.py", "api-processes/notes.json"}


def test_what_is_kept_is_the_same_file_or_gone(tmp_path: Path) -> None:
    one, other, never = tmp_path / "one", tmp_path / "other", tmp_path / "never"
    one.mkdir()
    other.mkdir()
    kept = Kept(one, other, never)
    (one / "more").touch()
    never.mkdir()
    assert kept.gone() is None
    other.rename(tmp_path / "moved")
    assert kept.gone() == other
    other.mkdir()
    assert kept.gone() == other, "another one of this name"
    one.rename(tmp_path / "moved as well")
    assert kept.gone() == one


def test_whoever_has_the_lock_file_open_hears_that_the_data_is_gone(tmp_path: Path) -> None:
    with locked(tmp_path) as lock:
        inherited = Settings(lock_descriptor=lock.descriptor)
        assert not data_is_gone(inherited)
        lock.write(url="http://127.0.0.1:8080", data_gone=True)
        shutil.rmtree(tmp_path)
        assert data_is_gone(inherited)
        lock.write(url="http://127.0.0.1:8080", data_gone=False)
        assert not data_is_gone(inherited)
    assert not data_is_gone(inherited), "it is closed"
    assert not data_is_gone(Settings())


def test_whether_what_lies_there_is_what_is_served(tmp_path: Path) -> None:
    assert not is_not_kept(tmp_path)
    with locked(tmp_path) as lock:
        assert not is_not_kept(tmp_path)
        lock.write(data_gone=True)
        assert is_not_kept(tmp_path)
        ended = subprocess.Popen(["true"])
        ended.wait()
        lock.write(data_gone=True, pid=ended.pid)
        assert not is_not_kept(tmp_path)
