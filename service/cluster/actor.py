"""What runs on a machine of the cluster: one worker in a thread of one Ray actor, whose process is its own.

Ray starts the process again when it ends unasked, on this machine or another one. Two processes of one name may live
for a moment, as after a machine has hung: the lease of the name, which is Headrace's own, ends the older one.
"""

import os
import sys
import threading
from functools import partial
from typing import Any

import ray

from gpu_engine.select import missing_device, open_engine, why_not
from service.machine import raise_limit
from service.settings import read_settings
from service.telemetry import logs
from service.telemetry.doubts import warn_of_redis_address
from service.telemetry.tracing import open_tracing
from service.worker.process import SWITCH_S, Worker

ENDED = 1
"""Exit status of an actor's process whose worker ended unasked."""


SHARING = 4
"""How many workers without a GPU may share a machine, as far as one of them knows: Ray spreads them."""


def workers_beside(needs_gpu: bool) -> int:
    """How many workers share the memory of this machine, this one counted: as many as it has GPUs."""
    if not needs_gpu:
        return SHARING
    here = ray.get_runtime_context().get_node_id()
    nodes: Any = ray.nodes  # which Ray gives no types
    (gpus,) = (node["Resources"].get("GPU", 1) for node in nodes() if node["NodeID"] == here)
    return max(1, int(gpus))


class WorkerActor:
    """A worker by its name. Its settings are those in the environment of `ray start` on the machine."""

    def __init__(self, name: str, needs_gpu: bool) -> None:
        """Raises `SettingsError`, or RuntimeError where no Redis is named, or no device can be used."""
        logs.configure(name)
        settings = read_settings()
        warn_of_redis_address(settings)
        if settings.redis_url is None:
            raise RuntimeError("set HEADRACE_REDIS_URL for `ray start` on each machine: workers meet in Redis")
        settings, gpu = settings.of_one_worker(workers_beside(needs_gpu)), None
        if needs_gpu:
            if missing := missing_device():
                raise RuntimeError(f"worker {name} is for a GPU: {missing}")
            gpu = 0  # the only one that Ray lets it see
        if lacking := why_not(settings.engine):
            raise RuntimeError(f"HEADRACE_ENGINE is {settings.engine}: {lacking}")
        raise_limit()
        sys.setswitchinterval(SWITCH_S)
        open_chosen = partial(open_engine, choice=settings.engine)
        self._worker = Worker(settings, name, open_chosen, open_tracing(name), gpu=gpu)
        self._leaving = False
        self._thread = threading.Thread(target=self._run, name="worker")
        self._thread.start()

    def _run(self) -> None:
        status = ENDED
        try:
            status = self._worker.run()
        finally:
            if not self._leaving:
                os._exit(status or ENDED)

    def where(self) -> dict[str, Any]:
        """Whether it is ready, and where it runs."""
        context = ray.get_runtime_context()
        return {"ready": self._worker.ready, "pid": os.getpid(), "node": context.get_node_id()}

    def leave(self) -> None:
        """Hand its graphs to the other workers, if there are any, and end for good: Ray does not start it again."""
        self._leaving = True
        self._worker.leave()
        self._thread.join()
        end: Any = ray.actor.exit_actor  # which Ray gives no types
        end()
