"""What Redis says stays here: its commands, key names and addresses reach the log and no caller."""

import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import httpx
import pytest
import redis
import structlog
from redis.backoff import NoBackoff
from redis.retry import Retry

from service.api.guards.access import NEEDED
from service.api.guards.admission import BUSY
from service.host import redis_server
from service.queue.watch import away
from service.settings import Settings
from service.store.connection import AWAY
from service.store.keys import Keys
from tests.api_process import api_process
from tests.serving import eventually

BODIES = {
    "{name}": {"tail": [0], "head": [1], "capacity": [3]},
    "capacities": {"edges": [0], "set": [1]},
    "costs": {"edges": [0], "set": [1]},
    "lower": {"edges": [0], "set": [1]},
    "edges": {"op": "delete", "edges": [0]},
    "graphs:estimate": {"n_vertices": 2, "n_edges": 1},
    "{name}:copy": {"to": "h"},
    "what-if": {"scenarios": [{}]},
    "pairs": {"source": [0], "sink": [1]},
    "vertices": {"vertices": [0], "set": [1]},
    "parametric": {"edges": [0], "to": 2},
    "partition": {"k": 2},
    "capacity-expansion": {"raise_by": 1, "edges": [0], "price": [1]},
    "{name}:restore": {"version": 1},
    "{name}:move": {"to": "w1"},
    "{webhook}": {"url": "https://example.com/", "graphs": ["g"]},
}
WAITING = 40
"""Callers who wait for one graph at a time."""

TELLING = ("sock", "headrace:", "connect", "Error", "errno", "Command #", "pipeline", "closed")


def test_a_redis_that_has_gone_is_not_described(tmp_path: Path) -> None:
    """On any route. The keys were read just before, so that requests get further than to them."""
    settings = Settings(data_dir=tmp_path, redis_url=None)

    def ask(route: tuple[str, str]) -> httpx.Response:
        method, path = route
        address = url + path.format(name="g", job_id="j", version=1, watch="w", webhook="w", delivery="d", worker="w0")
        body = None if method in ("GET", "DELETE") else BODIES.get(path.rpartition("/")[2])
        return httpx.request(method, address, json=body, trust_env=False, timeout=60)

    with redis_server.running(settings) as server, api_process(settings.redis_location) as api:
        url = f"http://127.0.0.1:{api.address[1]}"
        assert ask(("GET", "/v1/graphs")).status_code == 200
        server.kill()
        with ThreadPoolExecutor(len(NEEDED)) as pool:
            answers = dict(zip(NEEDED, pool.map(ask, NEEDED), strict=True))
    metrics = answers.pop(("GET", "/metrics"))
    assert metrics.status_code == 200
    for route, response in answers.items():
        assert (response.status_code, response.json()["code"]) == (503, "worker_unavailable"), route
        assert not [word for word in TELLING if word in response.text], (route, response.text)
    no_further = [route for route, response in answers.items() if "keys cannot be read" in response.text]
    assert len(no_further) < len(answers) / 2, "on a busy machine some come when the keys are old"


def test_a_line_behind_a_redis_that_has_gone_is_told_so(tmp_path: Path) -> None:
    """And not that the line is too long. Commands at work end no more while Redis is away, so nobody behind them would
    find out by himself."""
    settings = Settings(data_dir=tmp_path, redis_url=None)
    keys = Keys(settings.redis_prefix)
    with ThreadPoolExecutor(WAITING) as pool, ExitStack() as stack:
        server = stack.enter_context(redis_server.running(settings))
        environment = {"HEADRACE_REDIS_PREFIX": settings.redis_prefix, "HEADRACE_GRAPH_QUEUE_LIMIT": str(WAITING)}
        api = stack.enter_context(api_process(settings.redis_location, environment=environment))
        url = f"http://127.0.0.1:{api.address[1]}"

        def ask(wait_s: int) -> httpx.Response:
            wait = {"Prefer": f"wait={wait_s}"}
            return httpx.post(f"{url}/v1/graphs/g/max-flow", headers=wait, trust_env=False, timeout=60)

        assert httpx.get(f"{url}/v1/graphs", trust_env=False).status_code == 200  # the keys are read
        with redis.Redis(unix_socket_path=str(settings.redis_socket)) as admin:
            admin.hset(keys.owners, "g", "w0")
            admin.hset(keys.names, "g", "0123456789abcdef")
            admin.set(keys.lease("w0"), "here")
            for _ in range(BUSY):
                pool.submit(ask, 10)
            eventually(lambda: admin.xlen(keys.commands("w0")) == BUSY)
        before = [pool.submit(ask, 300) for _ in range(WAITING // 2)]
        server.kill()
        server.wait()
        answers = [*pool.map(ask, [300] * WAITING), *(asked.result() for asked in before)]
        assert {(answer.status_code, answer.json()["code"]) for answer in answers} == {(503, "worker_unavailable")}
        assert all(answer.json()["detail"].endswith("Redis does not answer") for answer in answers)
        assert all(answer.headers["Retry-After"] for answer in answers)


@pytest.mark.parametrize("kind", AWAY)
def test_what_redis_says_is_in_the_log(kind: type[Exception]) -> None:
    said = "Command # 1 (HSET headrace:job:1 status queued) of pipeline caused error: command not allowed"
    with structlog.testing.capture_logs() as lines:
        refused = away(kind(said))
    assert not [word for word in TELLING if word in refused.detail]
    assert said in [line.get("error") for line in lines]  # a server of another test may be writing too
    assert issubclass(kind, redis.RedisError)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["CONFIG", "SET", "maxmemory", "1"], "Redis has reached its maxmemory and takes no writes"),
        (["REPLICAOF", "127.0.0.1", "1"], "Redis is a replica and takes no writes"),
        (
            ["CONFIG", "SET", "min-replicas-to-write", "1"],
            "Redis has fewer replicas than min-replicas-to-write and takes no writes",
        ),
        (
            ["ACL", "SETUSER", "headrace", "-set", "-hset"],
            "Redis does not let its user do what this needs; the log says what",
        ),
    ],
)
def test_a_redis_that_takes_no_writes_is_said_to_do_so(command: list[str], told: str, tmp_path: Path) -> None:
    """It was said not to answer, which sent whoever read it to look for a process that was there. Its workers were said
    to be away, as they can renew no lease."""
    settings = Settings(data_dir=tmp_path, redis_url=None)
    environment = {"HEADRACE_REDIS_PREFIX": settings.redis_prefix}
    with redis_server.running(settings), api_process(settings.redis_location, environment=environment) as api:
        with redis.Redis(unix_socket_path=str(settings.redis_socket)) as admin:
            keys = Keys(settings.redis_prefix)
            admin.hset(keys.owners, "g", "w0")
            admin.hset(keys.names, "g", "0123456789abcdef")
            admin.execute_command(*command)
        with httpx.Client(base_url=f"http://127.0.0.1:{api.address[1]}", trust_env=False, timeout=60) as http:
            answers = [
                http.put("/v1/webhooks/w", json=BODIES["{webhook}"]),
                http.post("/v1/graphs/g/max-flow"),
                http.get("/readyz"),
            ]
    for refused in answers:
        problem = refused.json()
        assert (refused.status_code, problem["code"], problem["detail"]) == (503, "worker_unavailable", told)
        assert refused.headers["Retry-After"]


@pytest.mark.parametrize(
    ("commands", "told"),
    [
        (
            [["CONFIG", "SET", "replica-serve-stale-data", "no"], ["REPLICAOF", "127.0.0.1", "1"]],
            "Redis is a replica without its primary and answers nothing",
        ),
        (
            [["ACL", "SETUSER", "headrace", "-hgetall"]],
            "Redis does not let its user do what this needs; the log says what",
        ),
        (
            [["ACL", "SETUSER", "headrace", "resetpass", ">another"], ["CLIENT", "KILL", "USER", "headrace"]],
            "Redis does not take the password of this service any more",
        ),
        (
            [["CONFIG", "SET", "busy-reply-threshold", "1"], ["EVAL", "while true do end", "0"]],
            "Redis runs a script of somebody's that takes long, and does nothing else meanwhile",
        ),
    ],
)
def test_a_redis_that_answers_nothing_is_said_to_do_so(commands: list[list[str]], told: str, tmp_path: Path) -> None:
    """To whoever asks for the first time, and to probes, which the API process answers without the API keys."""
    settings = Settings(data_dir=tmp_path, redis_url=None)
    with redis_server.running(settings) as server, api_process(settings.redis_location) as api:
        address, once = str(settings.redis_socket), Retry(NoBackoff(), 0)
        with redis.Redis(unix_socket_path=address, socket_timeout=0.5, retry=once) as admin:
            for command in commands[:-1]:
                admin.execute_command(*command)
            with suppress(redis.TimeoutError):  # the script goes on
                admin.execute_command(*commands[-1])
        url = f"http://127.0.0.1:{api.address[1]}"
        answers = {path: httpx.get(url + path, trust_env=False, timeout=60) for path in ("/readyz", "/v1/graphs")}
        server.kill()
    for path, answer in answers.items():
        assert (answer.status_code, answer.json()["code"]) == (503, "worker_unavailable"), path
        assert answer.json()["detail"].removeprefix("the API keys cannot be read: ") == told, path
        assert answer.headers["Retry-After"], path


def test_a_redis_that_reads_a_large_file_is_said_to_do_so(tmp_path: Path) -> None:
    """To probes and callers: they gave up a moment before the reason was there, and heard of no answer."""
    socket, program = str(tmp_path / "sock"), redis_server.find_server(tmp_path).path
    options = ["--port", "0", "--unixsocket", socket, "--dir", str(tmp_path), "--save", ""]
    slowly = ["--key-load-delay", "20000", "--loading-process-events-interval-bytes", "1024"]

    def answers(admin: redis.Redis) -> bool:
        try:
            return bool(admin.ping())
        except redis.exceptions.BusyLoadingError:
            return True
        except redis.ConnectionError:
            return False

    with redis.Redis(unix_socket_path=socket, retry=Retry(NoBackoff(), 0)) as admin, ExitStack() as stack:
        first = stack.enter_context(killed(subprocess.Popen([program, *options], stdout=subprocess.DEVNULL)))
        eventually(lambda: answers(admin))
        for number in range(2000):
            admin.set(f"other:{number}", os.urandom(2000))
        api = stack.enter_context(api_process(f"unix://{socket}"))
        url = f"http://127.0.0.1:{api.address[1]}"
        assert httpx.get(f"{url}/v1/graphs", trust_env=False, timeout=60).status_code == 200
        admin.save()
        first.kill()
        first.wait()
        stack.enter_context(killed(subprocess.Popen([program, *options, *slowly], stdout=subprocess.DEVNULL)))
        eventually(lambda: answers(admin))

        def says_so(path: str) -> bool:
            answer = httpx.get(url + path, trust_env=False, timeout=60)
            assert (answer.status_code, answer.json()["code"]) == (503, "worker_unavailable"), path
            told: str = answer.json()["detail"].removeprefix("the API keys cannot be read: ")
            return told == "Redis reads its files and does not answer yet"

        for path in ("/readyz", "/status"):
            eventually(partial(says_so, path))  # a machine may be busy for a moment


@contextmanager
def killed(process: "subprocess.Popen[bytes]") -> Iterator["subprocess.Popen[bytes]"]:
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_disk_that_is_full_is_said_to_be_so() -> None:
    error = redis.ResponseError("MISCONF Errors writing to the AOF file: No space left on device")
    assert away(error).detail == "Redis cannot write its files and takes no writes"
    assert away(redis.exceptions.BusyLoadingError("LOADING")).detail == "Redis reads its files and does not answer yet"
