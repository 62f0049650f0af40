"""A Redis that runs somebody's script, and answers BUSY to all else: it is away, and whoever was at work goes on."""

import threading
from pathlib import Path
from typing import Any

import pytest
import redis

from service.host import redis_server
from service.protocol import Kind, Operation, PatchArgs
from service.settings import Settings
from service.store.connection import AWAY, connect
from service.store.log import Log
from service.worker.running import tries
from tests.graphs import diamond
from tests.service_fixtures import Caller, StartWorker, result
from tests.serving import eventually

SCRIPT = "local t = redis.call('TIME')[1] + ARGV[1] while tonumber(redis.call('TIME')[1]) < t do end"


@pytest.fixture
def settings(tmp_path: Path) -> Any:
    """Of a server of its own, since all that share one would wait for the script."""
    server = Settings(data_dir=tmp_path, redis_url=None, lease_s=10)
    with redis_server.running(server):
        yield server


def keep_busy(settings: Settings, seconds: int) -> threading.Thread:
    """The script, which runs by now; the thread ends with it."""

    def run() -> None:
        with redis.Redis(unix_socket_path=str(settings.redis_socket)) as admin:
            admin.execute_command("CONFIG", "SET", "busy-reply-threshold", 1)
            admin.eval(SCRIPT, 0, str(seconds))

    thread = threading.Thread(target=run)
    thread.start()
    with connect(settings) as client:
        eventually(lambda: is_busy(client))
    return thread


def is_busy(client: redis.Redis) -> bool:
    try:
        client.get("headrace:a")
    except AWAY as error:
        return "BUSY" in str(error)
    return False


def test_a_command_waits_for_as_long_as_a_script_runs(
    settings: Settings, caller: Caller, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was sent back as one that others are in the way of, once it had been tried for a while."""
    monkeypatch.setattr(tries, "MAX_SETBACKS", 1)
    start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    scripts: list[threading.Thread] = []
    append = Log.append

    def meanwhile(*args: Any, **more: Any) -> Any:
        if not scripts:
            scripts.append(keep_busy(settings, 3))
        return append(*args, **more)

    monkeypatch.setattr(Log, "append", meanwhile)
    patch = PatchArgs(batch=[Operation(op="add", edges=[0], amounts=["1"])])
    assert result(caller.reply(Kind.PATCH, "g", patch))["version"] == 2
    for script in scripts:
        script.join()
