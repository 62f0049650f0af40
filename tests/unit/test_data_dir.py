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
from service.host.data_dir import LOCK, DataDirInUse, files_were_lost, locked
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
    with (
        pytest.raises(DataDirInUse, match=f"left over from process {ended.pid}, which has ended; "),
        locked(tmp_path),
    ):
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
    assert not files_were_lost(tmp_path)
    with locked(tmp_path) as lock:
        assert not files_were_lost(tmp_path)
        lock.tell(True)
        assert files_were_lost(tmp_path)
        lock.tell(False)
        assert not files_were_lost(tmp_path)
        lock.tell(True)
    assert json.loads((tmp_path / LOCK).read_text())["data_gone"]
    assert not files_were_lost(tmp_path), "whoever has said so is not there any more"


@pytest.mark.parametrize("left", [None, "no JSON", "its own"])
def test_another_folder_at_the_place_says_that_it_is_not_what_is_served(tmp_path: Path, left: str | None) -> None:
    """It has no lock file, as a backup has none, or an old one, as a copy has. Once the right folder is back, it says
    nothing of the kind."""
    place, moved = tmp_path / "place", tmp_path / "moved"
    with locked(place) as lock:
        lock.write(url="http://127.0.0.1:8080")
        lock.tell(True)
        place.rename(moved)
        assert files_were_lost(place), "nothing lies there"
        lock.tell(True)
        assert not place.exists(), "the right one could not be put there"
        place.mkdir()
        if left is not None:
            (place / LOCK).write_text((moved / LOCK).read_text() if left == "its own" else left)
        lock.tell(True, url="http://127.0.0.1:8080")
        facts = json.loads((place / LOCK).read_text())
        assert (facts["pid"], facts["data_gone"]) == (os.getpid(), True)
        assert files_were_lost(place)
        with pytest.raises(DataDirInUse, match="is not what the service has that runs on it"), locked(place):
            pass
        shutil.rmtree(place)
        moved.rename(place)
        lock.tell(False)
        assert not files_were_lost(place)
    with locked(place):
        pass


def test_a_folder_that_was_moved_may_be_served_where_it_is(tmp_path: Path) -> None:
    """The marks which are left in another folder hold nobody up once the service has ended."""
    place = tmp_path / "place"
    with locked(place) as lock:
        place.rename(tmp_path / "moved")
        place.mkdir()
        lock.tell(True)
    for folder in (place, tmp_path / "moved"):
        with locked(folder):
            assert "data_gone" not in json.loads((folder / LOCK).read_text())


def test_the_lock_file_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    place = tmp_path / "place"
    with locked(place) as lock:
        place.rename(tmp_path / "moved")
        place.mkdir()
        (place / LOCK).write_text("of somebody")
        other = os.open(place / LOCK, os.O_RDWR)
        fcntl.flock(other, fcntl.LOCK_EX)
        lock.tell(True)
        assert (place / LOCK).read_text() == "of somebody"
        os.close(other)
        (place / LOCK).rename(tmp_path / "file")
        (place / LOCK).symlink_to(tmp_path / "file")
        lock.tell(True)
        assert (tmp_path / "file").read_text() == "of somebody"


def test_no_key_is_made_where_the_files_were_lost(tmp_path: Path) -> None:
    """It would be in a Redis of its own, which the service that runs has never heard of."""
    place = tmp_path / "place"
    with locked(place):
        shutil.rmtree(place)
        for words in (["create", "ops", "--scope", "admin", "--yes"], ["revoke", "k"]):
            done = CliRunner().invoke(app, ["keys", *words, "--data-dir", str(place)])
            assert (done.exit_code, done.stdout) == (1, "")
            if words[0] == "create":
                assert "is not what the service has that runs on it" in done.stderr
        assert not place.exists()
        place.mkdir()
        done = CliRunner().invoke(app, ["keys", "revoke", "k", "--data-dir", str(place)])
        assert "is not what the service has that runs on it" in done.stderr
        assert not any(place.iterdir())
