"""The compose file, with its processes on this machine: the short part of `make rehearsal`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import redis

from service.host import redis_server, torn_log
from service.settings import Settings
from tests.contract.test_tls import health
from tests.rehearsal import compose
from tests.rehearsal.contract import TORN
from tests.rehearsal.house import opened
from tests.rehearsal.runs import calling, doors

STORE = [sys.executable, "-m", "service.host.store"]


def test_the_services_of_the_compose_file_work_and_lose_nothing(tmp_path: Path) -> None:
    """The store is killed and its file torn, as by a power loss; its container's own command mends it."""
    containers = compose.containers(compose.read({"HEADRACE_API_PROCESSES": "1"}), {"cpu"})
    with opened(tmp_path, [found for found in containers if found.names != ("front",)]) as house:
        with calling(doors(house)) as contract:
            contract.load()
            contract.patch(1.5)
            (store,) = house.of("valkey")
            contract.keep_through_the_end_of(house, store)
        (worker,) = house.of("worker-cpu")
        assert house.is_healthy(worker)


@pytest.mark.parametrize(("words", "said"), [([], "usage: "), (["no-such-program"], "headrace: ")])
def test_a_store_that_cannot_be_started_says_why(tmp_path: Path, words: list[str], said: str) -> None:
    done = subprocess.run([*STORE, str(tmp_path), *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == 1


def test_the_store_becomes_the_server_on_a_mended_file(tmp_path: Path) -> None:
    folder = tmp_path / "appendonlydir"
    folder.mkdir()
    file = folder / "appendonly.aof.1.incr.aof"
    whole = torn_log.MULTI + torn_log.EXEC
    file.write_bytes(whole + TORN)
    done = subprocess.run([*STORE, str(tmp_path), "cat", str(file)], capture_output=True, timeout=60, check=False)
    assert done.stdout == whole
    assert b"unfinished_transaction_removed" in done.stderr


def test_a_worker_is_not_started_again_for_a_store_that_is_away(redis_url: str) -> None:
    """Liveness: a store that answers says whether the worker has its lease; one that is away says nothing."""
    here = os.environ | {"HEADRACE_REDIS_URL": redis_url, "HEADRACE_REDIS_PREFIX": "rehearsal:"}
    away = here | {"HEADRACE_REDIS_URL": "redis://127.0.0.1:9/0"}
    assert health(["store"], here).returncode == 0
    assert health(["store"], away).returncode == 1
    assert health(["lives", "w0"], here).returncode == 1
    assert health(["lives", "w0"], away).returncode == 0


def test_a_worker_is_not_started_again_for_a_store_that_is_full(tmp_path: Path) -> None:
    """It cannot renew its lease: it was ended every few minutes, and no new one got a lease either."""
    settings = Settings(data_dir=tmp_path, redis_url=None)
    here = os.environ | {"HEADRACE_REDIS_URL": settings.redis_location}
    with redis_server.running(settings), redis.Redis(unix_socket_path=str(settings.redis_socket)) as admin:
        assert health(["lives", "w0"], here).returncode == 1
        admin.config_set("maxmemory", 1)
        full = health(["lives", "w0"], here)
        assert (full.returncode, "maxmemory" in full.stderr) == (0, True)
        assert health(["worker", "w0"], here).returncode == 1
