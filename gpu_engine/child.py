"""A process for one piece of work of a C library that cannot be stopped, or that can crash: it gets bytes on its
standard input, answers with bytes on its standard output, and is killed when its answer is not wanted any more.

`run` is the side that waits. `begin` is what the process calls first: it makes the process end with its parent, and
limits how much memory it may take beyond what the library itself takes. This module imports nothing that takes long,
because each child imports it.
"""

import ctypes
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import BinaryIO, Final, Protocol

PR_SET_PDEATHSIG: Final = 1

TICK_S: Final = 0.02
"""How often a caller that waits looks for a cancel."""

ENVIRONMENT: Final = (
    *("PATH", "HOME", "PYTHONPATH", "PYTHONSAFEPATH", "VIRTUAL_ENV", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH"),
)
"""Variables that a child gets; the password of Redis is not among them."""


class Cancellable(Protocol):
    """Says whether somebody has cancelled the work, as `gpu_engine.control.Control` does."""

    @property
    def cancelled(self) -> bool:
        """Whether the work is to end."""


def environment() -> dict[str, str]:
    """The environment of a child: `ENVIRONMENT`, as far as it is set here, and one thread for BLAS."""
    return {name: os.environ[name] for name in ENVIRONMENT if name in os.environ} | {"OPENBLAS_NUM_THREADS": "1"}


def run(module: str, data: bytes, limit: int, control: Cancellable) -> tuple[bytes, int]:
    """What ``python -m MODULE PARENT BYTES`` answers to ``data``, with its exit status; it may take ``limit`` bytes.
    Raises `Cancelled` within `TICK_S` of a cancel."""
    command = [sys.executable, "-m", module, str(os.getpid()), str(limit)]
    with _file(data) as problem, _file() as answer:
        process = subprocess.Popen(command, env=environment(), stdin=problem, stdout=answer)
        try:
            _wait(process, control)
        except BaseException:
            process.kill()
            process.wait()
            raise
        answer.seek(0)
        return answer.read(), process.returncode


@contextmanager
def _file(data: bytes = b"") -> Iterator[BinaryIO]:
    """A file in memory, at its beginning."""
    with open(os.memfd_create("headrace-child"), "w+b") as file:
        file.write(data)
        file.seek(0)
        yield file


def _wait(process: "subprocess.Popen[bytes]", control: Cancellable) -> None:
    while not control.cancelled:
        with suppress(subprocess.TimeoutExpired):
            process.wait(TICK_S)
            return
    from gpu_engine.errors import Cancelled  # it imports NumPy, which not every child needs

    raise Cancelled("cancelled while another process computed the answer")


def begin(library: str) -> None:
    """In the process, from its arguments PARENT and BYTES: end with the parent, and take no more than so many bytes
    beside the ``library``, which is imported here."""
    parent, n_bytes = int(sys.argv[1]), int(sys.argv[2])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to obey
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    end_with(parent)
    if sys.platform == "linux":
        import_module(library)  # what it takes by itself is not the problem's
        lines = Path("/proc/self/status").read_text().splitlines()
        has = next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmData:"))
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (has + n_bytes, hard))


def end_with(parent: int) -> None:
    """On Linux this process is killed when the thread of its ``parent`` that has started it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before we asked
            os._exit(1)
