"""`headrace worker`: workers alone, which join a service through its Redis from whichever machine, kept alive."""

import re
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Final

from service.host.children import Child, Popen, spawn_options, stop_together
from service.host.ending import end_by_signals
from service.host.files import take_files
from service.host.gpus import WorkerPlan, check_engine, plan
from service.host.kernels import check_kernels
from service.host.redis_wait import await_redis
from service.host.refusal import CannotServe
from service.host.supervisor import POLL_S, STDERR, STOP_WORKER_S, environment_of
from service.settings import Settings

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def named(settings: Settings, name: str) -> list[WorkerPlan]:
    """The workers of these settings, by a name that no other machine has: one worker alone has it as it is, and where
    there are several, or one for each GPU, it stands before theirs, as in `NAME-gpu-0`. Without a name they are named
    as those of `headrace serve`. Raises `CannotServe`."""
    if settings.redis_url is None:
        raise CannotServe("say --redis-url, or set REDIS_URL: a worker joins a service through its Redis")
    if not name:
        return plan(settings)
    if not NAME.fullmatch(name):
        raise CannotServe(f"--name {name!r}: 1 to 100 of a-z, A-Z, 0-9, '.', '_' and '-', first a letter or digit")
    if not settings.gpus and settings.workers == 1:
        return [WorkerPlan(name)]
    return plan(settings, f"{name}-")


def work(settings: Settings, name: str) -> None:
    """Run them until one of `ending.ENDING`. Raises `CannotServe` or `gpus.NoSuchGpu` before anything is started."""
    workers = named(settings, name)
    check_engine(settings)
    check_kernels()
    take_files()
    stop = threading.Event()
    end_by_signals(stop)
    await_redis(settings, stop)
    each = settings.of_one_worker(len(workers))
    children = [Child(worker.name, _start(each, worker), STOP_WORKER_S) for worker in workers]
    try:
        while not stop.wait(POLL_S):
            for child in children:
                child.keep_alive()
    finally:
        stop_together(children)  # each gives its graphs to those that stay


def _start(settings: Settings, worker: WorkerPlan) -> Callable[[], Popen]:
    command = [sys.executable, "-m", "service.worker", *worker.arguments]
    environment = environment_of(settings) | dict(worker.environment)
    options = spawn_options() | {"env": environment, "stdin": subprocess.DEVNULL, "stdout": STDERR}
    return lambda: subprocess.Popen(command, **options)
