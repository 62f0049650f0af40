"""Copies of what a server keeps, taken while it writes and begins other files."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import redis

from service.host import backup, redis_server
from service.host.backup import NoBackup, back_up, back_up_service
from service.settings import Settings
from service.store import keys_seen
from tests.serving import eventually

ROOT = Path(__file__).parents[2]
VALUE = os.urandom(20_000)


def of(folder: Path) -> Settings:
    return Settings(data_dir=folder, redis_url=None)


@contextmanager
def busy(folder: Path) -> Iterator[list[int]]:
    """A server that rewrites its files all the time, and a caller; the number of its last answered transaction."""
    settings, stop, answered = of(folder), threading.Event(), [0]

    def write() -> None:
        with redis.Redis(unix_socket_path=str(settings.redis_socket)) as client:
            while not stop.is_set():
                with client.pipeline() as pipe:
                    pipe.set("headrace:first", answered[0] + 1).set("headrace:value", VALUE)
                    pipe.set("headrace:last", answered[0] + 1)
                    pipe.execute()
                answered[0] += 1

    def rewrite() -> None:
        with redis.Redis(unix_socket_path=str(settings.redis_socket)) as client:
            while not stop.wait(0.01):
                with suppress(redis.ResponseError):  # it is at it
                    client.bgrewriteaof()

    with redis_server.running(settings), redis.Redis(unix_socket_path=str(settings.redis_socket)) as client:
        client.mset({f"headrace:{i}": VALUE for i in range(100)})
        threads = [threading.Thread(target=work) for work in (write, rewrite)]
        for thread in threads:
            thread.start()
        try:
            eventually(lambda: answered[0] > 10)
            yield answered
        finally:
            stop.set()
            for thread in threads:
                thread.join()


def held(folder: Path) -> tuple[int, int, int]:
    """What a service that is started on it has: two numbers of one transaction, and how many values."""
    settings = of(folder)
    with redis_server.running(settings), redis.Redis(unix_socket_path=str(settings.redis_socket)) as client:
        first, last = int(client.get("headrace:first") or 0), int(client.get("headrace:last") or 0)
        return first, last, len(client.keys("headrace:[0-9]*"))


def test_a_copy_has_all_that_was_acknowledged(tmp_path: Path) -> None:
    source = tmp_path / "source"
    with busy(source) as answered:
        for turn in range(5):
            before = answered[0]
            assert back_up_service(of(source), tmp_path / f"{turn}") >= 100 * len(VALUE)
            first, last, values = held(tmp_path / f"{turn}")
            assert first == last >= before
            assert values == 100
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["source", *map(str, range(5))])


def test_files_that_are_gone_are_looked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server begins others between the look at the manifest and the first file."""
    source, opened = tmp_path / "source", Path.open
    settings, seen = of(source), list[Path]()
    with redis_server.running(settings), redis.Redis(unix_socket_path=str(settings.redis_socket)) as client:
        client.mset({"headrace:first": 1, "headrace:last": 1, "headrace:0": 0})
        if not [*source.glob("redis/appendonlydir/*")]:
            pytest.skip("this server keeps one file, and replaces it as a whole")

        def interrupted(path: Path, *arguments: Any, **options: Any) -> Any:
            if not seen and path.suffix in (".rdb", ".aof"):
                seen.append(path)
                client.mset({"headrace:first": 2, "headrace:last": 2})
                client.bgrewriteaof()
                eventually(lambda: not client.info("persistence")["aof_rewrite_in_progress"] and not path.exists())
            return opened(path, *arguments, **options)

        monkeypatch.setattr(Path, "open", interrupted)
        back_up_service(settings, tmp_path / "copy")
        monkeypatch.undo()
    assert seen
    assert held(tmp_path / "copy") == (2, 2, 1)


def test_a_manifest_that_is_being_written_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy had no files, or half of them."""
    with (
        redis_server.running(of(tmp_path / "a")),
        redis.Redis(unix_socket_path=str(of(tmp_path / "a").redis_socket)) as client,
    ):
        client.mset({"headrace:first": 1, "headrace:last": 1, "headrace:0": 0})
    files = tmp_path / "a" / "redis" / "appendonlydir"
    begun, text = files / "temp-appendonly.aof.manifest", (files / "appendonly.aof.manifest").read_text()
    begun.write_text(text[:40])
    found = Path.glob
    monkeypatch.setattr(Path, "glob", lambda *words: sorted(found(*words), key=lambda path: path != begun))
    back_up_service(of(tmp_path / "a"), tmp_path / "copy")
    monkeypatch.undo()
    assert (tmp_path / "copy/redis/appendonlydir/appendonly.aof.manifest").read_text() == text
    assert held(tmp_path / "copy") == (1, 1, 1)


def test_the_copy_of_a_service_with_keys_stays_closed(tmp_path: Path) -> None:
    source = tmp_path / "source"
    with redis_server.running(of(source)):
        (source / keys_seen.FILE).write_text("closed")
        back_up_service(of(source), tmp_path / "copy")
    assert (tmp_path / "copy" / keys_seen.FILE).read_text() == "closed"
    assert (tmp_path / "copy").stat().st_mode & 0o077 == 0


def test_the_one_file_of_an_older_server(tmp_path: Path) -> None:
    (tmp_path / "appendonly.aof").write_bytes(b"*1\r\n$4\r\nPING\r\n")
    assert back_up(tmp_path, tmp_path / "copy") == 14
    assert (tmp_path / "copy" / "appendonly.aof").read_bytes() == b"*1\r\n$4\r\nPING\r\n"


def test_what_is_there_is_not_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, copy = tmp_path / "source", tmp_path / "copy"
    with pytest.raises(NoBackup, match="there is nothing to copy"):
        back_up(source, copy)
    source.mkdir()
    (source / "appendonly.aof").write_bytes(b"")
    with pytest.raises(NoBackup, match="is there already"):
        back_up(source, source)
    monkeypatch.setattr(backup.torn_log, "mend_all", lambda folder: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        back_up(source, copy)
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_a_folder_whose_name_no_copy_can_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said before anything is copied, and what can be done."""
    source, empty, link = tmp_path / "source", tmp_path / "empty", tmp_path / "link"
    for folder in (source, empty):
        folder.mkdir()
    link.symlink_to(empty)
    (source / "appendonly.aof").write_bytes(b"*1\r\n$4\r\nPING\r\n")
    monkeypatch.chdir(empty)
    for target in (link, empty, Path()):
        with pytest.raises(NoBackup, match="name a new folder in it"):
            back_up(source, target)
    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "is_mount", lambda path: path == empty)
        with pytest.raises(NoBackup, match="name a new folder in it"):
            back_up(source, empty)
    assert back_up(source, empty) == 14
    assert [path.name for path in empty.iterdir()] == ["appendonly.aof"]


def test_files_without_their_manifest_are_not_copied(tmp_path: Path) -> None:
    source, copy = tmp_path / "source", tmp_path / "copy"
    with redis_server.running(of(source)):
        pass
    for path in (source / "redis" / "appendonlydir").glob("*.manifest"):
        path.unlink()
    (source / "redis" / "appendonlydir" / "appendonly.aof.1.incr.aof").write_bytes(b"x" * 2000)
    with pytest.raises(NoBackup, match="no manifest"):
        back_up_service(of(source), copy)
    assert not copy.exists()


@pytest.mark.parametrize("command", [["service.host.backup"], ["service.cli", "backup", "--data-dir"]])
def test_both_commands(tmp_path: Path, command: list[str]) -> None:
    """That of the store's container has the folder of the server itself."""
    source, copy = tmp_path / "source", tmp_path / "copy"
    with redis_server.running(of(source)):
        place = source / "redis" if command == ["service.host.backup"] else source
        for status in (0, 1):
            words = [sys.executable, "-m", *command, str(place), str(copy)]
            done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, check=False)
            assert done.returncode == status, done.stderr
            assert ("is there already" in done.stderr) == bool(status)
            assert "Traceback" not in done.stderr


def test_the_data_of_a_redis_of_ones_own_are_not_here(tmp_path: Path) -> None:
    with pytest.raises(NoBackup, match="a Redis of your own"):
        back_up_service(Settings(data_dir=tmp_path, redis_url="redis://x"), tmp_path / "copy")


def test_what_is_torn_in_a_copy_is_mended(tmp_path: Path) -> None:
    """So a server of one's own may start on it."""
    source, half = tmp_path / "source", b"*1\r\n$5\r\nMULTI\r\n*3\r\n$3\r\nSET"
    source.mkdir()
    (source / "appendonly.aof").write_bytes(half)
    back_up(source, tmp_path / "copy")
    assert (tmp_path / "copy" / "appendonly.aof").read_bytes() == b""
    assert (source / "appendonly.aof").read_bytes() == half
