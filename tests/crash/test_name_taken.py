"""Two services on one Redis, by mistake: their workers have one name, which one of them keeps."""

import time
from pathlib import Path

import pytest

from service.settings import Settings
from service.store.connection import connect
from service.store.keys import Keys
from tests.serving import Service, eventually, serving

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
