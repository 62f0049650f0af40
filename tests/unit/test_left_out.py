"""What a process of the service imports at its start, and what it does not: each start and each restart pays for it."""

import os
import subprocess
import sys

import pytest

from service.left_out import leave_out, without_unused

UNUSED = {"pandas", "scipy", "rich", "opentelemetry.sdk.metrics"}
NO_SOLVER = {*UNUSED, "numba"}


TELL = """
import atexit, runpy, sys
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""


def imported_by(*words: str) -> set[str]:
    """The modules that a process of Python has imported by its end, of ``python -m`` with these words."""
    environment = os.environ | {"HEADRACE_PORT": "none"}
    command = [sys.executable, "-c", TELL, *words]
    told = subprocess.run(command, stdin=subprocess.DEVNULL, env=environment, capture_output=True, text=True).stderr
    return {*told.splitlines()[-1].split()}


@pytest.mark.parametrize(
    ("words", "has", "lacks"),
    [
        (["service.cli", "serve"], "service.host.supervisor", {*NO_SOLVER, "fastapi"}),
        (
            ["service.cli", "list", "--url", "none"],
            "headrace",
            {*NO_SOLVER, "fastapi", "pyarrow", "redis", "structlog"},
        ),
        (["service.api", "--help"], "service.api.app", NO_SOLVER),
        (["service.api.bodies.parser"], "service.api.bodies.tasks", {*NO_SOLVER, "fastapi", "redis"}),
        (["service.worker", "--help"], "service.worker.graphs", {*UNUSED, "fastapi"}),
        (["service.worker.membership.heartbeat"], "redis", {*NO_SOLVER, "fastapi", "pydantic", "structlog", "numpy"}),
    ],
    ids=["serve", "command", "api", "parser", "worker", "heartbeat"],
)
def test_a_process_starts_without_what_it_does_not_use(words: list[str], has: str, lacks: set[str]) -> None:
    imported = imported_by(*words)
    assert has in imported
    assert imported & lacks == set()


def test_what_is_left_out_is_missing_with_all_below_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.delitem(sys.modules, "wsgiref.util", raising=False)
    leave_out("wsgiref.util", "wsgi")
    with pytest.raises(ModuleNotFoundError, match=r"wsgiref\.util is left out of this process"):
        import wsgiref.util
    import wsgiref.headers  # noqa: F401  # that it can be is all


def test_what_is_unused_is_missing_meanwhile_only() -> None:
    before = [*sys.meta_path]
    with without_unused():
        assert len(sys.meta_path) == len(before) + 1
    assert sys.meta_path == before
