"""Clients of a Redis whose socket was removed: they connect to it as before, as long as it is there."""

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from service.settings import Settings
from service.store.connection import connect, connect_async
from service.store.kept_socket import KeptUnixConnection, PathOfFile, SocketFile


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as found:
        found.bind(str(tmp_path / "redis.sock"))
        found.listen()
        yield found


def opens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as caller:
        return caller.connect_ex(path) == 0


def test_a_file_that_is_gone_is_the_one_that_was_there(tmp_path: Path, listener: socket.socket) -> None:
    path = tmp_path / "redis.sock"
    file, late = SocketFile(str(path)), SocketFile(str(path))
    assert file.path() == str(path)
    path.unlink()
    assert opens(file.path())
    assert late.path() == str(path), "which has never been there"
    with socket.socket(socket.AF_UNIX) as other:  # the server has started again
        other.bind(str(path))
        other.listen()
        assert file.path() == str(path)
        path.unlink()
        assert opens(file.path())
    listener.close()
    assert not opens(file.path())


def test_a_file_that_is_not_needed_any_more_is_closed(tmp_path: Path, listener: socket.socket) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        file = SocketFile(str(tmp_path / "redis.sock"))
        assert [file.path(), file.path()] == [str(tmp_path / "redis.sock")] * 2
    del file
    assert len(os.listdir("/proc/self/fd")) == before


def test_clients_of_both_kinds_connect_anew(redis_url: str, tmp_path: Path) -> None:
    """To a real server, by another name of its socket, which is then removed."""
    server = redis.Redis.from_url(redis_url).connection_pool.connection_kwargs["path"]
    named = tmp_path / "redis.sock"
    os.link(server, named)
    settings = Settings(redis_url=redis_url.replace(server, str(named)))
    blocking, patient = connect(settings), connect_async(settings)

    async def ask() -> None:
        assert await patient.ping()
        named.unlink()
        await patient.connection_pool.disconnect()
        assert await patient.ping()
        await patient.aclose()

    assert blocking.ping()
    asyncio.run(ask())
    blocking.connection_pool.disconnect()
    assert blocking.ping()
    blocking.close()


def test_the_file_is_looked_for_once_for_each_connection(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not with each answer, to which that would add as much as Redis takes for it."""
    looked: list[str] = []
    path = SocketFile.path
    monkeypatch.setattr(SocketFile, "path", lambda file: looked.append(str(file)) or path(file))
    blocking, patient = connect(Settings(redis_url=redis_url)), connect_async(Settings(redis_url=redis_url))

    async def ask() -> None:
        for _ in range(20):
            assert await patient.ping()
        await patient.connection_pool.disconnect()
        assert await patient.ping()
        await patient.aclose()

    asyncio.run(ask())
    for _ in range(20):
        assert blocking.ping()
    blocking.close()
    assert len(looked) == 3


def test_nothing_private_of_the_client_library_is_overridden() -> None:
    """Its next release may call it something else, and connections would fail once the file is gone."""
    for kind in (PathOfFile, KeptUnixConnection):
        private = {name for name in vars(kind) if name.startswith("_") and not name.startswith("__")}
        assert private <= {"_abc_impl"}, kind
