"""`headrace keys create` warns before the first key locks the door."""

import uuid

import pytest
from typer.testing import CliRunner, Result

from service.cli.main import app


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
