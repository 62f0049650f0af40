"""More connections than there is room for: a real API process under a small `ulimit -n`, and who gives way to whom."""

import asyncio
import os
import resource
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest
import uvloop

from service.api.http.connections import Connections
from service.api.http.server import config, descriptors
from service.api.turns import Turns
from service.machine import ENOUGH, OWN_FILES, room_for_callers
from service.settings import Settings
from tests.api_process import ApiProcess, api_process
from tests.prober import Latencies, probing
from tests.serving import eventually, serving

FILES = 256
FLOOD = 1500
LIVEZ = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
SECONDS = 3.0
"""For /livez; thirty times what the service aims at, as other tests run beside this one. It was silent for longer."""


@contextmanager
def many(address: tuple[str, int], count: int, content: bytes) -> Iterator[list[socket.socket]]:
    """So many connections, each of which sends this much and no more. Some will have been closed by the other side."""
    with ExitStack() as stack:
        found = []
        for _ in range(count):
            try:
                connection = stack.enter_context(socket.create_connection(address, timeout=30))
                found.append(connection)
                connection.sendall(content)
            except OSError:
                pass
        yield found


@pytest.fixture(scope="module")
def api(redis_url: str) -> Iterator[ApiProcess]:
    with api_process(redis_url, open_files=(FILES, FILES)) as api:
        yield api


@pytest.mark.parametrize("content", [b"", b"GET /livez HTTP/1.1\r\nHost: loc"], ids=["silent", "half a head"])
def test_livez_answers_beside_many_connections(api: ApiProcess, content: bytes) -> None:
    """Whoever comes with a request gets the place of one that has none, and accepting never stops."""
    with probing(api.address) as probes, many(api.address, FLOOD, content):
        assert api.open_files() < FILES
        time.sleep(1)
        before_s = api.cpu_s()
        time.sleep(1)
        assert api.cpu_s() - before_s < 0.8  # it waits, and does not spin
    check(probes)


def test_livez_answers_beside_many_idle_connections(api: ApiProcess) -> None:
    """They were answered once, and keep the connection."""
    with many(api.address, FLOOD, LIVEZ) as connections:
        assert connections[-1].recv(12) == b"HTTP/1.1 200"
        with probing(api.address) as probes:
            time.sleep(1)
    check(probes)


def check(probes: Latencies) -> None:
    print(f"/livez at worst {1e3 * probes.worst_s:.1f} ms of {probes.count}")
    assert probes.count > 10
    assert probes.failed == 0
    assert probes.worst_s < SECONDS


def test_the_service_reaches_redis_beside_many_connections(api: ApiProcess) -> None:
    """Its own files are not taken by callers."""
    with many(api.address, FLOOD, b""), socket.create_connection(api.address, timeout=30) as caller:
        caller.sendall(b"GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert caller.recv(12) == b"HTTP/1.1 200"


def open_files_of(pid: int) -> list[str]:
    """The limits of a process, soft and hard."""
    lines = Path(f"/proc/{pid}/limits").read_text().splitlines()
    return next(line for line in lines if line.startswith("Max open files")).split()[3:5]


@pytest.fixture
def few_files() -> Iterator[list[str]]:
    """Processes are started with a small limit; the limits that they should get."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, before[1]))
    yield [str(min(before[1], ENOUGH)), str(before[1])]
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_processes_let_themselves_open_more_files(few_files: list[str], redis_url: str, tmp_path: Path) -> None:
    """Those of `headrace serve`, Redis among them, and those that are started alone, as in containers."""
    with api_process(redis_url) as api:
        assert open_files_of(api.process.pid) == few_files
    command = [sys.executable, "-m", "service.worker", "--name", "w"]
    with subprocess.Popen(command, env=os.environ | {"REDIS_URL": f"unix://{tmp_path}/none"}) as worker:
        eventually(lambda: open_files_of(worker.pid) == few_files)
        worker.kill()
    with serving(tmp_path) as service:
        assert [open_files_of(pid) for pid in service.children().values()] == 3 * [few_files]


class Caller:
    """A connection as `Connections` knows it."""

    def __init__(self) -> None:
        self.aborted = False

    def abort(self) -> None:
        self.aborted = True


def test_who_gives_way() -> None:
    """The oldest without any request, then who has been idle for longest; never one with a request to answer."""
    connections = Connections(limit=4)
    callers = [Caller() for _ in range(4)]
    silent, idle, idle_since_later, busy = [connections.enter(caller) for caller in callers]
    assert silent is not None
    assert idle is not None
    assert idle_since_later is not None
    assert busy is not None
    for place in (idle_since_later, idle, busy):
        place.busy()
    idle.free()
    idle_since_later.free()
    for expected in (0, 1, 2):
        assert not callers[expected].aborted
        late = connections.enter(Caller())
        assert callers[expected].aborted
        assert late is not None
        late.busy()
    assert connections.enter(Caller()) is None
    assert not callers[3].aborted
    busy.leave()
    busy.leave()
    assert len(connections.taken) == 3
    busy.free()
    assert connections.enter(Caller()) is not None
    assert connections.enter(Caller()) is not None
    assert not connections.idle


def test_what_a_handshake_has_become_gives_way_in_its_place() -> None:
    connections, handshake, connection = Connections(limit=1), Caller(), Caller()
    place = connections.enter(handshake)
    assert place is not None
    place.goes_to(connection)
    assert connections.enter(Caller()) is not None
    assert (handshake.aborted, connection.aborted) == (False, True)


def test_one_connection_goes_on_each_time_the_loop_turns() -> None:
    """In order, however many there are; whoever has more to parse waits again."""
    turns, went_on = Turns(), []

    async def run() -> None:
        left = {"a": 3, "b": 1, "c": 2}

        def go_on(name: str) -> None:
            went_on.append(name)
            left[name] -= 1
            if left[name]:
                turns.wait(partial(go_on, name))

        for name in left:
            turns.wait(partial(go_on, name))
        for count in range(7):
            assert len(went_on) == min(count, 6)
            await asyncio.sleep(0)
        turns.wait(partial(went_on.append, "later"))
        await asyncio.sleep(0)

    asyncio.run(run())
    assert went_on == ["a", "b", "c", "a", "c", "a", "later"]


def test_a_broken_turn_does_not_end_those_of_others() -> None:
    turns, went_on = Turns(), []

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        turns.wait(lambda: [].pop())
        turns.wait(partial(went_on.append, "b"))
        for _ in range(3):
            await asyncio.sleep(0)

    asyncio.run(run())
    assert went_on == ["b"]


def test_many_connections_are_accepted_in_few_turns() -> None:
    """Found by attack: the loop accepts one each time it turns, so /livez waited behind a hundred that had work."""
    n_callers, n_made = 100, 0

    class Caller(asyncio.Protocol):
        def connection_made(self, _: asyncio.BaseTransport) -> None:
            nonlocal n_made
            n_made += 1

    async def run(listener: socket.socket) -> int:
        turns, loop = 0, asyncio.get_running_loop()
        servers = [await loop.create_server(Caller, sock=descriptor) for descriptor in descriptors(listener)]
        with many(listener.getsockname(), n_callers, b""):
            while n_made < n_callers:
                await asyncio.sleep(0)
                turns += 1
        for server in servers:
            server.close()
            await server.wait_closed()
        return turns

    with socket.create_server(("127.0.0.1", 0), backlog=n_callers) as listener:
        assert uvloop.run(run(listener)) < n_callers / 2


def test_proxies_let_go_of_an_idle_connection_first() -> None:
    """It was closed 5 s after an answer, and a request that a proxy sent just then was answered 502."""
    kept_by_proxies_s = 60
    assert config(Settings()).timeout_keep_alive > kept_by_proxies_s


def test_room_for_callers_leaves_room_for_the_rest() -> None:
    for files in (64, 256, 900, 1024, 4096, 65_536):
        for listeners in (10, 1280):
            room = room_for_callers(files, listeners)
            assert room >= 1
            assert room + min(room, listeners) + OWN_FILES <= max(files, OWN_FILES + 2)
    assert room_for_callers(65_536, 1280) > 4096


@pytest.mark.parametrize("content", [b"", b"\x16\x03\x01\x02\x00\x01\x00"], ids=["silent", "half a hello"])
def test_livez_answers_beside_many_handshakes(redis_url: str, certificate: tuple[Path, Path], content: bytes) -> None:
    """Over TLS a connection counts before its handshake ends."""
    environment = {"HEADRACE_TLS_CERT": str(certificate[0]), "HEADRACE_TLS_KEY": str(certificate[1])}
    trusted = ssl.create_default_context(cafile=str(certificate[0]))

    def asked(address: tuple[str, int]) -> bool:
        with (
            socket.create_connection(address, timeout=30) as plain,
            trusted.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
        ):
            connection.sendall(LIVEZ)
            return connection.recv(12) == b"HTTP/1.1 200"

    with (
        api_process(redis_url, (FILES, FILES), environment, ready=asked) as api,
        many(api.address, FLOOD, content),
    ):
        assert api.open_files() < FILES
        for _ in range(20):
            began = time.monotonic()
            assert asked(api.address)
            assert time.monotonic() - began < SECONDS


def test_the_flood_itself_fits() -> None:
    """The test needs more files than the service has."""
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > FLOOD + 200
