"""`headrace keys create` warns before the first key locks the door."""

import os
import subprocess
import sys
import uuid
from pathlib import Path
from types import SimpleNamespace

import pytest
import redis
from typer.testing import CliRunner, Result

from service.cli.main import app
from service.store.keys import Keys


@pytest.fixture
def environment(redis_url: str) -> dict[str, str]:
    return {"HEADRACE_REDIS_URL": redis_url, "HEADRACE_REDIS_PREFIX": f"test-{uuid.uuid4().hex}:"}


def keys(environment: dict[str, str], *words: str, answer: str | None = None) -> Result:
    return CliRunner(env=environment).invoke(app, ["keys", *words], input=answer)


def test_the_first_key_comes_with_a_warning(environment: dict[str, str]) -> None:
    """A script is not asked: the key is made, and the warning printed."""
    first = keys(environment, "create", "reader")
    assert first.exit_code == 0
    assert "refuses every request that comes without one" in first.stderr
    assert "--scope admin" in first.stderr
    assert first.stdout.startswith("hr_")
    assert first.stdout.count("\n") == 1
    second = keys(environment, "create", "another", "--scope", "admin")
    assert (second.exit_code, "first key" in second.stderr) == (0, False)


@pytest.mark.parametrize(
    ("words", "answer", "made"), [((), "n\n", False), ((), "\n", False), ((), "y\n", True), (("--yes",), None, True)]
)
def test_at_a_terminal_it_asks(
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    answer: str | None,
    made: bool,
) -> None:
    monkeypatch.setattr("service.cli.keys._is_terminal", lambda: True)
    done = keys(environment, "create", "ops", "--scope", "admin", *words, answer=answer)
    assert (done.exit_code == 0) is made
    assert "--scope admin" not in done.stderr
    assert ("hr_" in done.stdout) is made
    assert bool(keys(environment, "list").stdout) is made


def test_a_key_that_cannot_be_printed_is_not_made(environment: dict[str, str]) -> None:
    """As onto a full disk: it was kept, its text was lost, and the service was closed to everybody. Nor is a service
    opened that is closed because its Redis has lost the keys."""
    names = Keys(environment["HEADRACE_REDIS_PREFIX"])
    command = [sys.executable, "-m", "service.cli", "keys", "create", "ops", "--scope", "admin"]
    with redis.Redis.from_url(environment["HEADRACE_REDIS_URL"]) as client, open("/dev/full", "w") as full:
        for made in ((), ("another",)):
            for label in made:
                keys(environment, "create", label)
            before = client.hgetall(names.api_keys), client.get(names.opened)
            done = subprocess.run(
                command, env=os.environ | environment, stdout=full, stderr=subprocess.PIPE, text=True, check=False
            )
            assert (done.returncode, "was not made: No space left" in done.stderr) == (1, True), done.stderr
            assert (client.hgetall(names.api_keys), client.get(names.opened)) == before


def test_a_key_that_nobody_would_see_is_not_made(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a daemon has closed its standard output."""
    monkeypatch.setattr("service.cli.keys.sys", SimpleNamespace(stdout=None, stdin=None))
    assert "standard output is closed" in keys(environment, "create", "ops").stderr
    assert not keys(environment, "list").stdout


def test_which_service_it_is_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that is made in another folder than the service's locks nothing: so each command says where it looks."""
    monkeypatch.chdir(tmp_path)
    here = tmp_path / ".headrace"
    for words in (("list",), ("revoke", "0123456789ab"), ("forget", "--open")):
        refused = keys({}, *words)
        assert (refused.exit_code, f"no service has run in {here}; --data-dir" in refused.stderr) == (1, True)
        assert not here.exists()
    made = keys({}, "create", "ops", "--data-dir", str(tmp_path / "data"))
    assert f"no service has run in {tmp_path / 'data'}: this key is for one that will" in made.stderr
    assert f"of the service in {tmp_path / 'data'} will not be shown again" in made.stderr
    again = keys({"HEADRACE_DATA_DIR": str(tmp_path / "data")}, "create", "ops")
    assert "no service has run" not in again.stderr
    assert keys({}, "list", "--data-dir", str(tmp_path / "data")).stdout.count("ops") == 2
    assert not here.exists()


def test_a_service_without_keys_and_one_behind_a_password(environment: dict[str, str]) -> None:
    location = environment.pop("HEADRACE_REDIS_URL")
    listed = keys(environment, "list", "--redis-url", location)
    assert (listed.stdout, f"the service on {location} has no keys" in listed.stderr) == ("", True)
    refused = keys(environment, "list", "--redis-url", "redis://ops:secret@127.0.0.1:1/0")
    assert refused.exit_code == 1
    assert "secret" not in refused.output


def test_a_scope_that_there_is_not(environment: dict[str, str]) -> None:
    assert (
        "--scope is one of read, update, admin, not 'reed'"
        in keys(environment, "create", "x", "--scope", "reed").stderr
    )


def test_an_empty_prefix_is_not_taken_for_all_graphs(environment: dict[str, str]) -> None:
    """As of a variable of a script that is not set: the key would have been good for the graphs of everybody."""
    made = keys(environment, "create", "robot", "--prefix", "")
    assert (made.exit_code, made.stdout) == (2, "")
    assert "--prefix is empty" in made.stderr
    assert keys(environment, "create", "robot").stdout.startswith("hr_")
