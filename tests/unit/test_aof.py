"""An append-only file is mended before Redis reads it. Found by seeds 583 and 2145 of the fault histories."""

import asyncio
import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import redis

from service.host import redis_server
from service.host import torn_log as aof
from service.settings import Settings
from service.store import durable
from service.store.connection import Unwritten
from service.store.durable import AsyncWritten, Written
from service.store.keys import Keys
from tests.serving import eventually

SET = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$%d\r\n%s\r\n"


def set_(value: bytes) -> bytes:
    return SET % (len(value), value)


WHOLE = aof.MULTI + set_(b"1") + aof.EXEC
ENDS: dict[str, tuple[bytes, bytes]] = {
    "nothing": (b"", b""),
    "a whole transaction": (WHOLE + set_(b"2"), b""),
    "a torn command": (WHOLE + set_(b"2")[:-3], b""),
    "a torn transaction": (WHOLE + set_(b"2"), aof.MULTI + set_(b"3") + set_(b"4")[:-3]),
    "a transaction without its end": (WHOLE, aof.MULTI + set_(b"3")),
    "half an EXEC": (WHOLE, aof.MULTI + set_(b"3") + aof.EXEC[:-1]),
    "half a MULTI": (WHOLE + aof.MULTI[:-1], b""),
    "half a length": (WHOLE, aof.MULTI + b"*3\r\n$3\r\nSET\r\n$1"),
    "the first transaction": (set_(b"1"), aof.MULTI + set_(b"3")),
    "an EXEC within a value": (WHOLE, aof.MULTI + set_(b"bytes" + aof.EXEC + b"bytes") + set_(b"4")[:-3]),
    "a transaction within a value": (WHOLE + set_(WHOLE + aof.MULTI), b""),
    "a dump before the commands": (b"REDIS0009\xfa" + bytes(64) + WHOLE, aof.MULTI + set_(b"3")),
    "a dump alone": (b"REDIS0009\xfa" + bytes(64), b""),
}


@pytest.mark.parametrize("name", ["appendonly.aof", "appendonlydir/appendonly.aof.1.incr.aof"])
@pytest.mark.parametrize(("kept", "cut"), ENDS.values(), ids=ENDS.keys())
def test_an_unfinished_transaction_is_cut_off(tmp_path: Path, name: str, kept: bytes, cut: bytes) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(kept + cut)
    assert aof.mend(tmp_path) == len(cut)
    assert path.read_bytes() == kept
    assert aof.mend(tmp_path) == 0


@pytest.mark.parametrize("missing", [1, 10, 25, 45, 60])
def test_no_half_of_a_transaction_comes_back(tmp_path: Path, missing: int) -> None:
    """A power loss tears it; it is the second start after that at which Redis by itself would do its first half."""
    settings = Settings(data_dir=tmp_path, redis_url=None)
    with redis_server.running(settings), redis.Redis.from_url(settings.redis_location) as client:
        client.set("headrace:kept", 1)
        with client.pipeline() as pipe:
            pipe.set("headrace:a", 1).set("headrace:b", 2).execute()
    data = tmp_path / "redis"
    (path,) = [*data.glob("appendonly.aof"), *data.glob("appendonlydir/*.incr.aof")]
    os.truncate(path, path.stat().st_size - missing)
    for start in range(3):
        with redis_server.running(settings) as process, redis.Redis.from_url(settings.redis_location) as client:
            assert client.mget("headrace:a", "headrace:b", "headrace:kept") == [None, None, b"%d" % (start + 1)]
            client.incr("headrace:kept")
            process.kill()


HOLES: dict[str, tuple[bytes, bytes]] = {
    "nothing": (b"", b""),
    "none": (WHOLE + set_(b"2"), WHOLE + set_(b"2")),
    "between commands": (set_(b"1") + bytes(100) + set_(b"2"), set_(b"1") + set_(b"2")),
    "one byte": (set_(b"1") + bytes(1) + set_(b"2"), set_(b"1") + set_(b"2")),
    "at the start": (bytes(9) + WHOLE, WHOLE),
    "several": (WHOLE + bytes(9) + WHOLE + bytes(3) + set_(b"3"), WHOLE + WHOLE + set_(b"3")),
    "before a torn command": (WHOLE + bytes(9) + set_(b"2")[:-3], WHOLE + set_(b"2")[:-3]),
    "within a value": (set_(b"\r\n" + bytes(9) + set_(b"2")), set_(b"\r\n" + bytes(9) + set_(b"2"))),
    "something else as well": (WHOLE + bytes(9) + WHOLE + b"garbage", WHOLE + bytes(9) + WHOLE + b"garbage"),
}


@pytest.mark.parametrize(("before", "after"), HOLES.values(), ids=HOLES.keys())
def test_holes_are_closed(tmp_path: Path, before: bytes, after: bytes) -> None:
    path = tmp_path / "appendonlydir" / "appendonly.aof.2.incr.aof"
    path.parent.mkdir()
    path.write_bytes(before)
    assert aof.close_holes(tmp_path) == len(before) - len(after)
    assert path.read_bytes() == after
    assert [*path.parent.iterdir()] == [path]


TORN = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$428"
TEARS: dict[str, tuple[list[bytes], list[bytes]]] = {
    "none": ([WHOLE, set_(b"2")], [WHOLE, set_(b"2")]),
    "a hole alone": ([WHOLE + bytes(9) + WHOLE, b""], [WHOLE + bytes(9) + WHOLE, b""]),
    "a length": ([WHOLE + TORN + bytes(50) + WHOLE, set_(b"2")], [WHOLE, b""]),
    "a value that is shorter": ([WHOLE + TORN + b"\r\nhalf" + bytes(600) + WHOLE, WHOLE], [WHOLE, b""]),
    "a value that is longer than the file": ([WHOLE + TORN + b"\r\nhalf" + bytes(9) + WHOLE, WHOLE], [WHOLE, b""]),
    "behind a hole at once": ([WHOLE + bytes(9) + TORN + bytes(5) + WHOLE], [WHOLE]),
    "after a hole": ([WHOLE + bytes(9) + set_(b"2") + TORN + bytes(5) + WHOLE], [WHOLE + bytes(9) + set_(b"2")]),
    "within a transaction": ([WHOLE + aof.MULTI + TORN + bytes(5) + WHOLE], [WHOLE + aof.MULTI]),
    "in the second file": ([WHOLE, TORN + bytes(5) + WHOLE, WHOLE], [WHOLE, b"", b""]),
    "a torn end": ([WHOLE + TORN], [WHOLE + TORN]),
    "zeros at the end": ([WHOLE + bytes(50)], [WHOLE + bytes(50)]),
    "within a value": ([set_(TORN + bytes(5) + WHOLE), WHOLE], [set_(TORN + bytes(5) + WHOLE), WHOLE]),
    "garbage": ([WHOLE + b"garbage" + WHOLE], [WHOLE + b"garbage" + WHOLE]),
}


@pytest.mark.parametrize(("before", "after"), TEARS.values(), ids=TEARS.keys())
def test_what_stands_behind_a_tear_is_cut_off(tmp_path: Path, before: list[bytes], after: list[bytes]) -> None:
    """A file that a rewrite has made useless is left alone, and does not count."""
    folder = tmp_path / "appendonlydir"
    folder.mkdir()
    paths = [folder / f"appendonly.aof.{9 + number}.incr.aof" for number in range(len(before))]
    useless = folder / "appendonly.aof.8.incr.aof"
    offsets = ["", " startoffset 7", " startoffset 9 endoffset 12"]  # as later servers of Redis write
    lines = [f"file {path.name} seq {9 + number} type i{offsets[number]}\n" for number, path in enumerate(paths)]
    lines += [f"file {useless.name} seq 8 type h\n", "file appendonly.aof.7.base.rdb seq 7 type b\n"]
    (folder / "appendonly.aof.manifest").write_text("".join(lines))
    useless.write_bytes(TORN + bytes(5) + WHOLE)
    for path, content in zip(paths, before, strict=True):
        path.write_bytes(content)
    assert aof.cut_tears(tmp_path) == len(b"".join(before)) - len(b"".join(after))
    assert [path.read_bytes() for path in paths] == after
    assert useless.read_bytes() == TORN + bytes(5) + WHOLE
    assert aof.cut_tears(tmp_path) == 0


@pytest.mark.parametrize("folder", ["", "appendonlydir"])
def test_nothing_is_removed_but_what_was_left(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir(exist_ok=True)
    left = {"": "temp-rewriteaof-bg-7.aof", "appendonlydir": "appendonly.aof.1.incr.mended"}
    names = ["appendonly.aof", "appendonly.aof.1.base.rdb", "temp-rewriteaof-mine.aof", "mine-temp-rewriteaof-7.aof"]
    for name in [*names, left[folder]]:
        (tmp_path / folder / name).write_bytes(WHOLE)
    assert aof.remove_unfinished(tmp_path) == len(WHOLE)
    assert aof.remove_unfinished(tmp_path) == 0
    assert sorted(path.name for path in (tmp_path / folder).iterdir() if path.is_file()) == sorted(names)


def test_rewrites_that_are_killed_leave_no_files_behind(tmp_path: Path) -> None:
    """As a server that is out of memory at each rewrite: its disk would fill."""
    settings = Settings(data_dir=tmp_path, redis_url=None)
    data = redis_server.data_of(settings)
    process = redis_server.start(settings, "--rdb-key-save-delay", "1000000")  # a second for each key
    try:
        redis_server.wait_until_ready(settings, process)
        with redis.Redis(unix_socket_path=str(settings.redis_socket)) as client:
            client.mset({f"headrace:{i}": "1" for i in range(3)})
            client.bgrewriteaof()
        eventually(lambda: any(data.glob("temp-rewriteaof-*")))
    finally:
        process.kill()
        process.wait()
    with redis_server.running(settings), redis.Redis(unix_socket_path=str(settings.redis_socket)) as client:
        assert not list(data.glob("temp-*"))
        assert len(client.keys("headrace:*")) == 3


@contextmanager
def rewritten(settings: Settings, value: bytes = b"1") -> Iterator[tuple["subprocess.Popen[bytes]", Any]]:
    """A server whose newest file was begun by a rewrite, behind one that has ``value``, and its administrator; killed
    at the end."""
    process = redis_server.start(settings, restore_signals=False)  # as it ignores SIGXFSZ, a limit is a full disk
    try:
        redis_server.wait_until_ready(settings, process)
        with redis.Redis.from_url(settings.redis_location.replace("headrace@", "")) as administrator:
            administrator.set("headrace:a", value)
            if not [*settings.data_dir.glob("redis/appendonlydir/*")]:
                pytest.skip("this server keeps one file, and opens it for appending")
            administrator.bgrewriteaof()
            eventually(lambda: not administrator.info("persistence")["aof_rewrite_in_progress"])
            yield process, administrator
    finally:
        process.kill()
        process.wait()


def test_redis_starts_after_a_full_disk(tmp_path: Path) -> None:
    """The file is one that a rewrite began; the disk has room for a part of a command, and then for more."""
    settings = Settings(data_dir=tmp_path, redis_url=None)
    with rewritten(settings) as (process, client):
        client.set("headrace:a", 2)
        fill_disk_of(process.pid, tmp_path, client, 100)
        eventually(lambda: writes(client, "headrace:c", b"3"))
    with redis_server.running(settings), redis.Redis.from_url(settings.redis_location) as client:
        assert client.mget("headrace:a", "headrace:c") == [b"2", b"3"]


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("is_async", [False, True], ids=["a worker", "an API process"])
def test_a_disk_that_is_full_again_loses_nothing_that_was_acknowledged(
    tmp_path: Path, is_async: bool, times: int
) -> None:
    """Found by seed 6142 of the fault bench: the second time Valkey cut off what came after the first, and the file,
    which then ended within a command, could not be read again."""
    settings = Settings(data_dir=tmp_path, redis_url=None)
    keys = Keys(settings.redis_prefix)
    with (
        rewritten(settings) as (process, administrator),
        redis.Redis.from_url(settings.redis_location) as client,
    ):

        def written() -> None:
            if not is_async:
                waits = Written(client, keys)
                waits.wait(waits.run())
                return

            async def wait() -> None:
                async with redis.asyncio.Redis.from_url(settings.redis_location) as client:
                    waits = AsyncWritten(client, keys)
                    await waits.wait(await waits.run())

            asyncio.run(wait())

        def acknowledge(name: str) -> None:
            with suppress(redis.RedisError):
                client.set(name, 3)
                written()
                acknowledged.append(name)

        acknowledged: list[str] = []
        for episode in range(3):
            for _ in range(times):
                fill_disk_of(process.pid, tmp_path, administrator)
                eventually(lambda: writes(client, "headrace:c", b"4"))
            eventually(lambda: acknowledge("headrace:a") or "headrace:a" in acknowledged[-1:])
            for number in range(10):
                acknowledge(f"headrace:{episode} {number}")
    assert len({*acknowledged}) == 31
    with redis_server.running(settings), redis.Redis.from_url(settings.redis_location) as client:
        assert set(client.mget(acknowledged)) == {b"3"}


def test_a_file_that_there_is_no_room_for_is_not_tried_over_and_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Valkey keeps a file of commands of each try, a hundred in a minute, and fills the disk while it tries."""
    settings = Settings(data_dir=tmp_path, redis_url=None)
    keys = Keys(settings.redis_prefix)
    monkeypatch.setattr(durable, "AGAIN_MS", 4000)

    def is_written(timeout_s: float) -> bool:
        with redis.Redis.from_url(settings.redis_location) as client, suppress(Unwritten):
            waits = Written(client, keys, timeout_s)
            waits.wait(waits.run())
            return True
        return False

    with rewritten(settings, os.urandom(1 << 20)) as (process, administrator):
        fill_disk_of(process.pid, tmp_path, administrator)
        eventually(lambda: writes(administrator, "headrace:c", b"4"))
        limits = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (100_000, limits[1]))
        before = administrator.info("persistence")["aof_rewrites"]
        assert [is_written(1.0) for _ in range(4)] == [False] * 4
        assert administrator.info("persistence")["aof_rewrites"] - before <= 3
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, limits)
        eventually(lambda: is_written(1.0))


def test_redis_starts_after_a_disk_that_was_full_again(tmp_path: Path) -> None:
    """Nobody has waited for an acknowledgement: what came before is there, and it starts."""
    settings = Settings(data_dir=tmp_path, redis_url=None)
    with rewritten(settings) as (process, client):
        client.set("headrace:a", 2)
        for _ in range(3):
            fill_disk_of(process.pid, tmp_path, client)
            eventually(lambda: writes(client, "headrace:b", b"y" * 500))
    with redis_server.running(settings), redis.Redis.from_url(settings.redis_location) as client:
        assert client.get("headrace:a") == b"2"


def fill_disk_of(pid: int, folder: Path, client: Any, room: int = 2000) -> None:
    """There is room for a part of a command, and then for more again."""
    newest = max(folder.glob("redis/appendonlydir/*.incr.aof"), key=lambda path: path.stat().st_ctime_ns)
    limits = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (newest.stat().st_size + room, limits[1]))
    with suppress(redis.RedisError):
        client.set("headrace:b", b"x" * 3000)
    with pytest.raises(redis.RedisError, match="MISCONF"):
        client.set("headrace:b", b"x" * 3000)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)


def writes(client: Any, name: str, value: bytes) -> bool:
    with suppress(redis.RedisError):
        return bool(client.set(name, value))
    return False
