"""What `make` says on a machine that lacks something: one clear line, early. The scripts run, without a network."""

import hashlib
import importlib.util
import os
import platform
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.checkouts import needs_git

ROOT = Path(__file__).parents[2]
TOOLS = ("sh", "dirname", "df", "awk", "grep", "tail", "touch", "cat", "sed", "head")


def executable(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def run(script: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    quiet = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_RETRIES": "0"}
    names = {"PATH": os.environ["PATH"], "HOME": tempfile.gettempdir(), "LANG": "C.UTF-8"} | quiet | environment
    return subprocess.run([script, *words], env=names, capture_output=True, text=True, timeout=120, check=False)


# --- which Python


CHECKS: dict[str, tuple[object, str, object, str]] = {
    "too old": (sys, "version_info", (3, 10, 2, "final", 0), "Python 3.10 is not one of 3.11 to 3.14"),
    "too new": (sys, "version_info", (3, 15, 0, "final", 0), "Python 3.15 is not one of 3.11 to 3.14"),
    "pypy": (platform, "python_implementation", lambda: "PyPy", "is not the usual CPython"),
    "free-threaded": (sysconfig, "get_config_var", lambda _: 1, "is not the usual CPython"),
    "riscv": (platform, "machine", lambda: "riscv64", "a 64-bit Python on Linux on riscv64"),
    "mac": (platform, "system", lambda: "Darwin", "this is a 64-bit Python on Darwin"),
    "musl": (platform, "libc_ver", lambda: ("", ""), "this system has another C library"),
    "old glibc": (platform, "libc_ver", lambda: ("glibc", "2.17"), "this system has glibc 2.17"),
    "no venv": (importlib.util, "find_spec", lambda _: None, "apt install python3."),
}


@pytest.mark.parametrize("name", CHECKS)
def test_a_python_that_will_not_do_is_told_why(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, attribute, value, said = CHECKS[name]
    why_not: Callable[[], str | None] = runpy.run_path(str(ROOT / "scripts" / "check_python.py"))["why_not"]
    assert why_not() is None
    with monkeypatch.context() as patch:
        patch.setattr(module, attribute, value)
        reason = why_not()
    assert reason is not None
    assert said in reason
    assert "\n" not in reason


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A PATH with the tools of any system and no Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in TOOLS:
        (folder / tool).symlink_to(str(shutil.which(tool)))
    return folder


def test_the_first_python_that_will_do_is_taken(path: Path) -> None:
    executable(path / "python3", "echo Python 3.9 is not one of 3.11 to 3.14; exit 1")
    executable(path / "python3.13", "exit 127")
    executable(path / "python3.12", f'exec {sys.executable} "$@"')
    found = run(ROOT / "scripts" / "find_python.sh", PATH=str(path))
    assert (found.returncode, found.stdout.strip(), found.stderr) == (0, str(path / "python3.12"), "")


def test_without_a_python_every_candidate_is_explained(path: Path) -> None:
    script = ROOT / "scripts" / "find_python.sh"
    nothing = run(script, PATH=str(path))
    assert (nothing.returncode, nothing.stdout, nothing.stderr.count("\n")) == (1, "", 1)
    assert "There is no python3 on PATH" in nothing.stderr
    executable(path / "python3", "echo Python 3.9 is not one of 3.11 to 3.14; exit 1")
    executable(path / "python3.13", "exit 127")
    two = run(script, PATH=str(path))
    assert (two.returncode, two.stdout, two.stderr.count("\n")) == (1, "", 1)
    assert "python3: Python 3.9 is not one of 3.11 to 3.14." in two.stderr
    assert "python3.13: it is too old, or does not start." in two.stderr
    named = run(script, PATH=str(path), PYTHON="python9")
    assert "There is no python9 on PATH" in named.stderr


# --- the virtual environment


BACKEND = """
import zipfile
def build_editable(folder, config_settings=None, metadata_directory=None):
    with zipfile.ZipFile(f"{folder}/NAME-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("NAME-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: NAME\\nVersion: 1\\nNEEDS")
        wheel.writestr("NAME-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("NAME-1.dist-info/RECORD", "")
    return "NAME-1-py3-none-any.whl"
"""
PROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'


def project(folder: Path, name: str, needs: str = "") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "backend.py").write_text(BACKEND.replace("NAME", name).replace("NEEDS", needs))


def checkout(folder: Path) -> Path:
    """A folder with our scripts and two projects without code; what is pinned are wheels made here."""
    shutil.copytree(ROOT / "scripts", folder / "scripts")
    (folder / "requirements").mkdir()
    project(folder, "service")
    project(folder / "clients" / "python", "client")
    return folder


def wheel(folder: Path, name: str, tag: str = "py3-none-any", needs: str = "") -> str:
    """Make a wheel of an empty distribution; the line that pins it."""
    path = folder / f"{name}-1-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}-1.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n{needs}")
        archive.writestr(f"{name}-1.dist-info/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n")
        archive.writestr(f"{name}-1.dist-info/RECORD", "")
    return pin(name, path)


def pin(name: str, path: Path) -> str:
    return f"{name}==1 --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout whose .venv was made by the script; its path has what paths may have."""
    folder = checkout(tmp_path_factory.mktemp("with a blank, 'quotes' and ü"))
    pins = wheel(folder, "one")
    (folder / "requirements" / "run.txt").write_text(f"# made by hand\n{pins}")
    result = run(folder / "scripts" / "venv.sh", "run", PIP_FIND_LINKS=folder.as_uri())
    assert result.returncode == 0, result.stderr
    assert "first run: making .venv with Python 3" in result.stderr
    assert "installing the 1 packages of requirements/run.txt" in result.stderr
    assert (folder / ".venv" / ".run").is_file()
    return folder


@pytest.fixture
def again(made: Path) -> Iterator[Callable[..., str]]:
    """Run the script once more; what it said, if it failed as it must."""
    pinned = (made / "requirements" / "run.txt").read_text()

    def refused(pins: str, **environment: str) -> str:
        (made / ".venv" / ".run").unlink(missing_ok=True)
        (made / "requirements" / "run.txt").write_text(pins)
        result = run(made / "scripts" / "venv.sh", "run", PIP_FIND_LINKS=made.as_uri(), **environment)
        assert result.returncode == 1, result.stderr
        assert not (made / ".venv" / ".run").exists()
        assert all(line.startswith("headrace: ") for line in result.stderr.splitlines())
        return result.stderr.splitlines()[-1]

    yield refused
    (made / "requirements" / "run.txt").write_text(pinned)


NO_HASH = "sha256:" + "0" * 64


@pytest.mark.parametrize("retries", ["0", "1"])
def test_without_a_network(again: Callable[..., str], retries: str) -> None:
    """Without retries pip does not say that it reached nothing."""
    index = {"PIP_NO_INDEX": "0", "PIP_RETRIES": retries, "PIP_INDEX_URL": "http://127.0.0.1:9/simple"}
    assert "pip reaches no package index" in again(f"elsewhere==1 --hash={NO_HASH}\n", **index)


def test_a_file_that_is_not_the_locked_one(again: Callable[..., str]) -> None:
    assert "is not the file that requirements/run.txt names" in again(
        f"one==1 --hash={NO_HASH}\n", PIP_FORCE_REINSTALL="1"
    )


def test_a_package_without_a_file_for_this_machine(again: Callable[..., str], made: Path) -> None:
    pins = wheel(made, "other", "py3-none-win32")
    assert "lacks a file of requirements/run.txt for this machine" in again(pins)


def test_nothing_is_compiled(again: Callable[..., str], made: Path, tmp_path: Path) -> None:
    """A package that comes as sources alone is refused, whatever compilers there are."""
    project(tmp_path / "sources-1", "sources")
    (tmp_path / "sources-1" / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: sources\nVersion: 1\n")
    path = shutil.make_archive(str(made / "sources-1"), "gztar", tmp_path, "sources-1")
    assert "lacks a file of requirements/run.txt for this machine" in again(pin("sources", Path(path)))


def test_a_full_disk(again: Callable[..., str], path: Path) -> None:
    """No disk is filled here: a pin that pip quotes has the words of the error in it."""
    assert "the disk is full" in again("no space left on device\n")
    (path / "df").unlink()
    executable(path / "df", "printf 'Filesystem 1024-blocks Used Available\\n/dev/x 9999999 1 0 100%% /\\n'")
    assert "the disk is full" in again("one==1\n", PATH=str(path), PIP_FORCE_REINSTALL="1")


def test_pins_without_hashes_are_refused(again: Callable[..., str]) -> None:
    assert "pip failed: ERROR" in again("one==1\n", PIP_FORCE_REINSTALL="1")


def test_pins_that_lack_what_the_project_asks_for(again: Callable[..., str], made: Path) -> None:
    project(made, "service", "Requires-Dist: absent>=1\\n")
    try:
        said = again((made / "requirements" / "run.txt").read_text())
    finally:
        project(made, "service")
    assert "pyproject.toml asks for what requirements/run.txt lacks: make lock" in said
    assert "absent" in said


def test_pins_that_lack_what_another_pin_asks_for(again: Callable[..., str], made: Path) -> None:
    said = again(wheel(made, "needy", needs="Requires-Dist: absent>=1\n"))
    assert "pyproject.toml asks for what requirements/run.txt lacks: make lock" in said


def test_an_environment_of_a_python_that_will_not_do(again: Callable[..., str], made: Path) -> None:
    check = made / "scripts" / "check_python.py"
    text = check.read_text()
    check.write_text(text.replace("OLDEST, NEWEST = (3, 11), (3, 14)", "OLDEST, NEWEST = (4, 0), (4, 1)"))
    try:
        assert "Remove .venv; it is made again" in again("")
    finally:
        check.write_text(text)


def test_settings_of_pip_that_no_environment_allows(made: Path, tmp_path: Path) -> None:
    settings = tmp_path / "pip.conf"
    settings.write_text("[install]\nuser = true\n")
    shutil.rmtree(made / ".venv")
    result = run(made / "scripts" / "venv.sh", "run", PIP_FIND_LINKS=made.as_uri(), PIP_CONFIG_FILE=str(settings))
    assert result.returncode == 0, result.stderr


def test_modules_of_other_programs_are_not_taken() -> None:
    others = {"PYTHONPATH": "a", "PYTHONHOME": "b", "PYTHONUTF8": "1"}
    command = ["make", "--no-print-directory", "--eval=said: ; @env", "said"]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | others, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    seen = {line.partition("=")[0] for line in done.stdout.splitlines()}
    assert others.keys() & seen == {"PYTHONUTF8"}


def test_a_broken_environment_is_made_again(made: Path) -> None:
    python = made / ".venv" / "bin" / "python"
    python.unlink()
    python.symlink_to("/no/such/python")
    result = run(made / "scripts" / "venv.sh", "run", PIP_FIND_LINKS=made.as_uri())
    assert result.returncode == 0, result.stderr
    assert "making .venv" in result.stderr


def test_an_index_that_has_no_such_package(again: Callable[..., str], made: Path) -> None:
    """It was reached, so it is not the network that is to blame."""
    (made / "index" / "absent").mkdir(parents=True)
    (made / "index" / "absent" / "index.html").write_text("<!doctype html><title>absent</title>")
    index = {"PIP_NO_INDEX": "0", "PIP_RETRIES": "0", "PIP_INDEX_URL": (made / "index").as_uri()}
    assert "lacks a file of requirements/run.txt" in again(f"absent==1 --hash={NO_HASH}\n", **index)


def test_another_python_than_that_of_the_environment(made: Path, tmp_path: Path) -> None:
    """Named where .venv is there already, it is told of; the same one, and none, are not."""
    run(made / "scripts" / "venv.sh", "run", PIP_FIND_LINKS=made.as_uri())
    shutil.copy(ROOT / "Makefile", made)
    other = tmp_path / "python3.9"
    executable(other, "echo 3.9.2, /opt/old")

    def said(*words: str) -> str:
        command = ["make", "--no-print-directory", ".venv/.run", *words]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHON"}
        done = subprocess.run(command, cwd=made, env=environment, capture_output=True, text=True, check=True)
        return done.stderr

    assert said() == said(f"PYTHON={made / '.venv' / 'bin' / 'python'}") == ""
    own = f"headrace: .venv has Python {platform.python_version()} of "
    for name, told in (
        (str(other), f"though PYTHON names {other} (3.9.2 of /opt/old)."),
        ("python9", "though PYTHON names python9, which is not on PATH."),
    ):
        shown = said(f"PYTHON={name}")
        assert shown.startswith(own)
        assert shown.endswith(f"{told} Remove .venv; it is made again.\n")
    fresh = run(checkout(tmp_path / "fresh") / "scripts" / "named_python.sh", PYTHON="python9")
    assert (fresh.returncode, fresh.stderr) == (0, "")


def refused_before_anything(folder: Path, **more: Any) -> str:
    """What the script says in a fresh checkout where it must not begin."""
    before = sorted(folder.rglob("*"))
    names = {"PATH": more.pop("PATH", os.environ["PATH"])}
    result = subprocess.run(
        [folder / "scripts" / "venv.sh", "dev"], env=names, capture_output=True, text=True, check=False, **more
    )
    assert result.returncode == 1
    assert sorted(folder.rglob("*")) == before
    (said,) = result.stderr.splitlines()
    return said


def test_a_path_with_a_colon(tmp_path: Path) -> None:
    assert "a path with a colon" in refused_before_anything(checkout(tmp_path / "a:b"))


def test_too_little_room(tmp_path: Path, path: Path) -> None:
    (path / "df").unlink()
    executable(path / "df", "printf 'Filesystem 1024-blocks Used Available\\n/dev/x 9999999 1 10240 1%% /\\n'")
    executable(path / "python3", f'exec {sys.executable} "$@"')
    said = refused_before_anything(checkout(tmp_path / "checkout"), PATH=str(path))
    assert "1500 MiB are needed" in said
    assert said.endswith("and 10 are free.")


def test_a_folder_that_cannot_be_written() -> None:
    with tempfile.TemporaryDirectory() as parent:
        os.chmod(parent, 0o755)
        folder = checkout(Path(parent) / "checkout")
        folder.chmod(0o555)
        other = {"user": "nobody"} if os.geteuid() == 0 else {}
        said = refused_before_anything(folder, **other)
        folder.chmod(0o755)
    assert "cannot write to" in said


@needs_git
@pytest.mark.parametrize("name", [".venv", ".venv3", "venv", "venv-3.12", "env"])
def test_an_environment_in_a_clone_is_no_part_of_it(name: str, tmp_path: Path) -> None:
    """Whatever it is called: linters, and copies of the sources in which mutants are tried, take what Git does."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    shutil.copy(ROOT / ".gitignore", tmp_path)
    installed = f"{name}/lib/python3.12/site-packages/package/README.md"
    assert subprocess.run(["git", "check-ignore", "-q", installed], cwd=tmp_path, check=False).returncode == 0
