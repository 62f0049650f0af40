"""How updates that a copy in memory has are committed to the log of their graph."""

import time
from collections.abc import Sequence
from typing import Any, Final

import redis

from service.store.durable import Written
from service.store.feed.writing import Feeds
from service.store.jobs.record import Result
from service.store.keys import Keys
from service.store.log import Also, Entry, Log, Packed
from service.worker.graph import Graph
from service.worker.metrics import WorkerMetrics
from service.worker.saving import Saver

UNWRITTEN_S: Final = 10.0
"""For so long after a commit answers are marked as what Redis may still lose. It holds acknowledged writes back for two
seconds at most, while an earlier fsync of its file is running."""


class Committer:
    """Commits the updates of the graphs of one worker."""

    def __init__(self, client: redis.Redis, keys: Keys, saver: Saver, metrics: WorkerMetrics, feeds: Feeds) -> None:
        self.written = Written(client, keys)
        self._log = Log(client, keys)
        self._saver = saver
        self._metrics = metrics
        self._feeds = feeds

    def append(self, graph: Graph, updates: Sequence[tuple[Entry, str]]) -> float:
        """Commit entries, each with the id of its command. Returns how many milliseconds that took. Raises as
        `Log.append`."""
        began = time.perf_counter()
        self._log.append(graph.graph_id, graph.epoch, updates, time.time(), self._announcing(graph))
        took_s = time.perf_counter() - began
        self._note(graph, len(updates), took_s)
        return 1e3 * took_s

    def queue(self, pipe: Any, graph: Graph, some: Sequence[Packed]) -> None:
        """Queue the commit of entries; see `Log.queue`."""
        self._log.queue(pipe, graph.graph_id, some, time.time(), self._announcing(graph))

    def arrived(self, graph: Graph, count: int, took_s: float) -> None:
        """So many queued entries are committed now, in so many seconds. Redis may still lose them with its process."""
        graph.unwritten_at = time.monotonic()
        self._note(graph, count, took_s)

    def _note(self, graph: Graph, count: int, took_s: float) -> None:
        self._metrics.appended(took_s)
        graph.unsaved += count
        self._saver.save_soon(graph)

    def _announcing(self, graph: Graph) -> Also:
        return lambda pipe, version: self._feeds.announce(pipe, graph.name, graph.graph_id, version)


class Updates:
    """A `service.worker.running.batch.Batch` of one graph, whose copy in memory has all of it."""

    def __init__(
        self, committer: Committer, graph: Graph, packed: Sequence[Packed], jobs: Sequence[str], results: list[Result]
    ) -> None:
        """`jobs`: the ids of the commands of the entries that are `packed`."""
        self.results = results
        self._committer = committer
        self._graph = graph
        self._packed = packed
        self._jobs = jobs

    def queue(self, pipe: Any) -> None:
        self._committer.queue(pipe, self._graph, self._packed)

    def arrived(self, took_s: float) -> None:
        self._committer.arrived(self._graph, len(self._packed), took_s)

    def commit(self) -> None:
        run = self._committer.written.run()
        entries = (entry for entry, _ in self._packed)
        self._committer.append(self._graph, list(zip(entries, self._jobs, strict=True)))
        self._committer.written.wait(run)
