"""The worker process: owns graphs, keeps their flow states resident, runs their commands.

``python -m service.worker --name cpu-0``, or ``--name gpu-2 --gpu 2``; all else comes from the environment
(`service.settings`).
"""

import argparse
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Final, TypeVar

import pyarrow as pa
import redis
import structlog

from gpu_engine.devices import device_fault
from gpu_engine.footprint import Footprint
from gpu_engine.select import device_bytes, device_label, open_engine
from service.beginning import refuse
from service.collector import leave_alone_what_is_here
from service.left_out import leave_out_pandas
from service.machine import TooFewFiles, take_files
from service.queue.models import WorkerReport
from service.settings import Settings, SettingsError, read_settings
from service.store.connection import connect
from service.store.fitness import refuse_unfit
from service.store.handover import Handover
from service.store.keys import Keys
from service.store.placed import Settling
from service.store.restores import Restores
from service.telemetry import logs
from service.telemetry.doubts import warn_of_redis_address
from service.telemetry.tracing import NoTracing, Tracing, open_tracing
from service.worker.graph import OpenEngine
from service.worker.graphs import Graphs
from service.worker.membership.draining import Draining
from service.worker.membership.handback import HandBack
from service.worker.membership.heartbeat import NAME_TAKEN
from service.worker.membership.intake import Intake
from service.worker.membership.lease import Lease
from service.worker.membership.name_taken import wait_instead
from service.worker.membership.takeover import Takeover
from service.worker.metrics import TTL_S, WorkerMetrics
from service.worker.running.absence import Absence
from service.worker.running.consumer import Consumer
from service.worker.running.costs import Costs
from service.worker.running.lanes import Lanes
from service.worker.starting import Start, with_device

DEVICE_SHARE: Final = 0.8
"""The share of a device's memory in which its workers hold and solve graphs. Batches, sorts of new graphs, kernels and
the driver have the rest."""

SWITCH_S: Final = 0.0005
"""The longest time for which a thread runs Python while others wait, so that short work gets its turn often."""

MAX_DELAY_S: Final = 0.5
"""The longest time between two tries to reach Redis."""

LOOK_AT_DEVICE_S: Final = 5.0
"""How often a worker looks whether its device is lost: one of two engines on trial fails unheard, say."""

DEVICE_LOST: Final = 74
"""Exit status of a worker whose device does nothing any more: EX_IOERR of sysexits.h."""

Answer = TypeVar("Answer")

log = structlog.get_logger(__name__)


class Worker:
    """One worker: its graphs, what reads and runs their commands, and its membership, each with threads of its own."""

    def __init__(
        self,
        settings: Settings,
        name: str,
        open_engine: OpenEngine,
        tracing: Tracing | None = None,
        on_warm: Callable[[], None] = lambda: None,
        gpu: int | None = None,
    ) -> None:
        """`on_warm` is called when all is compiled, before graphs come. `gpu` is the number of the device that this
        process is bound to."""
        self.name = name
        self._version = version("headrace-server")
        self._on_warm = on_warm
        self._settings = settings
        self._open_engine = open_engine
        self._keys = keys = Keys(settings.redis_prefix)
        self._redis = connect(settings)
        self._metrics = WorkerMetrics()
        self._tracing = tracing or NoTracing()
        self._lanes = Lanes(settings.threads)
        self.graphs = Graphs(
            self._redis,
            keys,
            name,
            settings,
            open_engine,
            self._metrics,
            self._defer,
            self._lanes.is_crowded,
            lambda: self._consumer.tasks(),
            self._has_lost_device,
        )
        handover = Handover(self._redis, keys, name)
        restores = Restores(self._redis, keys)
        self._intake = Intake(self.graphs, handover, restores, self._defer, self._are_all_there, settings.threads)
        self._consumer = self._new_consumer(keys)
        self._lease = Lease(self._redis, keys, name, settings.lease_s, settings.redis_location)
        taken, lives = self._intake.take_over, self._lease.show_life
        others = tuple(filter(None, settings.only_workers.split(",")))
        self._takeover = Takeover(self._redis, keys, name, settings.lease_s, taken, lives, others)
        self._hand_back = HandBack(
            self._redis, keys, name, settings.lease_s, self._lanes.is_idle, self._intake.give_back
        )
        self._draining = Draining(self._redis, keys, self.graphs.mover, self.graphs.displaced)
        self._settling = Settling(self._redis, keys, name)
        self._reported: list[str] = []
        """The graphs that the last report has counted."""
        self._gpu = gpu
        self._device = self._device_fault = ""
        self._start = Start(name)
        self._engine_name = "unknown"
        self._ready = self._lost = self._is_leaving = self._is_told_to_end = False
        self._ready_at = 0.0
        """On the monotonic clock, as that of the machine may be set while the worker serves."""
        self._begins_empty = False
        self._lock = threading.Lock()

    def _new_consumer(self, keys: Keys) -> Consumer:
        """What reads the commands of this worker and runs them, once its graphs and its lanes are made."""
        return Consumer(
            self._redis,
            keys,
            self.name,
            self._settings,
            self.graphs.handle,
            self.graphs.updating,
            self._metrics,
            self._tracing,
            Costs(self.graphs.arcs),
            self._lanes,
            self._intake.handed_over,
            self.graphs.expect,
            self.graphs.graph_id,
            self.graphs.may_be_lost,
            self._intake.prepare,
            self._has_lost_device,
        )

    @property
    def ready(self) -> bool:
        """Whether it serves its graphs."""
        return self._ready

    def run(self) -> int:
        """Serve until `stop`; returns the exit status of the process."""
        self._device = device_label(self._settings.engine, self._gpu)
        if self._has_lost_device():  # nobody is to wait for it, and others take its graphs
            return DEVICE_LOST
        self._ask_redis(partial(refuse_unfit, self._redis))
        self._ask_redis(self._lease.acquire)
        self._ask_redis(self._consumer.listen)  # before others hear that it is ready
        self._ask_redis(self._draining.arrive)
        self._begins_empty = self._ask_redis(self.graphs.sizes) == {}
        if self._consumer.stopping:
            return 0
        self._lease.start(self._report, self._on_beat, self._on_lost)
        self._engine_name = self._start.compile(self._open_engine, self._settings.engine)
        self._metrics.engine_is(self._engine_name)
        if self._device:
            threading.Thread(target=self._look_at_device, name="device", daemon=True).start()
        self._on_warm()
        self.graphs.residents.resize(self._budget())
        self._restore_all()
        log.info("started", worker=self.name, engine=self._engine_name, device=self._device or None)
        self._consumer.run()
        self._ready = self._begins_empty = False
        self._draining.stop()
        self._lease.release()
        self._redis.close()
        self._tracing.close()
        if self._device_fault:
            return DEVICE_LOST
        return NAME_TAKEN if self._lost and not self._is_told_to_end else 0

    def _budget(self) -> Footprint:
        settings = self._settings
        workers = settings.workers if self._gpu is None else 1
        share = int(DEVICE_SHARE * device_bytes(settings.engine)) // workers
        device = 0 if settings.engine == "cpu" else settings.device_budget_bytes or share
        return Footprint(settings.host_budget, device)

    def stop(self) -> None:
        """Stop from any thread. What runs is let go of, and is pending for whoever has the name next."""
        self._consumer.stop()
        self.graphs.stop()

    def leave(self) -> None:
        """Hand the graphs over to the other workers, if there are any, and stop. From any thread; told again, it goes
        on."""
        with self._lock:
            is_leaving, self._is_leaving = self._is_leaving, True
        if is_leaving:
            return
        if self._ready:
            self._draining.leave()
        self.stop()

    def end(self, by: Callable[[], None]) -> None:
        """`stop` or `leave`, as this process was told. While it compiles, it ends here: it serves nothing yet, and a
        compiler cannot be stopped."""
        self._is_told_to_end = True
        by()
        if self._start.progress is not None:
            self._lease.release()
            os._exit(0)

    def _ask_redis(self, question: Callable[[], Answer]) -> Answer | None:
        """Repeat the question until Redis is there and takes writes; None if the worker is stopped before."""
        absence, delay_s = Absence(self.name), 0.01
        while not self._consumer.stopping:
            try:
                answer = question()
            except redis.RedisError as error:
                absence.goes_on(error)
                time.sleep(delay_s)
                delay_s = min(2 * delay_s, MAX_DELAY_S)
            else:
                absence.is_over()
                return answer
        return None

    def _restore_all(self) -> None:
        """In the graphs' own lanes, before their commands; ready when all are there."""
        self._intake.begin(self._ask_redis(self.graphs.sizes) or {})

    def _are_all_there(self) -> None:
        self._ready, self._ready_at = True, time.monotonic()
        self._lease.beat_now()

    def _defer(self, graph: str, work: Callable[[], None], expected_s: float) -> None:
        self._lanes.put(graph, work, lambda: expected_s)

    def _report(self) -> WorkerReport:
        residents = self.graphs.residents
        graphs, held, budget, now = residents.all(), residents.held, residents.budget, time.time()
        self._reported = [graph.name for graph in graphs]
        return WorkerReport(
            name=self.name,
            version=self._version,
            pid=os.getpid(),
            ready=self._ready,
            ready_soon=self._begins_empty and not self._ready and self._start.progress is None,
            compiling=self._start.progress,
            engine=self._engine_name,
            device=self._device,
            graphs=len(graphs),
            bytes=held.host,
            budget_bytes=budget.host,
            device_bytes=held.device,
            device_budget_bytes=budget.device,
            beat_at=now,
            ready_since=now - (time.monotonic() - self._ready_at),
            counters=self.graphs.counters,
            notes=self.graphs.notes,
        )

    def _on_beat(self) -> None:
        self._publish_metrics()
        self._settling.settle(self._reported)
        self.graphs.look_after()
        if self._ready and not self._draining.check():
            self._takeover.check()
            self._hand_back.check()

    def _has_lost_device(self) -> bool:
        """Whether a device of this process does nothing any more. Then the process ends, and leaves what it has not
        done to the next one."""
        fault = device_fault(self._settings.engine) if self._device else ""
        if fault and not self._device_fault:
            self._device_fault = fault
            log.error("device_lost", worker=self.name, device=self._device, error=fault)
            self.stop()
        return bool(fault)

    def _look_at_device(self) -> None:
        while not self._consumer.stopping and not self._has_lost_device():
            time.sleep(LOOK_AT_DEVICE_S)

    def _publish_metrics(self) -> None:
        text = self._metrics.news(self.graphs.counters, self.graphs.residency)
        if text is None:
            return
        began = time.perf_counter()
        try:
            self._redis.set(self._keys.metrics(self.name), text, ex=TTL_S)
        except redis.RedisError:
            self._metrics.was_not_told()
            raise
        self._metrics.redis_answered(time.perf_counter() - began)

    def _on_lost(self) -> None:
        log.error("name_taken", worker=self.name)
        self._lost = True
        self.stop()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m service.worker", description=__doc__)
    parser.add_argument("--name", required=True, help="the worker's name; it keeps its graphs under this name")
    parser.add_argument("--gpu", type=int, help="the number of the CUDA device it is bound to; it sees no other")
    options = parser.parse_args()
    name, gpu = options.name, options.gpu
    try:
        settings = read_settings()
        take_files()
    except (SettingsError, TooFewFiles) as error:
        refuse(str(error))
    logs.configure(name)
    warn_of_redis_address(settings)
    settings = with_device(settings, name, gpu)  # before anything looks for a device
    leave_out_pandas()
    sys.setswitchinterval(SWITCH_S)
    pa.set_memory_pool(pa.system_memory_pool())  # Arrow's own keeps what it once had: twice a graph, after its load
    open_chosen = partial(open_engine, choice=settings.engine)
    worker = Worker(settings, name, open_chosen, open_tracing(name), on_warm=leave_alone_what_is_here, gpu=gpu)
    for number, end in ((signal.SIGTERM, worker.leave), (signal.SIGINT, worker.stop)):
        # Not in the handler itself: it may interrupt the very lock that stop needs.
        signal.signal(number, lambda *_, end=end: threading.Thread(target=worker.end, args=[end]).start())
    status = worker.run()
    if status == DEVICE_LOST:
        os._exit(status)  # what CuPy frees at the end would ask the device
    if status == NAME_TAKEN:
        wait_instead(name)
    return status


if __name__ == "__main__":
    sys.exit(main())
