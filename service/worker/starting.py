"""What a worker does before graphs come: its kernels are compiled, and whoever waits for it hears how far that is."""

import time
from typing import Final

import structlog

from gpu_engine import kernel_directory
from gpu_engine.compiling import Compiling, told
from gpu_engine.select import prepare
from service.queue.models import CompilingReport
from service.worker.graph import OpenEngine
from service.worker.warm_up import warm_up

TELL_EVERY_S: Final = 5.0
"""Between two lines of the log."""

log = structlog.get_logger(__name__)


class Start:
    """Compiles what is not in the cache. `progress` is read from another thread meanwhile."""

    def __init__(self, worker: str) -> None:
        self._worker = worker
        self._latest: Compiling | None = None
        self._began = self._tell_at = 0.0
        self._over = False

    @property
    def progress(self) -> CompilingReport | None:
        """How far it is now; None before the first kernel that has to be compiled, and when all are."""
        latest = self._latest
        if latest is None or self._over:
            return None
        return CompilingReport(done=latest.done, of=latest.of, seconds=time.perf_counter() - self._began)

    def compile(self, open_engine: OpenEngine, choice: str) -> str:
        """Compile all kernels, or read them; gives the engine there is, as `gpu_engine.select.prepare` names it.

        A minute where nothing is cached, then a second.
        """
        self._began = time.perf_counter()
        with told(self._tell):
            warm_up(open_engine)
            engine = prepare(choice)  # a device engine has kernels of the host that nobody else needs
        self._over = True
        if self._latest is not None:
            seconds = round(time.perf_counter() - self._began, 1)
            log.info("compiled", worker=self._worker, kernels=self._latest.done, seconds=seconds)
        return engine

    def _tell(self, now: Compiling) -> None:
        if self._latest is None:
            log.info("compiling", worker=self._worker, kept_in=str(kernel_directory()), hint="once for each release")
            self._tell_at = now.seconds + TELL_EVERY_S
        elif now.seconds >= self._tell_at:
            log.info("compiling", worker=self._worker, done=now.done, of=now.of, seconds=round(now.seconds, 1))
            self._tell_at = now.seconds + TELL_EVERY_S
        self._latest = now
