"""`headrace serve` as a user has it: what it refuses, what it restarts, and that nothing outlives it."""

import json
import os
import re
import resource
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis
from headrace import Client

from service.host.backup import NoBackup, back_up_service
from service.host.manifest import FOLDER
from service.settings import Settings
from tests.serving import PATIENCE_S, Service, eventually, serve_command, serving
from tests.shared_services import Services

pytestmark = pytest.mark.crash

EDGES = {"tail": [0, 0, 1, 2], "head": [1, 2, 3, 3], "capacity": [3, 2.5, 4, 2], "source": 0, "sink": 3}


def value(service: Service) -> tuple[int, float]:
    answer = service.http.post("/v1/graphs/city/max-flow").json()
    return answer["version"], answer["value"]


def refused(data_dir: Path, *options: str) -> str:
    """What a serve that must not start says on stderr."""
    command = serve_command(data_dir, *options)
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    return done.stderr


def no_key(data_dir: Path) -> str:
    """What `headrace keys create` says where it must make none."""
    command = [sys.executable, "-m", "service.cli", "keys", "create", "ops", "--yes", "--data-dir", str(data_dir)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def load(service: Service) -> None:
    assert service.http.put("/v1/graphs/city", json=EDGES).status_code == 201
    assert value(service) == (1, 5)
    answer = service.http.patch("/v1/graphs/city/capacities", json={"edges": [0], "set": [1.5]})
    assert answer.json()["version"] == 2


def test_a_child_killed_comes_back_with_all_it_had_and_none_outlives_a_killed_supervisor(tmp_path: Path) -> None:
    with serving(tmp_path) as service:
        load(service)
        for role in ("worker", "api", "redis"):
            old = service.children()[role]
            os.kill(old, signal.SIGKILL)
            eventually(lambda role=role, old=old: service.children().get(role, old) != old)  # type: ignore[misc]
            service.wait_ready()
            eventually(lambda: service.http.get("/v1/graphs/city").status_code == 200)
            assert value(service) == (2, 3.5), role
        children = service.children()
        service.process.kill()
        service.process.wait(PATIENCE_S)
    with serving(tmp_path) as again:  # waits for the orphans, which hold the lock, then has their data
        assert all(is_gone(pid) for pid in children.values())
        # The lease of the worker that was killed may end before the new one has its own.
        eventually(lambda: again.http.post("/v1/graphs/city/max-flow").status_code == 200)
        assert value(again) == (2, 3.5)


def test_a_child_that_cannot_be_started_again_yet_is_tried_later(tmp_path: Path) -> None:
    """As where the machine has no memory or no processes left for a while; here no files."""
    with serving(tmp_path) as service:
        load(service)
        limits = resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE, (3, limits[1]))
        for role in ("worker", "redis"):
            os.kill(service.children()[role], signal.SIGKILL)
        eventually(lambda: "worker" not in service.children())
        time.sleep(1)
        assert service.process.poll() is None
        assert "worker" not in service.children()
        resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE, limits)
        service.wait_ready()
        assert value(service) == (2, 3.5)


def test_files_that_are_removed_under_it_are_told_of(tmp_path: Path) -> None:
    """As by whoever cleans up, or puts a backup back too early: Redis goes on, and writes files that nobody finds."""
    data_dir, log = tmp_path / "data", tmp_path / "log"
    with serving(data_dir, log) as service:
        load(service)
        hook = {"url": "https://example.com/in", "graphs": ["city"]}
        assert service.http.put("/v1/webhooks/pager", json=hook).status_code == 201
        assert "data_gone" not in log.read_text()
        assert service.http.get("/readyz").status_code == 200
        shutil.rmtree(data_dir)
        eventually(lambda: "data_gone" in log.read_text())
        with ThreadPoolExecutor(8) as callers:  # which takes more connections to Redis than there are
            exported = [callers.submit(service.http.get, "/v1/graphs/city/export", timeout=60) for _ in range(64)]
            values = [callers.submit(value, service) for _ in range(64)]
            assert {one.result().status_code for one in exported} == {200}
            assert {one.result() for one in values} == {(2, 3.5)}
        told = next(line for line in map(json.loads, log.read_text().splitlines()) if line["event"] == "data_gone")
        assert (told["path"], told["level"], told["process"]) == (str(data_dir / "redis"), "error", "supervisor")
        assert "Export the graphs" in told["hint"]
        eventually(lambda: service.http.get("/readyz").status_code == 503)
        assert "Export the graphs" in service.http.get("/health").json()["detail"]
        for change in (
            service.http.patch("/v1/graphs/city/capacities", json={"edges": [0], "set": [1]}),
            service.http.put("/v1/graphs/other", json={"n_vertices": 2, "tail": [0], "head": [1], "capacity": [1]}),
            service.http.delete("/v1/graphs/city"),
            service.http.post("/v1/graphs/city/snapshots"),
            service.http.put("/v1/webhooks/new", json=hook),
            service.http.post("/v1/webhooks/pager:rotate"),
            service.http.delete("/v1/webhooks/pager"),
        ):
            assert (change.status_code, change.json()["code"]) == (503, "data_gone")
            assert "Changes of graphs and webhooks are refused" in change.json()["detail"]
        assert value(service) == (2, 3.5)
        assert "is not what the service has that runs on it" in no_key(data_dir)
        assert not data_dir.exists()
        data_dir.mkdir()
        eventually((data_dir / "serve.lock").exists)
        eventually(lambda: json.loads((data_dir / "serve.lock").read_text())["data_gone"])
        with pytest.raises(NoBackup, match="is not what the service has that runs on it"):
            back_up_service(Settings(data_dir=data_dir), tmp_path / "copy")
        assert "is not what the service has that runs on it" in no_key(data_dir)
        assert [path.name for path in data_dir.iterdir()] == ["serve.lock"]
        told_of = service.http.get("/status").json()["redis"]
        assert (told_of["data_gone"], told_of["appendonly"]) == (True, False)
        assert "Not durable: the files" in service.http.get("/status", headers={"Accept": "text/html"}).text
        assert "headrace_redis_appendonly 0.0" in service.http.get("/metrics").text


def test_files_that_are_removed_from_folders_that_stay_are_told_of(tmp_path: Path) -> None:
    """As by a cleaner that takes old files and leaves folders. Redis writes all it has into new files when it is asked
    to, which ends the trouble."""
    with serving(tmp_path) as service:
        load(service)
        for file in (tmp_path / "redis" / FOLDER).iterdir():
            file.unlink()
        eventually(lambda: service.http.get("/readyz").status_code == 503)
        change = {"edges": [0], "set": [1]}
        assert service.http.patch("/v1/graphs/city/capacities", json=change).json()["code"] == "data_gone"
        with pytest.raises(NoBackup, match="is not what the service has that runs on it"):
            back_up_service(Settings(data_dir=tmp_path), tmp_path / "copy")
        assert "is not what the service has that runs on it" in no_key(tmp_path)
        with redis.Redis(unix_socket_path=str(tmp_path / "redis.sock")) as client:
            client.bgrewriteaof()
        service.wait_ready()
        assert service.http.patch("/v1/graphs/city/capacities", json=change).json()["version"] == 3
    with serving(tmp_path) as service:
        eventually(lambda: service.http.get("/v1/graphs/city").status_code == 200)
        assert value(service)[0] == 3


def test_files_that_come_back_are_what_they_were(tmp_path: Path) -> None:
    """Redis has written to them all the time."""
    with serving(tmp_path) as service:
        load(service)
        (tmp_path / "redis").rename(tmp_path / "away")
        eventually(lambda: service.http.get("/readyz").status_code == 503)
        change = {"edges": [0], "set": [1]}
        assert service.http.patch("/v1/graphs/city/capacities", json=change).status_code == 503
        (tmp_path / "away").rename(tmp_path / "redis")
        began = time.monotonic()
        eventually(lambda: service.http.get("/readyz").status_code == 200)
        assert time.monotonic() - began < 30, "changes are refused meanwhile"
        version, _ = value(service)
        assert service.http.patch("/v1/graphs/city/capacities", json=change).json()["version"] == version + 1


@contextmanager
def hanging_up(what: signal.Handlers) -> Iterator[None]:
    """What a child inherits of the end of a terminal: nohup has it ignored, and these tests may run under it."""
    ours = signal.signal(signal.SIGHUP, what)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, ours)


def test_a_signal_ends_all_and_keeps_all(tmp_path: Path) -> None:
    """Each signal in its turn, to a service that has what was changed before the last one; but who was told to outlive
    the terminal does, until it is told to end."""
    for turn, number in enumerate((signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)):
        with hanging_up(signal.SIG_DFL), serving(tmp_path) as service:
            if turn == 0:
                load(service)
            else:
                assert value(service) == (turn + 1, turn + 2.5)
                answer = service.http.patch("/v1/graphs/city/capacities", json={"edges": [0], "set": [turn + 1.5]})
                assert answer.json()["version"] == turn + 2
            children = service.children()
            assert set(children) == {"worker", "api", "redis"}
            service.process.send_signal(number)
            assert service.process.wait(PATIENCE_S) == 0, number
            assert all(is_gone(pid) for pid in children.values()), number
    with hanging_up(signal.SIG_IGN), serving(tmp_path) as again:
        again.process.send_signal(signal.SIGHUP)
        assert value(again) == (4, 5.5)
        again.wait_ready()
        assert again.process.poll() is None
        finishes_a_slow_answer_before_its_end(again)


def test_a_client_and_its_events_outlast_a_restart_of_all(tmp_path: Path) -> None:
    """For longer than six tries would take, which were all that there were."""
    with serving(tmp_path) as service, Client(service.url) as client:
        load(service)
        events = client.graph("city").events()
        told = [sys.executable, "-m", "service.cli", "events", "city", "--after", "0", "--count", "3"]
        command = subprocess.Popen([*told, "--url", service.url], stdout=subprocess.PIPE, text=True)
        assert command.stdout is not None
        assert [command.stdout.readline() for _ in range(2)] == ["version 1\n", "version 2\n"]
        service.process.terminate()
        assert service.process.wait(PATIENCE_S) == 0
        again = serve_command(tmp_path, "--port", service.url.rpartition(":")[2])
        later = ["sh", "-c", f"sleep 4; exec {shlex.join(again)}"]
        with command, subprocess.Popen(later, stdout=subprocess.DEVNULL) as process:
            try:
                version = client.graph("city").patch(edges=[0], set=[2]).version
                assert next(events).data["version"] == version == 3
                assert command.stdout.read() == "version 3\n"
            finally:
                events.close()
                process.terminate()


def finishes_a_slow_answer_before_its_end(service: Service) -> None:
    """SIGTERM while a request is being read: the connection is served, then closed."""
    body = json.dumps(EDGES).encode()
    host, port = service.url.removeprefix("http://").split(":")
    head = "PUT /v1/graphs/late HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(body)}\r\n\r\n"
    with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as connection:
        connection.sendall(head.encode() + body[:10])
        time.sleep(0.3)
        service.process.terminate()
        time.sleep(0.3)
        connection.sendall(body[10:])
        answer: Any = connection.makefile("rb").readline()
    assert answer.startswith(b"HTTP/1.1 201 ")
    assert service.process.wait(PATIENCE_S) == 0


def test_one_serve_for_a_directory_and_one_for_a_port(services: Services, tmp_path: Path) -> None:
    with services.lent() as service:
        said = refused(service.data_dir, "--port", "0")
        assert f"is served by process {service.process.pid}" in said
        port = service.url.rpartition(":")[2]
        assert f"cannot listen on 127.0.0.1:{port}" in refused(tmp_path / "b", "--port", port)
        service.wait_ready()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--host", "0.0.0.0"), "reachable from other machines"),
        (("--host", "::"), "reachable from other machines"),
        (("--host", "no.such.host.invalid"), "--host no.such.host.invalid"),
    ],
)
def test_hosts_it_does_not_bind(tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    assert words in refused(tmp_path, "--port", "0", *options)


def test_a_redis_that_cannot_start_is_said_so(tmp_path: Path) -> None:
    """An append-only file that is none: given up after a few tries, with the place of the log."""
    (tmp_path / "redis").mkdir()
    (tmp_path / "redis" / "appendonly.aof").write_bytes(b"no append-only file")
    said = refused(tmp_path, "--port", "0")
    assert "redis ended 5 times before it was ready" in said
    assert str(tmp_path / "redis" / "redis.log") in said


CUPY = """
class runtime:
    class CUDARuntimeError(Exception): ...
    getDeviceCount = staticmethod(lambda: 1)
    getDeviceProperties = staticmethod(lambda number: {"name": b"a device"})
"""


def test_a_worker_that_cannot_begin_is_not_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its line has why: here it looks behind the name of an engine, and the supervisor only for a device."""
    package = tmp_path / "stub" / "cupy" / "cuda"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").write_text(CUPY)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "stub"), *sys.path]))
    monkeypatch.setenv("HEADRACE_ENGINE", "cuda:nope")
    said = refused(tmp_path / "data", "--port", "0")
    assert said.count("HEADRACE_ENGINE is cuda:nope: no preset 'nope'; there are default, ") == 1
    assert "headrace: cpu-0 cannot begin; the log above says why" in said


def test_several_api_processes_share_the_port_and_the_work(tmp_path: Path) -> None:
    """Each gets callers; one that is killed comes back, and whoever called it meanwhile waits for it."""
    with serving(tmp_path, environment={"HEADRACE_API_PROCESSES": "3"}) as service:
        load(service)
        apis = {pid for pid, role in service.roles().items() if role == "api"}
        assert len(apis) == 3
        assert {answerer(service) for _ in range(100)} == apis
        killed = apis.pop()
        os.kill(killed, signal.SIGKILL)
        answered: set[int] = set()
        for _ in range(10_000):  # until the new one is there: nobody is refused meanwhile
            answered.add(answerer(service))
            if len(answered - {killed}) == 3:
                break
        assert len(answered - {killed}) == 3
        eventually(lambda: tellers(service) == {"0", "1", "2"})
        service.process.terminate()
        assert service.process.wait(PATIENCE_S) == 0


def answerer(service: Service) -> int:
    """The API process that answers a new connection."""
    with httpx.Client(base_url=service.url, verify=False, trust_env=False, timeout=PATIENCE_S) as another:
        pid: int = another.get("/status").json()["api"]["pid"]
        return pid


def tellers(service: Service) -> set[str]:
    """The API processes whose answers stand in the metrics of one: they tell each other every 2 s."""
    text = service.http.get("/metrics").text
    return {*re.findall(r'headrace_http_request_seconds_count\{.*process="(\d)".*route="/status"', text)}
