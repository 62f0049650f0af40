"""Two services on one Redis, by mistake: their workers have one name, which one of them keeps."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from service.settings import Settings
from service.store.connection import connect
from service.store.keys import Keys
from service.worker.membership.heartbeat import NAME_TAKEN
from tests.serving import PATIENCE_S, Service, eventually, serving

LEASE = {"HEADRACE_LEASE_S": "3"}
GRAPH = {"tail": ["s"], "head": ["t"], "capacity": [3]}
LOOKS, PAUSE_S = 50, 0.2


def answers(service: Service) -> bool:
    asked = {"sources": ["s"], "sinks": ["t"]}
    reply = service.http.post("/v1/graphs/one/max-flow", json=asked)
    return reply.status_code == 200 and reply.json()["value"] == 3


@pytest.mark.crash
def test_the_later_one_has_the_name_until_it_ends(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "a")
    with serving(tmp_path / "a", environment=LEASE) as first:
        first.wait_ready()
        assert first.http.put("/v1/graphs/one", json=GRAPH).status_code == 201
        client, lease = connect(settings), Keys(settings.redis_prefix).lease("cpu-0")
        token = client.get(lease)
        with serving(tmp_path / "b", environment=LEASE | {"HEADRACE_REDIS_URL": settings.redis_location}) as second:
            eventually(lambda: client.get(lease) != token)
            second.wait_ready()
            token, seen = client.get(lease), set()
            for _ in range(LOOKS):  # three leases: they took it from each other within one
                seen.add(client.get(lease))
                time.sleep(PAUSE_S)
            assert seen - {None} == {token}
            assert answers(first)
            assert answers(second)
        eventually(lambda: client.get(lease) not in (None, token))
        eventually(lambda: answers(first))


def waiting(settings: Settings) -> "subprocess.Popen[str]":
    """The process that waits for the name cpu-0, once it says so. It may be the first process of a container, which is
    ended by those signals alone that it takes itself."""
    said = {"HEADRACE_REDIS_URL": settings.redis_location, "HEADRACE_REDIS_PREFIX": settings.redis_prefix}
    command = [sys.executable, "-m", "service.worker.membership.name_taken", "cpu-0"]
    process = subprocess.Popen(command, env=os.environ | said, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert "name_awaited" in process.stderr.readline()
    return process


@pytest.mark.crash
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_who_waits_for_a_name_ends_when_it_is_told_to(number: int, settings: Settings, client: Any, keys: Keys) -> None:
    client.set(keys.lease("cpu-0"), "another")
    with waiting(settings) as process:
        process.send_signal(number)
        assert process.wait(PATIENCE_S) == 0


@pytest.mark.crash
def test_who_waits_for_a_name_ends_when_it_is_free(settings: Settings, client: Any, keys: Keys) -> None:
    client.set(keys.lease("cpu-0"), "another")
    with waiting(settings) as process:
        client.delete(keys.lease("cpu-0"))
        assert process.wait(PATIENCE_S) == NAME_TAKEN
