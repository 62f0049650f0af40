"""How a delivery ends, seen in Redis: what a command must not lose when it is handed on."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from service.protocol import Command, Kind
from service.settings import Settings
from service.store.connection import connect
from service.store.keys import Keys
from service.store.outcomes import CANCELLED
from service.worker.running.endings import Endings
from service.worker.running.task import GROUP, Task, parse_command


@pytest.fixture
def client(settings: Settings) -> Iterator[Any]:
    client = connect(settings)
    yield client
    client.close()


@pytest.fixture
def keys(settings: Settings) -> Keys:
    return Keys(settings.redis_prefix)


@pytest.fixture
def task(client: Any, keys: Keys) -> Task:
    """A command under a key, which the worker w0 has been given."""
    command = Command(
        id="job",
        kind=Kind.PATCH,
        graph="g",
        args={"batch": []},
        reply_to="api",
        idempotency_key="key",
        body_digest="digest",
        created_at=time.time(),
        request_id="request",
    )
    client.hset(keys.job("job"), mapping={"status": "queued", "worker": "w0"})
    client.zadd(keys.waiting("w0"), {"job": command.created_at})
    client.xgroup_create(keys.commands("w0"), GROUP, id="0", mkstream=True)
    client.xadd(keys.commands("w0"), {"command": command.to_json()})
    ((_, [(entry_id, _)]),) = client.xreadgroup(GROUP, "w0", {keys.commands("w0"): ">"})
    return Task(entry_id, command, redelivered=False)


def test_a_command_is_handed_on_whole(client: Any, keys: Keys, settings: Settings, task: Task) -> None:
    client.set(keys.outcome("job"), CANCELLED)
    Endings(client, keys, "w0", settings).forward(task, "w1")
    ((_, fields),) = client.xrange(keys.commands("w1"))
    assert parse_command(fields) == task.command
    assert client.get(keys.outcome("job")) == CANCELLED
    assert client.hget(keys.job("job"), "worker") == b"w1"
    assert (client.zcard(keys.waiting("w0")), client.zcard(keys.waiting("w1"))) == (0, 1)
    assert client.xlen(keys.commands("w0")) == 0
    assert client.xpending(keys.commands("w0"), GROUP)["pending"] == 0
    assert task.ended
    assert task.status is None
