"""What a worker does before graphs come: its kernels are compiled, and whoever waits for it hears how far that is."""

import time
from typing import Final

import structlog

from gpu_engine import kernel_directory
from gpu_engine.devices import bind, device_fault
from gpu_engine.kernels.compiling import Compiling
from gpu_engine.select import missing_device, why_not
from service.beginning import refuse
from service.queue.models import CompilingReport
from service.settings import Settings
from service.worker.compile import compile_kernels
from service.worker.graph import OpenEngine

TELL_EVERY_S: Final = 5.0
"""The least time between two lines of the log."""

log = structlog.get_logger(__name__)


def with_device(settings: Settings, name: str, gpu: int | None) -> Settings:
    """Bind this process to its device, of number ``gpu``, and end it if it cannot have its engine. Returns what
    `without_lost_device` does."""
    if gpu is not None:
        bind(gpu)
        if missing := missing_device():
            refuse(f"worker {name} is for GPU {gpu}: {missing}")
    if lacking := why_not(settings.engine):
        refuse(f"HEADRACE_ENGINE is {settings.engine}: {lacking}")
    return without_lost_device(settings, gpu)


def without_lost_device(settings: Settings, gpu: int | None) -> Settings:
    """The same settings, or those of the CPU engine in place of `auto` if the device does nothing any more.

    A worker that is bound to a device, as number ``gpu``, has none in its place: others take its graphs.
    """
    if settings.engine != "auto" or gpu is not None or missing_device():
        return settings
    fault = device_fault(settings.engine)
    if not fault:
        return settings
    log.error("device_lost", error=fault, instead="cpu")
    return settings.model_copy(update={"engine": "cpu"})


class Start:
    """Compiles what is not in the cache. `progress` is read from another thread meanwhile."""

    def __init__(self, worker: str) -> None:
        self._worker = worker
        self._latest: Compiling | None = None
        self._began = self._tell_at = 0.0
        self._over = False

    @property
    def progress(self) -> CompilingReport | None:
        """How far the compiling is; None before the first kernel that has to be compiled, and after the last."""
        latest = self._latest
        if latest is None or self._over:
            return None
        return CompilingReport(done=latest.done, of=latest.of, seconds=time.perf_counter() - self._began)

    def compile(self, open_engine: OpenEngine, choice: str) -> str:
        """`compile_kernels`, with lines in the log."""
        self._began = time.perf_counter()
        engine = compile_kernels(open_engine, choice, self._tell)
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
