"""A copy of the repository in which mutants are tried, so that the sources themselves are never touched."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import Enum
from importlib.util import cache_from_source
from pathlib import Path
from typing import Final

from tests.mutants.listing import Mutant

ROOT: Final = Path(__file__).parents[2]
KERNELS_OF_MUTANTS: Final = ".kernels-of-mutants"
"""A folder of the copy: a mutant among the kernels must not push out those that all others use."""

NO_TEST_FAILED, A_TEST_FAILED = 100, 101
"""Exit statuses of `RUN`: those of pytest, told from those of an interpreter that breaks down."""

COMPILE_S: Final = 1800.0
"""For the kernels of one copy, on a machine that is busy."""

RUN: Final = """
import importlib, sys, pytest
folder, module, *options = sys.argv[1:]
class ImportFirst:
    def pytest_sessionstart(self):
        try:
            found = importlib.import_module(module).__file__
        except Exception as error:
            found = repr(error)
        if not found.startswith(folder):
            pytest.exit(f"{module} cannot be imported from {folder}: {found}", 97)
sys.exit(100 + pytest.main(options, [ImportFirst()]))
"""


COMPILE: Final = """
from gpu_engine.cpu.engine import CpuEngine
from service.worker.warm_up import warm_up
warm_up(CpuEngine)
"""
"""Before any test, as it may take longer than a test waits for a worker."""


class Verdict(Enum):
    KILLED = "killed"
    """A test noticed the mistake, or did not come to an end within its time."""
    SURVIVED = "survived"
    BROKEN = "broken"
    """The module cannot be imported, or the tests cannot be run: that says nothing about them."""


class Tree:
    """A copy of all files that git knows, or would, in a folder that is there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        )
        for name in filter(None, listed.stdout.split("\0")):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)  # with its time, by which kernels are known to be current

    @contextmanager
    def mutated(self, mutant: Mutant) -> Iterator[None]:
        """The copy has the mistake until the block ends. Raises ValueError if it cannot be put in."""
        path = self._folder / mutant.file
        original, kept = path.read_text(), os.stat(path)
        changed = mutant.applied_to(original)
        try:
            self._write(path, changed)
            yield
        finally:
            self._write(path, original)
            os.utime(path, ns=(kept.st_atime_ns, kept.st_mtime_ns))
            shutil.rmtree(self._folder / KERNELS_OF_MUTANTS, ignore_errors=True)

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text)
        Path(cache_from_source(str(path))).unlink(missing_ok=True)  # Python might take it for current

    def try_mutant(self, mutant: Mutant, limit_s: float) -> tuple[Verdict, str]:
        """What the tests say of it, and why. Raises ValueError if it cannot be put in."""
        with self.mutated(mutant):
            has_kernels = "njit(" in (self._folder / mutant.file).read_text()
            kernels = self._folder / KERNELS_OF_MUTANTS if has_kernels else None
            status, output = self.run_tests(mutant.tests, limit_s, kernels, mutant.module)
        if status is None:
            return Verdict.KILLED, f"not at an end after {limit_s:g} s"
        verdicts = {NO_TEST_FAILED: Verdict.SURVIVED, A_TEST_FAILED: Verdict.KILLED}
        return verdicts.get(status, Verdict.BROKEN), output

    def compile_kernels(self) -> tuple[int | None, str]:
        """Exit status and output. A minute or two, more where others use the machine; next to nothing the next time."""
        return self._run(["-c", COMPILE], COMPILE_S, None)

    def run_tests(
        self, tests: Sequence[str], limit_s: float, kernels: Path | None = None, module: str = "service"
    ) -> tuple[int | None, str]:
        """Exit status of pytest, None if it took too long, and its output; the ``module`` is imported before."""
        options = ["-x", "-q", "-p", "no:cacheprovider"]
        return self._run(["-c", RUN, str(self._folder), module, *options, *tests], limit_s, kernels)

    def _run(self, arguments: list[str], limit_s: float, kernels: Path | None) -> tuple[int | None, str]:
        """Python in the copy, whose modules come before those that are installed."""
        paths = [str(self._folder), str(self._folder / "clients" / "python" / "src")]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
        if kernels is not None:
            environment["NUMBA_CACHE_DIR"] = str(kernels)
        with tempfile.TemporaryFile("w+") as output:  # no pipe, which a process left behind would keep open
            process = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=self._folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # so that all it starts can be ended with it
            )
            try:
                status: int | None = process.wait(limit_s)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            output.seek(0)
            return status, output.read()
