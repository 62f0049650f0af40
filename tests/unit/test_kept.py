"""Files of the embedded server that are removed under it are noticed, and nothing else is taken for that."""

import errno
import os
import time
from pathlib import Path
from typing import Any

import pytest
import redis
from structlog.testing import capture_logs

from service.host import redis_server
from service.host.kept import LOOK_S, SAY_S, FileWatch, Kept
from service.host.manifest import FOLDER, manifest_of, named_in
from service.settings import Settings
from tests.serving import eventually

MANIFEST = "file appendonly.aof.1.base.rdb seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """The folder of the append-only files of a server whose folder is the one above it."""
    folder = tmp_path / FOLDER
    folder.mkdir()
    (folder / "appendonly.aof.manifest").write_text(MANIFEST)
    for name in named_in(MANIFEST):
        (folder / name).touch()
    return folder


def of(files: Path) -> Kept:
    return Kept(files.parent, files, data=files.parent)


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


@pytest.mark.parametrize("name", ["appendonly.aof.manifest", *named_in(MANIFEST)])
def test_each_file_that_is_removed_from_a_folder_that_stays(files: Path, name: str) -> None:
    (files / "temp-appendonly.aof.manifest").write_text("file never seq 1 type b\n")
    found = of(files)
    assert found.gone() is None
    (files / name).rename(files / "away")
    assert found.gone() == files / name
    (files / "away").rename(files / name)
    assert found.gone() is None


def test_the_one_file_of_an_older_server(tmp_path: Path) -> None:
    single = tmp_path / "appendonly.aof"
    assert Kept(tmp_path, data=tmp_path).gone() is None
    single.touch()
    found = Kept(tmp_path, data=tmp_path)
    (tmp_path / "new").touch()
    (tmp_path / "new").replace(single)
    assert found.gone() is None, "it is replaced as a whole"
    single.unlink()
    assert found.gone() == single


def test_files_that_are_written_anew_under_a_look_are_there(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server replaces its manifest and then removes files that the one before named."""
    found, read, seen = of(files), Path.read_text, list[str]()

    def slow(path: Path, **options: Any) -> str:
        text = read(path, **options)
        if not seen:
            seen.append(text)
            (files / "appendonly.aof.2.incr.aof").touch()
            path.write_text("file appendonly.aof.2.incr.aof seq 2 type i\n")
            for name in named_in(text):
                (files / name).unlink()
        return text

    monkeypatch.setattr(Path, "read_text", slow)
    assert found.gone() is None
    assert seen


@pytest.mark.parametrize("error", [errno.EIO, errno.EACCES, errno.ESTALE])
def test_an_error_of_the_disk_changes_nothing_that_is_known(
    files: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    def fails(self: Path, **_: Any) -> os.stat_result:
        raise OSError(error, "it cannot be known")

    found = of(files)
    monkeypatch.setattr(Path, "stat", fails)
    assert found.gone() is None
    monkeypatch.undo()
    (files / "appendonly.aof.manifest").rename(files / "away")
    assert found.gone() is not None
    monkeypatch.setattr(Path, "stat", fails)
    assert found.gone() is not None, "as it was"


def test_a_real_server_that_writes_its_files_anew_raises_no_alarm(tmp_path: Path) -> None:
    """Nor does one whose append-only file is turned off and on."""
    settings = Settings(data_dir=tmp_path)
    data = redis_server.data_of(settings)
    with redis_server.running(settings), redis.Redis(unix_socket_path=str(settings.redis_socket)) as client:
        client.set("graph", b"x" * 5000)
        found, rewrites, ends_at = Kept(data, data / FOLDER, data=data), 0, time.monotonic() + 2
        while time.monotonic() < ends_at or rewrites < 5:
            if not client.info("persistence")["aof_rewrite_in_progress"]:
                client.bgrewriteaof()
                rewrites += 1
            assert [found.gone() for _ in range(100)] == [None] * 100
        for state in ("no", "yes", "no"):
            eventually(lambda: not client.info("persistence")["aof_rewrite_in_progress"])
            client.config_set("appendonly", state)
            assert [found.gone() for _ in range(1000)] == [None] * 1000
        if (manifest := manifest_of(data)) is not None:
            manifest.unlink()
            assert found.gone() == manifest


@pytest.fixture
def told() -> list[bool]:
    return []


@pytest.fixture
def watch(files: Path, told: list[bool]) -> FileWatch:
    found = FileWatch(lambda: of(files), told.append)
    found.begin()
    return found


def test_a_loss_is_told_at_each_look_and_in_the_log_each_minute(
    files: Path, watch: FileWatch, told: list[bool]
) -> None:
    watch.look(0.0)
    files.rename(files.with_name("away"))
    watch.look(LOOK_S / 2)
    assert told == [], "it is not time to look"
    with capture_logs() as logs:
        for turn in range(1, 122):
            watch.look(turn * LOOK_S)
    assert len(told) == 121
    assert [line["event"] for line in logs] == ["data_gone"] * 3, f"one in {SAY_S} s"
    files.with_name("away").rename(files)
    watch.look(200.0)
    watch.look(201.0)
    assert told[121:] == [False]


def test_what_could_not_be_told_is_told_at_the_next_look(files: Path) -> None:
    told, fails = list[bool](), [True]

    def tell(gone: bool) -> None:
        if fails[0]:
            raise OSError(errno.ENOSPC, "the disk is full")
        told.append(gone)

    watch = FileWatch(lambda: of(files), tell)
    watch.begin()
    files.rename(files.with_name("away"))
    watch.look(0.0)
    fails[0] = False
    watch.look(1.0)
    files.with_name("away").rename(files)
    fails[0] = True
    watch.look(2.0)
    fails[0] = False
    watch.look(3.0)
    assert told == [True, False]
