"""What a worker makes of a Redis whose disk is full: it is away, and says so in lines."""

import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import redis
import structlog

from service.host import redis_server
from service.protocol import Kind, Operation, PatchArgs
from service.queue.models import WorkerReport
from service.settings import Settings
from service.store.connection import connect, is_away
from service.store.keys import Keys
from service.store.log import Log
from service.store.primary import understood
from service.worker.membership.lease import Lease
from service.worker.running import tries
from tests.graphs import diamond
from tests.service_fixtures import Caller, StartWorker, result
from tests.serving import eventually


@contextmanager
def full_disk(folder: Path) -> Iterator[tuple[Settings, redis.Redis]]:
    """A server that can write no more, and a client as a worker has it."""
    settings = Settings(data_dir=folder, redis_url=None)
    process = redis_server.start(settings, restore_signals=False)  # as it ignores SIGXFSZ, a limit is a full disk
    try:
        redis_server.wait_until_ready(settings, process)
        with connect(settings) as client:
            client.set("headrace:a", 1)
            newest = max(path.stat().st_size for path in folder.glob("redis/appendonlydir/*.incr.aof"))
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (newest, resource.RLIM_INFINITY))
            eventually(lambda: refused(client))
            yield settings, client
    finally:
        process.kill()
        process.wait()


def refused(client: redis.Redis) -> bool:
    try:
        client.set("headrace:a", 2)
    except redis.ResponseError as error:
        return is_away(error)
    return False


def test_a_full_disk_is_known_within_a_transaction_too(tmp_path: Path) -> None:
    """There the library raises what the first refused command was answered, with its name in front."""
    with full_disk(tmp_path) as (_, client), client.pipeline() as pipe:
        pipe.set("headrace:b", 1)
        with pytest.raises(redis.RedisError, match="of pipeline caused error: MISCONF") as caught:
            pipe.execute()
    assert is_away(caught.value)
    assert not is_away(redis.ResponseError("WRONGTYPE of a key"))


def test_a_lease_that_a_full_disk_refuses_is_one_line_at_each_beat(tmp_path: Path) -> None:
    def report() -> WorkerReport:
        raise AssertionError("nothing is reported before the lease is renewed")

    with full_disk(tmp_path) as (settings, client), structlog.testing.capture_logs() as lines:
        lease = Lease(client, Keys(settings.redis_prefix), "w0", 5.0, settings.redis_location)
        lease.start(report, lambda: None, lambda: None)
        eventually(lambda: bool(lines))
        lease.release()
    assert {(line["event"], line["log_level"]) for line in lines} <= {
        ("heartbeat_failed", "warning"),
        ("lease_not_released", "warning"),
    }
    assert "MISCONF" in lines[0]["error"]


def test_a_worker_that_ends_lets_go_of_its_name_in_a_redis_without_memory(tmp_path: Path) -> None:
    """That takes no last report of it. The next process of the name, or who takes over, would wait for the lease."""
    settings = Settings(data_dir=tmp_path, redis_url=None)
    keys = Keys(settings.redis_prefix)
    report = WorkerReport(name="w0", pid=1, ready=True, engine="cpu", graphs=0, bytes=0, beat_at=0.0)
    with redis_server.running(settings), connect(settings) as client:
        lease = Lease(client, keys, "w0", 60.0, settings.redis_location)
        lease.acquire()
        lease.start(lambda: report, lambda: None, lambda: None)
        eventually(lambda: client.hexists(keys.workers, "w0"))
        with redis.Redis(unix_socket_path=str(settings.redis_socket)) as admin:
            admin.config_set("maxmemory", 1)
        lease.release()
        assert not client.exists(keys.lease("w0"))


def test_an_update_waits_for_as_long_as_a_disk_is_full(
    caller: Caller, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not sent back as one that others are in the way of. The log has it once, whichever command is refused."""
    monkeypatch.setattr(tries, "MAX_SETBACKS", 1)
    start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    until, refusals = time.monotonic() + 1.0, count()

    def on_full_disk(command: Callable[..., Any]) -> Callable[..., Any]:
        def full(*args: Any, **more: Any) -> Any:
            if time.monotonic() < until:
                error = understood(redis.ResponseError("MISCONF Errors writing to the AOF file"))
                error.args = (f"Command # {next(refusals) % 2} of pipeline caused error: {error}",)
                raise error
            return command(*args, **more)

        return full

    for name in ("append", "queue"):
        monkeypatch.setattr(Log, name, on_full_disk(getattr(Log, name)))
    args = PatchArgs(batch=[Operation(op="add", edges=[0], amounts=["1"])])
    with structlog.testing.capture_logs() as lines:
        assert result(caller.reply(Kind.PATCH, "g", args))["version"] == 2
    assert next(refusals) > 3
    assert len([line for line in lines if line["event"] == "tried_again"]) == 1
