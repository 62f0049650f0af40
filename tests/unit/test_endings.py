"""How a delivery ends, seen in Redis: what a command must not lose when it is handed on."""

import json
import time
from typing import Any

import pytest
import redis

from service.protocol import Command, Kind, Problem
from service.settings import Settings
from service.store.durable import Written
from service.store.jobs.outcomes import CANCELLED
from service.store.jobs.record import Result
from service.store.jobs.transitions import GROUP
from service.store.keys import Keys
from service.store.watched import watched
from service.worker.running import endings
from service.worker.running.endings import Endings
from service.worker.running.task import Task, parse_command


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
    Endings(client, keys, "w0", settings, Written(client, keys)).forward(task, "w1")
    ((_, fields),) = client.xrange(keys.commands("w1"))
    assert parse_command(fields) == task.command
    assert client.get(keys.outcome("job")) == CANCELLED
    assert client.hget(keys.job("job"), "worker") == b"w1"
    assert (client.zcard(keys.waiting("w0")), client.zcard(keys.waiting("w1"))) == (0, 1)
    assert client.xlen(keys.commands("w0")) == 0
    assert client.xpending(keys.commands("w0"), GROUP)["pending"] == 0
    assert task.ended
    assert task.status is None


FIRST, SECOND = (Result(b'{"version":%d}' % version) for version in (5, 6))


@pytest.mark.parametrize("when", ["before it looks", "after it has looked"])
def test_the_first_answer_stays(
    client: Any, keys: Keys, settings: Settings, task: Task, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """Found by seed 10874 of the fault bench: a worker that was paused gave another answer than the one that had taken
    the command over."""
    other = Task(b"0-1", task.command, redelivered=True)

    def take_over(*arguments: Any) -> list[Any]:
        answers = watched(*arguments)
        monkeypatch.undo()
        Endings(client, keys, "w1", settings, Written(client, keys)).succeed(other, FIRST)
        return answers

    if when == "before it looks":
        Endings(client, keys, "w1", settings, Written(client, keys)).succeed(other, FIRST)
    else:
        monkeypatch.setattr(endings, "watched", take_over)
    Endings(client, keys, "w0", settings, Written(client, keys)).succeed(task, SECOND)
    assert (task.ended, other.ended) == (True, True)
    assert client.hget(keys.job("job"), "result") == FIRST.text
    assert client.xlen(keys.replies("api")) == 1
    assert client.xlen(keys.commands("w0")) == client.zcard(keys.waiting("w0")) == 0


def test_a_job_that_redis_lost_is_not_answered(client: Any, keys: Keys, settings: Settings, task: Task) -> None:
    """Its caller is told to send it again."""
    client.delete(keys.job("job"))
    Endings(client, keys, "w0", settings, Written(client, keys)).succeed(task, FIRST)
    assert task.ended
    assert not client.exists(keys.job("job"))
    assert client.xlen(keys.replies("api")) == client.xlen(keys.commands("w0")) == 0


def test_a_job_that_changes_meanwhile_is_answered(
    client: Any, keys: Keys, settings: Settings, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    def handed_on(*arguments: Any) -> list[Any]:
        answers = watched(*arguments)
        monkeypatch.undo()
        client.hset(keys.job("job"), "worker", "w1")
        return answers

    monkeypatch.setattr(endings, "watched", handed_on)
    Endings(client, keys, "w0", settings, Written(client, keys)).succeed(task, FIRST)
    assert client.hget(keys.job("job"), "status") == b"succeeded"


AWAY_NOW = Problem(code="worker_unavailable", detail="away")


@pytest.mark.parametrize("again", [False, True], ids=["ended", "and sent again"])
def test_what_another_worker_ends_meanwhile_is_left_alone(
    client: Any, keys: Keys, settings: Settings, task: Task, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    """The worker was paused between its look at the command and its EXEC."""
    name = keys.idempotency("g", "key")
    client.set(name, json.dumps({"job": "job", "digest": "digest"}))

    def paused(*arguments: Any) -> list[Any]:
        answers = watched(*arguments)
        client.hset(keys.job("job"), mapping={"status": "failed", "reply": "of the other worker"})
        if again:
            client.set(name, json.dumps({"job": "a later one", "digest": "digest"}))
        return answers

    with monkeypatch.context() as pausing:
        pausing.setattr(endings, "watched", paused)
        with pytest.raises(redis.WatchError):
            Endings(client, keys, "w0", settings, Written(client, keys)).refuse(task, AWAY_NOW)
    assert not task.ended
    before = client.get(name)
    Endings(client, keys, "w0", settings, Written(client, keys)).refuse(task, AWAY_NOW)  # as the consumer does then
    assert task.ended
    assert client.get(name) == before
    assert client.hget(keys.job("job"), "reply") == b"of the other worker"
    assert client.xlen(keys.commands("w0")) == client.xlen(keys.replies("api")) == 0


def test_a_key_that_changes_hands_meanwhile_is_left_alone(
    client: Any, keys: Keys, settings: Settings, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = keys.idempotency("g", "key")
    client.set(name, json.dumps({"job": "job", "digest": "digest"}))
    later = json.dumps({"job": "a later one", "digest": "digest"}).encode()

    def paused(*arguments: Any) -> list[Any]:
        answers = watched(*arguments)
        client.set(name, later)
        return answers

    with monkeypatch.context() as pausing:
        pausing.setattr(endings, "watched", paused)
        with pytest.raises(redis.WatchError):
            Endings(client, keys, "w0", settings, Written(client, keys)).refuse(task, AWAY_NOW)
    assert client.get(name) == later


@pytest.mark.parametrize("code", ["worker_unavailable", "version_conflict"])
@pytest.mark.parametrize("own", [False, True])
def test_a_refusal_touches_its_own_key_only(
    client: Any, keys: Keys, settings: Settings, task: Task, own: bool, code: str
) -> None:
    name, owner = keys.idempotency("g", "key"), "job" if own else "a later one"
    client.set(name, json.dumps({"job": owner, "digest": "digest"}))
    Endings(client, keys, "w0", settings, Written(client, keys)).refuse(task, Problem(code=code, detail="no"))
    assert client.hget(keys.job("job"), "status") == b"failed"
    if not own:
        assert client.ttl(name) == -1
    elif code == "worker_unavailable":
        assert not client.exists(name)
    else:
        assert 0 < client.ttl(name) <= settings.job_ttl_s
