"""What one API process lets in: so much unfinished work for each graph and each key, so many event streams.

A queue without a bound only turns overload into waiting. With these, work that is accepted waits behind little,
and the rest is told at once when to come back: 429 rate_limited with Retry-After.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

from fastapi import Request

from service.errors import ServiceError
from service.settings import Settings

RETRY_AFTER_S = 1.0


class Admission:
    """Counts; in one event loop, so without locks."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._of_graph: Counter[str] = Counter()
        self._of_key: Counter[str] = Counter()
        self._streams = 0

    def enter(self, graph: str, key_id: str | None) -> Callable[[], None]:
        """Count one command until what is returned is called, once. Raises rate_limited."""
        if self._of_graph[graph] >= self._settings.graph_queue_limit:
            raise _too_much(f"{self._of_graph[graph]} commands for graph {graph!r} are unfinished")
        if key_id is not None and self._of_key[key_id] >= self._settings.key_queue_limit:
            raise _too_much(f"{self._of_key[key_id]} commands of this API key are unfinished")
        self._of_graph[graph] += 1
        if key_id is not None:
            self._of_key[key_id] += 1
        return lambda: self._leave(graph, key_id)

    @contextmanager
    def stream(self) -> Iterator[None]:
        """Count one event stream. Raises rate_limited."""
        if self._streams >= self._settings.max_event_streams:
            raise _too_much(f"{self._streams} event streams are open")
        self._streams += 1
        try:
            yield
        finally:
            self._streams -= 1

    def _leave(self, graph: str, key_id: str | None) -> None:
        _take_one(self._of_graph, graph)
        if key_id is not None:
            _take_one(self._of_key, key_id)


async def stream_room(request: Request) -> AsyncIterator[None]:
    """Dependency of a route that answers with an event stream: room for it, until the stream has ended."""
    admission: Admission = request.state.backend.admission
    with admission.stream():
        yield


def _take_one(counts: Counter[str], name: str) -> None:
    counts[name] -= 1
    if counts[name] <= 0:
        del counts[name]


def _too_much(detail: str) -> ServiceError:
    return ServiceError("rate_limited", detail, retry_after_s=RETRY_AFTER_S)
