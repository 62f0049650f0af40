"""A Redis that runs somebody's script, and answers BUSY to all else: it is away, and whoever was at work goes on."""

import threading
from pathlib import Path
from typing import Any

import pytest
import redis

from service.host import redis_server
from service.protocol import Kind, Operation, PatchArgs
from service.settings import Settings
from service.store.connection import AWAY, WHY, connect, is_away, why_away
from service.store.log import Log
from service.worker.process import Worker
from service.worker.running import tries
from tests.graphs import diamond
from tests.service_fixtures import Caller, StartWorker, result
from tests.serving import eventually

ADD_1 = PatchArgs(batch=[Operation(op="add", edges=[0], amounts=["1"])])
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


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("MISCONF Errors writing to the AOF file", "cannot write its files"),
        ("NOREPLICAS Not enough good replicas to write.", "fewer replicas than min-replicas-to-write"),
        ("BUSY Redis is busy running a script.", "runs a script"),
    ],
)
def test_a_server_that_is_there_and_does_nothing_is_away(said: str, why: str) -> None:
    error = redis.ResponseError(said)
    assert is_away(error)
    assert why in why_away(error)
    assert not is_away(redis.ResponseError(f"ERR {said}"))


@pytest.mark.usefixtures("by_itself")
def test_what_redis_goes_on_refusing_ends_with_the_reason(
    caller: Caller, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tries, "MAX_SETBACKS", 1)

    def refuse(*_: Any, **__: Any) -> None:
        raise redis.exceptions.NoPermissionError("NOPERM User w has no permissions to run the 'xadd' command")

    monkeypatch.setattr(Log, "append", refuse)
    problem = caller.reply(Kind.PATCH, "g", ADD_1).problem
    assert problem is not None
    assert (problem.code, problem.detail) == ("worker_unavailable", WHY[redis.exceptions.NoPermissionError])


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
    assert result(caller.reply(Kind.PATCH, "g", ADD_1))["version"] == 2
    for script in scripts:
        script.join()
