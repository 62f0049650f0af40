"""Answers given again: a question that was answered a moment ago, of a graph that has not changed since.

The worker says of an answer that nothing was solved for it (`Envelope.unchanged`). Asked again within `KEPT_S`, the
same is answered by this process, once it has read from Redis that the graph is still the same one, at the same
version, and that no change of it waits: what was accepted before the question comes before it. The worker is asked
again after that time, so that it knows which flows are in use.
"""

import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from starlette.responses import Response

from service.api.replies.results import HeldResponse
from service.protocol import Envelope, Kind
from service.queue.versions import Seen, Versions
from service.store.keys import generation_of

REPEATED: Final = frozenset({Kind.MAX_FLOW, Kind.MIN_CUT})

KEPT_S: Final = 1.0
HELD_BYTES: Final = 16 << 20
ONE_BYTES: Final = 64 << 10
"""A longer answer is not kept."""

OBJECT_BYTES: Final = 1024
"""What an answer takes beside its body."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question: what is asked of which graph, by its digest."""

    kind: Kind
    graph: str
    digest: str


@dataclass(slots=True)
class _Kept:
    connection: int
    """The one that stood when the question was asked."""
    version: int
    generation: str
    body: bytes
    headers: Mapping[str, str]
    until: float
    seen: Seen | None
    """What the name stood for at the last look."""


class Repeats:
    """The answers that one API process may give again. Their bytes are bounded, and the oldest go first."""

    def __init__(self, versions: Versions) -> None:
        self._versions = versions
        self._kept: OrderedDict[Question, _Kept] = OrderedDict()
        self.used_bytes = 0

    @property
    def connection(self) -> int:
        """The number of the connection, which the caller reads before it asks the question and gives to `keep` with the
        answer."""
        return self._versions.connection

    async def find(self, question: Question) -> Response | None:
        """The answer, if it still is the answer. Cost: one round trip to Redis, which callers share."""
        kept = self._kept.get(question)
        if kept is None or kept.until < time.monotonic():
            return None
        seen = await self._versions.at(question.graph, kept.seen)
        kept.seen = seen
        if seen is None or seen.version is None or seen.changes:
            return None
        then = kept.connection, kept.generation, kept.version
        if then != (seen.connection, generation_of(seen.graph_id), seen.version):
            kept.until = 0.0  # it never will be again
            return None
        return Response(kept.body, 200, kept.headers)

    def keep(self, question: Question, connection: int, said: Envelope, answer: Response) -> None:
        """Keep what is answered, if it may be given again by what the worker ``said`` of it. A long one is not at hand
        as a whole."""
        before = self._drop(question)
        if not said.unchanged or said.version is None or said.generation is None or isinstance(answer, HeldResponse):
            return
        if len(answer.body) > ONE_BYTES:
            return
        seen = None if before is None else before.seen
        until = time.monotonic() + KEPT_S
        headers = {name: value for name, value in answer.headers.items() if name != "content-length"}
        kept = _Kept(connection, said.version, said.generation, bytes(answer.body), headers, until, seen)
        self._kept[question] = kept
        self.used_bytes += OBJECT_BYTES + len(kept.body)
        while self.used_bytes > HELD_BYTES:
            self._drop(next(iter(self._kept)))

    def _drop(self, question: Question) -> _Kept | None:
        kept = self._kept.pop(question, None)
        if kept is not None:
            self.used_bytes -= OBJECT_BYTES + len(kept.body)
        return kept
