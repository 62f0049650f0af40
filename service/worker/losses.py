"""Which graphs that a worker has in memory are lost: Redis knows neither them nor a delete of them."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import redis
import structlog

from service.store.catalogue import Registry
from service.store.feed.left import LeftFeeds
from service.store.keys import Keys
from service.worker.committing import UNWRITTEN_S
from service.worker.counters import Counters
from service.worker.graph import Graph

LOST: Final = "Redis does not know the graph any more, and no delete of it is recorded: bring Redis back with its data"
"""A hint in the log."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Missed:
    """A graph that no name stood for, though no delete of it was recorded, when its worker looked last."""

    name: str
    version: int


class Losses:
    """Looks after the graphs of one worker that are in its memory and not its own. Only the thread of the heartbeat may
    call it. Raises RedisError."""

    def __init__(self, client: redis.Redis, keys: Keys, registry: Registry, counters: Counters) -> None:
        self._registry = registry
        self._feeds = LeftFeeds(client, keys)
        self._counters = counters
        self._missed: dict[str, Missed] = {}
        """By the ids of the graphs: a name may have been given again since."""

    def look(self, strangers: Sequence[Graph]) -> list[Graph]:
        """Tell of the graphs that were missed at the last look and are still not there, whoever has their names now.
        Returns which of the ``strangers``, that others are to serve, or nobody, can be forgotten.

        It takes two looks, in case Redis comes back with its data between them. However many graphs there are, it costs
        one round trip for each thousand, and one more for those that no name stands for.
        """
        asked = {graph.name for graph in strangers} | {missed.name for missed in self._missed.values()}
        if not asked:
            return []
        ids = self._registry.ids(sorted(asked))
        absent = [graph for graph in strangers if graph.name not in ids and graph.graph_id not in self._missed]
        undeleted = self._feeds.of_no_deletion({graph.name: graph.graph_id for graph in absent})
        gone = [graph for graph in absent if graph.name in undeleted]
        for graph_id, missed in self._missed.items():
            if ids.get(missed.name) != graph_id:
                self._counters.count("graphs_lost")
                log.error("graph_lost", graph=missed.name, version=missed.version, hint=LOST)
        unsure = {graph.graph_id for graph in gone if _may_be_unanswered(graph)}
        self._missed = {
            graph.graph_id: Missed(graph.name, graph.version) for graph in gone if graph.graph_id not in unsure
        }
        return [graph for graph in strangers if graph.graph_id not in unsure]


def _may_be_unanswered(graph: Graph) -> bool:
    """Whether the load of the graph may not have been answered: if Redis loses it, the caller sends it again."""
    return graph.version == 1 and time.monotonic() - graph.unwritten_at < UNWRITTEN_S
