"""A Redis that becomes a replica while it goes on, and another one that is the primary behind the same address: as at a
planned change of roles, and behind a proxy that leaves open connections alone."""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis

from service.errors import ServiceError
from service.settings import Settings
from service.store import connection
from service.store.connection import connect, connect_async, is_away, why_away
from service.store.primary import ASKED_EVERY_S, GivenUp, n_opened
from tests.graphs import diamond
from tests.service_fixtures import PATIENCE_S, Caller, StartWorker
from tests.unit.test_redis_wait import a_redis


@dataclass
class Pair:
    """Two servers, of which the second is a replica of the first until they change their roles, and their address."""

    address: Path
    sockets: tuple[Path, Path]
    ports: tuple[int, int]

    def __post_init__(self) -> None:
        self.first, self.second = (redis.Redis(port=port) for port in self.ports)
        self.lead_to(0)
        self.second.execute_command("REPLICAOF", "127.0.0.1", self.ports[0])
        until(lambda: self.second.info("replication")["master_link_status"] == "up")

    def change_roles(self) -> None:
        """Both go on, with all their connections; who connects from now on reaches the second one."""
        self.first.execute_command("CLIENT", "PAUSE", 10_000, "WRITE")
        until(lambda: self.second.info("replication")["slave_repl_offset"] >= self._offset())
        self.second.execute_command("REPLICAOF", "NO", "ONE")
        self.lead_to_the_second()
        self.first.execute_command("CLIENT", "UNPAUSE")

    def lead_to_the_second(self) -> None:
        self.lead_to(1)
        self.first.execute_command("REPLICAOF", "127.0.0.1", self.ports[1])

    def _offset(self) -> int:
        return int(self.first.info("replication")["master_repl_offset"])

    def lead_to(self, number: int) -> None:
        beside = self.address.with_suffix(".new")
        os.symlink(self.sockets[number], beside)
        beside.replace(self.address)


def until(is_so: Callable[[], bool]) -> None:
    ends_at = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < ends_at
        time.sleep(0.02)


@contextmanager
def a_pair(tmp_path: Path) -> Iterator[Pair]:
    folders = tmp_path / "a", tmp_path / "b"
    for folder in folders:
        folder.mkdir()
    a, b = (folder / "redis.sock" for folder in folders)
    with (
        a_redis(folders[0], "--unixsocket", str(a), "--repl-diskless-sync-delay", "0") as first,
        a_redis(folders[1], "--unixsocket", str(b)) as second,
    ):
        yield Pair(tmp_path / "redis.sock", (a, b), (first, second))


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    with a_pair(tmp_path) as found:
        yield found


@pytest.fixture
def settings(pair: Pair) -> Settings:
    """In place of those of the shared server, for the fixtures that are built on them."""
    return Settings(redis_url=f"unix://{pair.address}", redis_prefix="test:", lease_s=2)


def test_all_find_the_way_to_the_new_primary_and_nothing_is_lost(
    pair: Pair, caller: Caller, start_worker: StartWorker
) -> None:
    """They were told for ever that Redis is a replica, while the new primary waited for them."""
    start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    caller.set("g", [0], ["7"])
    pair.change_roles()
    versions: list[int] = []

    def is_set() -> bool:
        with suppress(ServiceError):
            versions.append(caller.set("g", [0], ["9"])["version"])
        return bool(versions)

    until(is_set)
    assert versions[0] >= 3, "what was acknowledged before is there"
    graph_id: Any = pair.second.hget("test:names", "g")
    assert pair.second.hget(f"test:graph:{graph_id.decode()}", "version") == str(versions[0]).encode()


def test_connections_that_only_read_leave_a_replica_too(pair: Pair, settings: Settings) -> None:
    """What they read there would be older and older, and no write would ever tell them."""
    blocking, patient = connect(settings), connect_async(settings)
    pair.first.set("which", "first")
    pair.second.execute_command("REPLICAOF", "NO", "ONE")
    pair.second.set("which", "second")

    async def read_on() -> None:
        assert await patient.get("which") == b"first"
        assert blocking.get("which") == b"first"
        pair.lead_to_the_second()
        await asyncio.sleep(ASKED_EVERY_S)
        assert await patient.get("which") == b"second", "it tries again by itself"
        with pytest.raises(redis.ConnectionError, match="has become a replica") as refused:
            blocking.get("which")
        assert is_away(refused.value)
        assert why_away(refused.value) == "Redis is a replica and takes no writes"
        assert blocking.get("which") == b"second"
        await patient.aclose()

    with blocking:
        asyncio.run(read_on())


def test_a_connection_that_is_used_again_was_opened_once(pair: Pair, settings: Settings) -> None:
    """Else watches are read before each update, as if Redis had been started again since the last one."""
    with connect(settings) as client:
        for _ in range(3):
            assert client.ping()
        assert n_opened(client) == 1
        pair.first.client_kill_filter(_type="normal", skipme=True)
        for _ in range(3):
            assert client.ping()
        assert n_opened(client) == 2


def test_a_cancel_that_comes_as_a_command_is_written_is_not_lost(settings: Settings) -> None:
    """`asyncio.wait_for` of Python 3.11 loses it. An API process that was to end as it was told that its Redis is a
    replica went on now and then."""

    async def cancelled_while_writing() -> None:
        client = connect_async(settings)
        connection: Any = await client.connection_pool.get_connection()
        write = connection._send_packed_command

        async def write_and_cancel(command: Any) -> None:
            await write(command)
            asking.cancel()

        async def ask() -> None:
            connection._send_packed_command = write_and_cancel
            await connection.send_command("PING")
            await connection.read_response()

        asking = asyncio.create_task(ask())
        try:
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert not connection.is_connected, "its answer is on its way, and is nobody's"
        finally:
            await client.aclose()
            await asyncio.sleep(0)  # the loop closes the socket

    asyncio.run(cancelled_while_writing())


def test_answers_that_come_together_are_told_apart() -> None:
    """Also errors among them, one of which is in two parts, and one after which the connection is of no use."""
    parts = [b"+first\r\n-WRONGTYPE of a key\r\n-MISCONF no room\r\n*1\r\n:7\r\n+in ", b"two\r\n-LOADING\r\n+never\r\n"]
    asked_again = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"PING\r\n")
        writer.write(parts[0])
        await asked_again.wait()
        writer.write(parts[1])
        writer.close()
        await writer.wait_closed()

    async def read_all() -> None:
        async with await asyncio.start_server(serve, "127.0.0.1") as server:
            port = server.sockets[0].getsockname()[1]
            client = connect_async(Settings(redis_url=f"redis://127.0.0.1:{port}", redis_prefix="test:"))
            connection: Any = client.connection_pool.make_connection()
            connection.redis_connect_func = lambda made: made._parser.on_connect(made)  # says and asks nothing
            await connection.send_command("PING", check_health=False)
            try:
                assert await connection.read_response() == b"first"
                with pytest.raises(redis.ResponseError, match="of a key"):
                    await connection.read_response()
                with pytest.raises(redis.ResponseError) as refused:
                    await connection.read_response()
                assert why_away(refused.value) == "Redis cannot write its files and takes no writes"
                assert await connection.read_response() == [7]
                asyncio.get_running_loop().call_later(0.05, asked_again.set)
                assert await connection.read_response() == b"in two"
                with pytest.raises(redis.exceptions.BusyLoadingError):
                    await connection.read_response()
                assert not connection.is_connected
            finally:
                asked_again.set()
                await connection.disconnect()

    asyncio.run(read_all())


def test_connections_are_not_waited_for_one_by_one_behind_a_machine_that_is_gone(
    pair: Pair, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of those that lay in the pool took half a minute to find out what the one before it had found out."""
    monkeypatch.setattr(connection, "TIMEOUT_S", 0.5)
    blocking, patient = connect(settings), connect_async(settings)
    pools: Any = blocking.connection_pool, patient.connection_pool
    process = pair.first.info("server")["process_id"]
    pair.second.execute_command("REPLICAOF", "NO", "ONE")

    async def ask() -> None:
        held = [pools[0].get_connection() for _ in range(2)]
        others = [await pools[1].get_connection() for _ in range(2)]
        pair.lead_to(1)
        os.kill(process, signal.SIGSTOP)
        try:
            with pytest.raises(redis.TimeoutError):
                held[0].send_command("PING")
            with pytest.raises(GivenUp):
                held[1].send_command("PING")
            with pytest.raises(redis.TimeoutError):
                await others[0].send_command("PING")
            with pytest.raises(GivenUp):
                await others[1].send_command("PING")
        finally:
            os.kill(process, signal.SIGCONT)
        for one, other in zip(held, others, strict=True):
            pools[0].release(one)
            await pools[1].release(other)
        assert blocking.info("server")["process_id"] != process
        assert (await patient.info("server"))["process_id"] != process
        await patient.aclose()

    with blocking:
        asyncio.run(ask())
