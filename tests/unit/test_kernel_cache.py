"""Compiled kernels are kept apart by the state of all their sources."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gpu_engine.kernels import cache
from gpu_engine.kernels.cache import KEPT, PREFIX, VARIABLE, digest, directory, set_directory
from service.cli.main import app
from tests.unit.test_sizes import is_kernel

CALLEE = """from numba import njit
@njit(cache=True)
def callee():
    return {value}
"""
CALLER = """from numba import njit
from gpu_engine.cpu.callee import callee
@njit(cache=True)
def caller():
    return callee()
"""


def package(root: Path, value: int) -> None:
    """A package with a kernel that calls one in another file, and the real module that keeps its cache."""
    kernels = root / "gpu_engine" / "cpu"
    kernels.mkdir(parents=True, exist_ok=True)
    for module in ("__init__.py", "kernels/__init__.py", "kernels/cache.py"):
        target = root / "gpu_engine" / module
        target.parent.mkdir(exist_ok=True)
        target.write_text((cache.PACKAGE / module).read_text())
    (kernels / "__init__.py").touch()
    (kernels / "callee.py").write_text(CALLEE.format(value=value))
    (kernels / "caller.py").write_text(CALLER)


def answer(root: Path) -> str:
    """Of a process that leaves no bytecode: Python takes two sources of one length and one second for the same."""
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    code = "from gpu_engine.cpu.caller import caller; print(caller())"
    run = subprocess.run([sys.executable, "-c", code], cwd=root, env=environment, capture_output=True, check=True)
    return run.stdout.decode().strip()


def test_a_changed_callee_in_another_file_is_compiled_anew(tmp_path: Path) -> None:
    package(tmp_path, 1)
    assert answer(tmp_path) == "1"
    (tmp_path / "gpu_engine" / "cpu" / "callee.py").write_text(CALLEE.format(value=2))
    assert answer(tmp_path) == "2"
    kept = list((tmp_path / "gpu_engine" / "__pycache__").glob(PREFIX + "*"))
    assert len(kept) == 2
    assert all(any(path.rglob("*.nbi")) for path in kept)


@pytest.mark.parametrize("words", [["serve", "--port", "0"], ["worker", "--redis-url", "unix:///none"], ["warm-up"]])
def test_where_nothing_can_be_kept_nothing_starts(words: list[str], tmp_path: Path) -> None:
    """As for a user without a home, and a package that belongs to somebody else: Numba's refusal is a traceback."""
    done = CliRunner(env={VARIABLE: "/proc/none", "HEADRACE_DATA_DIR": str(tmp_path / "data")}).invoke(app, words)
    told = f"compiled kernels cannot be kept in /proc/none/{PREFIX}{digest()}: No such file or directory"
    assert (done.exit_code, done.stderr) == (1, f"headrace: {told}; {VARIABLE} names another folder\n")
    assert not (tmp_path / "data").exists()


def test_without_compiled_kernels_nothing_starts() -> None:
    done = CliRunner(env={"NUMBA_DISABLE_JIT": "1"}).invoke(app, ["warm-up"])
    assert (done.exit_code, done.stderr.partition(",")[0]) == (1, "headrace: NUMBA_DISABLE_JIT is set")


def test_every_module_with_kernels_counts() -> None:
    others = [path for path in cache.PACKAGE.rglob("*.py") if path.parent.name != "kernels"]  # which only speak of them
    with_kernels = {path for path in others if b"@njit(" in path.read_bytes()}
    assert with_kernels <= {path for path, _ in cache.sources()}


def test_every_module_that_kernels_read_names_of_counts() -> None:
    """Constants and records of other modules are compiled into a kernel, which would live on when they change."""
    counted = dict(cache.sources())
    missing = []
    for path, text in counted.items():
        tree = ast.parse(text)
        origin: dict[str, Path] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gpu_engine."):
                module = cache.PACKAGE.parent / f"{(node.module or '').replace('.', '/')}.py"
                origin |= {alias.asname or alias.name: module for alias in node.names if module.exists()}
        read = [
            node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)
        ]  # they may be read by kernels
        read += [node for node in tree.body if isinstance(node, ast.FunctionDef) and is_kernel(node)]
        names = {node.id for part in read for node in ast.walk(part) if isinstance(node, ast.Name)}
        missing += [f"{path.name}: {name}" for name in names & origin.keys() if origin[name] not in counted]
    assert missing == []


def test_a_process_and_those_it_starts_share_a_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    set_directory()
    first = os.environ[VARIABLE]
    assert Path(first) == tmp_path / (PREFIX + digest())
    set_directory()
    assert os.environ[VARIABLE] == first


def test_few_states_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    names = [f"{PREFIX}{i:016x}" for i in range(KEPT + 3)]
    for i, name in enumerate(names):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (i, i))
    others = ["headrace-0123456789abcdef", f"{PREFIX}of-mine", "other"]
    for name in others:
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (0, 0))
    set_directory()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*names[4:], *others]), "they hold no kernels"


def test_a_folder_that_is_named_is_the_one_they_are_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One called `headrace-cache` was taken for one of ours, and they were kept beside it."""
    for name in ("headrace-cache", f"{PREFIX}mine"):
        monkeypatch.setenv(VARIABLE, str(tmp_path / name))
        assert directory() == tmp_path / name / (PREFIX + digest())


def test_a_folder_that_may_not_be_looked_into_ends_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the cache of another user, whose HOME was kept: each command ended in a traceback, `--version` too."""
    monkeypatch.setenv(VARIABLE, f"/{'x' * 300}")
    set_directory()
    assert os.environ[VARIABLE] == f"/{'x' * 300}/{PREFIX}{digest()}"


def test_a_package_of_somebody_else_leaves_it_to_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As where it was installed for all users; what stands in the environment goes before."""
    monkeypatch.delenv(VARIABLE)
    assert directory().parent == cache.PACKAGE / "__pycache__"
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert directory() == tmp_path / ".cache" / "headrace" / (PREFIX + digest())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert directory().parent == tmp_path / "xdg" / "headrace"
    monkeypatch.setenv(VARIABLE, str(tmp_path / "given"))
    assert directory().parent == tmp_path / "given"


def test_a_user_without_a_home_gets_no_folder_named_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As user 12345 of a container whom no file names: kernels were kept in a folder `~`, wherever it was started."""
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    monkeypatch.delenv("HOME")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_000)
    assert directory().parent == cache.PACKAGE / "__pycache__", "where it is told that it may not write"
