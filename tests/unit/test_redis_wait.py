"""What `headrace serve` and `headrace worker` want of a Redis that somebody else runs."""

import re
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from structlog.testing import capture_logs
from typer.testing import CliRunner

from gpu_engine.select import open_engine
from service.cli.main import app
from service.host import redis_server
from service.host.redis_wait import await_redis
from service.host.refusal import CannotServe
from service.settings import Settings
from service.worker.process import Worker
from tests.serving import eventually

HIGHEST_OF_A_CLUSTER: Final = 55_535
"""Servers of a cluster speak to each other on a port that is greater by 10,000."""


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


@contextmanager
def a_redis(folder: Path, *arguments: str) -> Iterator[int]:
    """A server of our own until the block ends; its port."""
    port = free_port()
    while port > HIGHEST_OF_A_CLUSTER:
        port = free_port()
    program = redis_server.find_server(folder).path
    (folder / "server.conf").write_text(f"port {port}\ndir {folder}\n")  # a sentinel takes no option in its place
    command = [program, str(folder / "server.conf"), *arguments]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            until = time.monotonic() + 20
            while not _answers(port) and time.monotonic() < until:
                time.sleep(0.05)
            assert _answers(port), arguments
            yield port
        finally:
            process.kill()


def _answers(port: int) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("wait_s", [None, 60.0])
@pytest.mark.parametrize(
    ("database", "arguments", "words"),
    [
        ("99", [], "refuses: DB index is out of range"),
        ("0", ["--requirepass", "secret"], "refuses: Authentication required"),
        ("0", ["--cluster-enabled", "yes"], "is a cluster: the keys of one change would lie on several servers"),
        ("0", ["--sentinel"], "is a sentinel, which keeps no data: name the server that it watches"),
    ],
)
def test_a_redis_that_can_never_serve_is_not_waited_for(
    database: str, arguments: list[str], words: str, wait_s: float | None, tmp_path: Path
) -> None:
    """All processes were started, the log was full of refusals, and nobody was told why."""
    with a_redis(tmp_path, *arguments) as port:
        url = f"redis://127.0.0.1:{port}/{database}"
        settings = Settings(data_dir=tmp_path, redis_url=url, redis_wait_s=wait_s)
        with pytest.raises(CannotServe, match=f"^the Redis at {re.escape(url)} {words}"):
            await_redis(settings, threading.Event())


@pytest.mark.parametrize(
    ("arguments", "words"), [(["--cluster-enabled", "yes"], "is a cluster: "), (["--sentinel"], "is a sentinel, ")]
)
def test_a_worker_of_a_container_is_not_ready_on_such_a_redis(arguments: list[str], words: str, tmp_path: Path) -> None:
    """It was ready on a cluster, and each load was refused: "the log says why"."""
    with a_redis(tmp_path, *arguments) as port, capture_logs() as lines:
        settings = Settings(redis_url=f"redis://127.0.0.1:{port}/0")
        worker = Worker(settings, "w", open_engine=partial(open_engine, choice="cpu"))
        running = threading.Thread(target=worker.run)
        running.start()
        try:
            eventually(lambda: bool(lines))
        finally:
            worker.stop()
            running.join()
    assert (lines[0]["event"], lines[0]["error"].startswith(f"Redis {words}")) == ("redis_away", True)
    assert "started" not in {line["event"] for line in lines}


def test_nothing_is_started_for_a_redis_that_can_never_serve(tmp_path: Path) -> None:
    with a_redis(tmp_path) as port:
        url = f"redis://127.0.0.1:{port}/99"
        environment = {"HEADRACE_REDIS_URL": url, "HEADRACE_DATA_DIR": str(tmp_path / "data")}
        done = CliRunner(env=environment).invoke(app, ["serve", "--port", "0"])
    assert (done.exit_code, done.output.count("\n")) == (1, 1), done.output
    assert done.output.startswith(f"headrace: the Redis at {url} refuses: DB index is out of range")
    assert not (tmp_path / "data").exists()


def test_a_user_who_may_not_ask_what_redis_is_starts(tmp_path: Path) -> None:
    with a_redis(tmp_path, "--user", "default", "on", "nopass", "~*", "&*", "+@all", "-info") as port:
        settings = Settings(data_dir=tmp_path, redis_url=f"redis://127.0.0.1:{port}/0", redis_wait_s=0.0)
        await_redis(settings, threading.Event())


@pytest.mark.parametrize("rules", [["~other:*", "+@all"], ["~*", "+@all", "-@write"]])
def test_a_user_who_may_not_write_the_keys_of_the_service_starts_nothing(rules: list[str], tmp_path: Path) -> None:
    """All processes were started, and the log had ten lines a second of what the user may not."""
    with a_redis(tmp_path, "--user", "ops", "on", "nopass", *rules) as port:
        settings = Settings(data_dir=tmp_path, redis_url=f"redis://ops:secret@127.0.0.1:{port}/0", redis_prefix="h:")
        told = r"does not let its user write keys h:\* \(HEADRACE_REDIS_PREFIX\): .*no permissions"
        with pytest.raises(CannotServe, match=rf"(?i)^the Redis at redis://ops:\*\*\*@127.0.0.1:{port}/0 {told}"):
            await_redis(settings, threading.Event())


def test_a_redis_whose_replicas_are_away_is_waited_for(tmp_path: Path) -> None:
    """They may only be later than it is: a start was refused for that."""
    with a_redis(tmp_path, "--min-replicas-to-write", "1") as port:
        settings = Settings(data_dir=tmp_path, redis_url=f"redis://127.0.0.1:{port}/0")
        await_redis(settings, threading.Event())
        with pytest.raises(CannotServe, match=r"has not answered for 0\.1 s .*NOREPLICAS"):
            await_redis(settings.model_copy(update={"redis_wait_s": 0.1}), threading.Event())


@pytest.mark.parametrize("words", [["serve", "--port", "0"], ["worker", "--name", "w"]])
def test_a_redis_that_is_away_is_waited_for_as_long_as_is_said(words: list[str], tmp_path: Path) -> None:
    environment = {"HEADRACE_REDIS_URL": "redis://u:secret@127.0.0.1:1/0", "HEADRACE_REDIS_WAIT_S": "0.4"}
    done = CliRunner(env=environment | {"HEADRACE_DATA_DIR": str(tmp_path / "data")}).invoke(app, words)
    assert (done.exit_code, done.output.count("\n")) == (1, 1)
    assert done.output.startswith("headrace: the Redis at redis://u:***@127.0.0.1:1/0 has not answered for 0.4 s")
    assert "secret" not in done.output
    assert not (tmp_path / "data").exists(), "nothing was started"


def test_a_redis_that_comes_in_time(settings: Settings) -> None:
    """It answers at once, or is not waited for; who is told to stop stops."""
    never, stopped = threading.Event(), threading.Event()
    stopped.set()
    away = settings.model_copy(update={"redis_url": "redis://127.0.0.1:1/0"})
    await_redis(settings.model_copy(update={"redis_wait_s": 0.0}), never)
    await_redis(away, never)
    await_redis(away.model_copy(update={"redis_wait_s": 60.0}), stopped)


def test_a_redis_that_may_evict_is_told_of_at_the_start(tmp_path: Path) -> None:
    for policy, told in (("noeviction", []), ("volatile-ttl", ["volatile-ttl"])):
        with a_redis(tmp_path, "--maxmemory-policy", policy) as port, capture_logs() as logs:
            settings = Settings(redis_url=f"redis://127.0.0.1:{port}/0")
            await_redis(settings, threading.Event())
            await_redis(settings, threading.Event())
        assert [line["maxmemory_policy"] for line in logs if line["event"] == "redis_may_evict"] == told


def test_a_redis_without_an_append_only_file_is_told_of_at_the_start(tmp_path: Path) -> None:
    for appendonly, told in (("yes", 0), ("no", 1)):
        with a_redis(tmp_path, "--appendonly", appendonly) as port, capture_logs() as logs:
            await_redis(Settings(redis_url=f"redis://127.0.0.1:{port}/0"), threading.Event())
        assert [line["event"] for line in logs].count("redis_not_durable") == told
