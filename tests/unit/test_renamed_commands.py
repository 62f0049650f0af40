"""A Redis whose owner lets nobody have some commands (``rename-command``), as those of many clouds do."""

import asyncio
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from service.host.redis_server import find_server, wait_until_ready
from service.host.redis_wait import await_redis
from service.queue.models import RedisInfo
from service.queue.watch import Watch
from service.settings import Settings
from service.store.connection import connect, connect_async
from service.store.durable import Written
from service.store.keys import Keys


@contextmanager
def without(command: str, folder: Path) -> Iterator[Settings]:
    """The settings of a service with such a server."""
    settings = Settings(data_dir=folder, redis_url=None)
    options = ["--port", "0", "--unixsocket", str(settings.redis_socket), "--dir", str(folder), "--appendonly", "yes"]
    program = find_server(folder).path
    process = subprocess.Popen([program, *options, "--rename-command", command, ""], stdout=subprocess.DEVNULL)
    try:
        wait_until_ready(settings.model_copy(update={"redis_url": f"unix://{settings.redis_socket}"}), process)
        yield Settings(redis_url=f"unix://{settings.redis_socket}")
    finally:
        process.kill()
        process.wait()


def told(settings: Settings) -> RedisInfo:
    """What `/status` says of it."""

    async def ask() -> RedisInfo:
        async with connect_async(settings) as client:
            return await Watch(client, Keys(settings.redis_prefix)).ping()

    return asyncio.run(ask())


def test_without_config_the_rest_of_the_status_is_told(tmp_path: Path) -> None:
    with without("CONFIG", tmp_path) as settings:
        info = told(settings)
    assert (info.fsync, info.appendonly) == (None, True)
    assert info.version != "unknown"


def test_without_info_the_service_goes_on(tmp_path: Path) -> None:
    with without("INFO", tmp_path) as settings, connect(settings) as client:
        await_redis(settings, threading.Event())
        written = Written(client, Keys(settings.redis_prefix))
        written.wait(written.run())
        assert told(settings).version == "unknown"


def test_a_file_that_cannot_be_begun_anew_is_known_to_be_so(tmp_path: Path) -> None:
    refused = pytest.raises(redis.exceptions.NoPermissionError)
    with without("BGREWRITEAOF", tmp_path) as settings, connect(settings) as client, refused:
        client.bgrewriteaof()
