"""Work of one lane in order, different lanes side by side, on a bounded number of threads."""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import structlog

Work = Callable[[], None]

log = structlog.get_logger(__name__)


class Lanes:
    """One lane per graph. A lane gives way to others after each piece of work. Work should not raise."""

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="lane")
        self._lock = threading.Lock()
        self._queues: dict[str, deque[Work]] = {}

    def put(self, lane: str, work: Work) -> None:
        """Queue `work` behind what the lane already has. Bounded by whoever calls."""
        with self._lock:
            queue = self._queues.setdefault(lane, deque())
            queue.append(work)
            if len(queue) == 1:
                self._pool.submit(self._run_next, lane)

    def is_idle(self, lane: str) -> bool:
        with self._lock:
            return lane not in self._queues

    def close(self) -> None:
        """Wait for what is running; what waits is dropped."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _run_next(self, lane: str) -> None:
        try:
            self._queues[lane][0]()
        except Exception:  # what waits behind it must not wait for ever
            log.exception("work_failed", lane=lane)
        with self._lock:
            queue = self._queues[lane]
            queue.popleft()
            if not queue:
                del self._queues[lane]
                return
        try:
            self._pool.submit(self._run_next, lane)
        except RuntimeError:  # closed meanwhile
            return
