"""What a worker counts, by name; the names are those of `service.worker.metrics.COUNTED` and the kinds of commands."""

import threading
from collections import Counter


class Counters:
    """Counts events by name. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def count(self, name: str, by: int = 1) -> None:
        with self._lock:
            self._counts[name] += by

    def all(self) -> dict[str, int]:
        with self._lock:
            return dict(self._counts)
