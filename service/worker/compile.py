"""All host kernels are compiled, or read from the cache, by two processes where there are two cores.

``python -m service.worker.compile PARENT`` is the second one: it compiles what needs no engine, prints the names of the
kernels as it begins them, and ends with its parent. Numba compiles one kernel at a time in each process, and keeps it
in a cache for both. Workers that start side by side wait for the first of them, and read what it has compiled.
"""

import fcntl
import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from gpu_engine import kernel_directory
from gpu_engine.child import end_with
from gpu_engine.kernels.compiling import Compiling, told
from gpu_engine.select import prepare
from service.left_out import leave_out_pandas
from service.worker.graph import OpenEngine
from service.worker.warm_up import warm_up_engine, warm_up_others

COLLECT_AFTER: Final = (100_000, 50, 50)
"""Thresholds of the garbage collector during the compiling. A compiler makes many objects and few cycles, so that
Python's own thresholds would cost a sixth of the time; without any collection the process would grow by 600 MiB."""

LONGEST_S: Final = 300.0
"""The time limit of the second process, after which the first one compiles what is left. A worker waits as long for
another worker."""

LOOK_EVERY_S: Final = 0.1


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect garbage far less often inside the context, because the objects that compiling makes stay."""
    before = gc.get_threshold()
    gc.set_threshold(*COLLECT_AFTER)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class Turn:
    """A lock in the folder of the cache: whoever has it compiles. It goes with the process at the latest."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: IO[bytes] | None = None

    def take(self) -> bool:
        """Take the lock; returns False if another process had it, once that has released it or after `LONGEST_S`."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._file = (self._folder / "turn.lock").open("wb")
        except OSError:  # nobody shares a cache that cannot be written
            return True
        ends_at, waited = time.monotonic() + LONGEST_S, False
        while time.monotonic() < ends_at:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                waited = True
                time.sleep(LOOK_EVERY_S)
        return not waited

    def give_back(self) -> None:
        """Let the next process compile."""
        if self._file is not None:
            self._file.close()
            self._file = None


class Second:
    """The second process: begun when the first kernel is not in the cache, and ended in any case."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._process is not None and self._reader is not None:
            self._process.kill()
            self._process.wait()
            self._reader.join()

    def begin(self, known: set[str]) -> None:
        """Start the process, unless it was started before or there is only one core; its kernels are added to
        ``known``."""
        if self._process is not None or len(os.sched_getaffinity(0)) < 2:
            return
        command = [sys.executable, "-m", "service.worker.compile", str(os.getpid())]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read, args=[self._process, known], name="compiling", daemon=True)
        self._reader.start()

    def join(self) -> None:
        """Wait until it has compiled its kernels, or has ended for another reason."""
        if self._reader is not None:
            self._reader.join(LONGEST_S)

    @staticmethod
    def _read(process: subprocess.Popen[str], known: set[str]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                known.add(line.rstrip())


def compile_kernels(open_engine: OpenEngine, choice: str, tell: Callable[[Compiling], None]) -> str:
    """Compile all kernels, or read them; gives the engine there is, as `gpu_engine.select.prepare` names it.

    Most of a minute on two cores where nothing is cached, then a second. `tell` hears of each kernel that is not.
    Raises `EngineError` if the engine of this `choice` cannot be had here.
    """
    turn: Turn | None = None

    def on_kernel(now: Compiling) -> None:
        nonlocal turn
        tell(now)
        if turn is None:
            turn = Turn(kernel_directory())
            if turn.take():
                second.begin(known)

    try:
        with Second() as second, told(on_kernel) as known, rare_collections():
            warm_up_engine(open_engine)
            second.join()
            warm_up_others()
            return prepare(choice)  # a device engine has kernels of the host that nobody else needs
    finally:
        if turn is not None:
            turn.give_back()


def main() -> None:
    end_with(int(sys.argv[1]))
    leave_out_pandas()
    with told(lambda now: print(now.kernel, flush=True)), rare_collections():
        warm_up_others()


if __name__ == "__main__":
    main()
