"""A backend without Redis and workers, for what the API process decides by itself."""

import asyncio
import hashlib
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

import httpx
import redis

from service.api.backend import Backend
from service.api.bodies.budget import ByteBudget
from service.api.bodies.parsing import Parsers
from service.api.guards.access import KeyTable
from service.api.guards.admission import Admission
from service.api.guards.wrong_keys import WrongKeys
from service.api.metrics import Metrics, Scrapes
from service.api.replies.repeats import Repeats
from service.api.siblings import Siblings
from service.errors import ServiceError
from service.protocol import ARGS, JSON_TYPE, Arguments, Envelope, Kind, Problem, Reply, Status
from service.queue.models import RedisInfo, WorkerInfo
from service.queue.versions import Seen, Versions
from service.settings import Settings
from service.store.api_keys import ApiKey, KeyRing
from service.store.blobs import BrokenBlob
from service.store.catalogue import GraphInfo
from service.store.graphs import MAX_LISTED, GraphPage
from service.store.jobs.events import JobEvent
from service.store.jobs.listing import JobPage, Mark, Sees
from service.store.jobs.record import JobInfo

MAX_BODY_BYTES = 200_000
THEN = datetime(2026, 1, 31, 12, tzinfo=UTC)
CITY = GraphInfo(
    name="city",
    version=7,
    n_vertices=4,
    n_edges=4,
    n_arcs=8,
    decimals=1,
    bytes=1234,
    created_at=THEN,
    updated_at=THEN,
    engine="cpu",
    worker="cpu-0",
    source=0,
    sink=3,
)
WORKER = WorkerInfo(
    name="cpu-0",
    pid=1,
    ready=True,
    engine="cpu",
    graphs=1,
    bytes=1000,
    budget_bytes=8 << 30,
    beat_at=0,
    alive=True,
    heartbeat_age_s=0.1,
    waiting=0,
)


@dataclass
class Sent:
    """A command as the dispatcher was given it."""

    kind: Kind
    graph: str
    args: Any
    idempotency_key: str | None
    body_digest: str | None
    request_id: str | None = None
    traceparent: str | None = None


@dataclass
class Stored:
    """A result that lies in the blob of this name, and is about this version."""

    blob: str
    version: int | None = None
    media_type: str = JSON_TYPE


Answer = Callable[[Sent], "dict[str, Any] | str | Stored | Problem | ServiceError | Status"]


def version_one(sent: Sent) -> dict[str, Any]:
    return {"version": 1}


@dataclass
class FakeDispatcher:
    """Answers each command at once with what `answer` says; Status.RUNNING: never."""

    answer: Answer = version_one
    sent: list[Sent] = field(default_factory=list)
    jobs_by_id: dict[str, JobInfo] = field(default_factory=dict)
    lost: Literal["", "jobs", "ends of jobs"] = ""
    """What Redis has lost: what was written last, and perhaps what was written before that."""
    envelopes: dict[str, Envelope] = field(default_factory=dict)
    known_workers: list[WorkerInfo] = field(default_factory=lambda: [WORKER])
    metrics_by_worker: dict[str, bytes] = field(default_factory=dict)
    away: bool = False
    unfinished: list[Callable[[], None]] = field(default_factory=list)
    versions: "FakeVersions" = field(default_factory=lambda: FakeVersions())
    waited_s: list[float] = field(default_factory=list)
    _ids: Any = field(default_factory=itertools.count)

    async def submit(
        self,
        kind: Kind,
        graph: str,
        args: Arguments,
        *,
        idempotency_key: str | None,
        body_digest: str | None,
        request_id: str | None,
        traceparent: str | None,
        in_batch: bool = False,
    ) -> str:
        self._check()
        over_the_wire = ARGS[kind].model_validate_json(args.to_json())
        sent = Sent(kind, graph, over_the_wire, idempotency_key, body_digest, request_id, traceparent)
        outcome = self.answer(sent)
        if isinstance(outcome, ServiceError):
            raise outcome
        self.sent.append(sent)
        job_id = f"job-{next(self._ids)}"
        job = JobInfo(id=job_id, kind=kind, graph=graph, status=Status.RUNNING, created_at=THEN)
        if isinstance(outcome, Status):  # before str: a Status is one
            job.status = outcome
        elif isinstance(outcome, Problem):
            job.status, job.error = Status.FAILED, outcome
        elif isinstance(outcome, Stored):
            job.status = Status.SUCCEEDED
            if outcome.media_type == JSON_TYPE:
                job.result_blob = outcome.blob
            else:
                job.file_blob, job.result_json = outcome.blob, json.dumps({"media_type": outcome.media_type})
            self.envelopes[job_id] = Envelope(version=outcome.version, media_type=outcome.media_type)
        else:
            job.status = Status.SUCCEEDED
            job.result_json = outcome if isinstance(outcome, str) else json.dumps(outcome)
            said = json.loads(outcome) if isinstance(outcome, str) else outcome
            self.envelopes[job_id] = Envelope(version=said.get("version"), replaced=said.get("replaced"))
        self.jobs_by_id[job_id] = job
        return job_id

    async def knows(self, graph: str, idempotency_key: str) -> bool:
        return any((sent.graph, sent.idempotency_key) == (graph, idempotency_key) for sent in self.sent)

    def when_done(self, job_id: str, act: Callable[[], None]) -> None:
        if self.jobs_by_id[job_id].status is not Status.RUNNING:
            act()
        else:
            self.unfinished.append(act)

    async def wait(self, job_id: str, timeout_s: float) -> Reply | None:
        self.waited_s.append(timeout_s)
        job = self.jobs_by_id[job_id]
        if job.status is Status.RUNNING:
            await asyncio.sleep(min(timeout_s, 0.05))
            return None
        return reply_of(job, self.envelopes.get(job_id, Envelope()))

    async def job(self, job_id: str) -> JobInfo | None:
        job = self.jobs_by_id.get(job_id)
        if job is None or self.lost == "jobs":
            return None
        put_back = {"status": Status.QUEUED, "result_json": None, "result_blob": None, "file_blob": None}
        return job.model_copy(update=put_back) if self.lost else job

    async def jobs(self, limit: int, sees: Sees, after: Mark | None) -> JobPage:
        seen = [job for job in self.jobs_by_id.values() if sees(job.graph)][::-1]
        left = [job for job in seen if after is None or Mark(0.0, job.id).is_after(after)]
        more = len(left) > limit
        return JobPage(left[:limit], Mark(0.0, left[limit - 1].id) if more else None)

    async def until_written(self, is_there: Callable[[], Awaitable[bool]]) -> None:
        pass

    async def until_job_written(self, job_id: str) -> None:
        pass

    async def cancel(self, job_id: str) -> JobInfo | None:
        job = self.jobs_by_id.get(job_id)
        if job is not None and job.status is Status.RUNNING:
            job.status = Status.CANCELLED
        return job

    async def events(self, job_id: str, last_event_id: str | None) -> AsyncIterator[JobEvent]:
        first = 1 if last_event_id is None else int(last_event_id.partition("-")[0]) + 1
        for number in range(first, 4):
            await asyncio.sleep(0)
            name = "done" if number == 3 else "progress"
            yield JobEvent(id=f"{number}-0", event=name, data={"pushes": number})

    async def is_end(self, job_id: str, event_id: str) -> bool:
        return event_id == "3-0"

    @property
    def watch(self) -> "FakeDispatcher":
        """Plays `service.queue.watch.Watch` as well."""
        return self

    async def workers(self) -> list[WorkerInfo]:
        self._check()
        return self.known_workers

    async def has_ready_worker(self) -> bool:
        self._check()
        return any(worker.alive and worker.ready for worker in self.known_workers)

    async def worker_metrics(self) -> dict[str, bytes]:
        self._check()
        return self.metrics_by_worker

    async def ping(self) -> RedisInfo:
        self._check()
        return RedisInfo(version="7.2.4", appendonly=True, fsync="everysec", used_memory_bytes=1)

    def _check(self) -> None:
        if self.away:
            raise ServiceError("worker_unavailable", "Redis does not answer", retry_after_s=1)


def filled(path: str) -> str:
    """A path of `service.api.guards.access.NEEDED` with a name in each of its places."""
    names = {"name": "city", "job_id": "x", "watch": "main", "webhook": "hook", "delivery": "1", "worker": "w"}
    return path.format(version=1, **names)


class FakeCatalogue:
    def __init__(self) -> None:
        self.graphs = {"city": CITY}

    async def page(self, sees: Sees, after: str = "", limit: int = MAX_LISTED) -> GraphPage:
        seen = [info for name, info in sorted(self.graphs.items()) if sees(name)]
        behind = [info for info in seen if info.name > after]
        return GraphPage(behind[:limit], behind[limit - 1].name if len(behind) > limit else None, len(seen))

    async def get(self, name: str) -> GraphInfo | None:
        if name == "explode":
            raise RuntimeError("a secret of the inside")
        if name == "away":
            raise redis.ConnectionError("Redis is away")
        return self.graphs.get(name)

    async def snapshots(self, name: str) -> "list[Any] | None":
        return [] if name in self.graphs else None


class FakeKeys:
    """The API keys in Redis."""

    def __init__(self) -> None:
        self.keys: dict[str, ApiKey] = {}
        self.opened_at: float | None = None
        self.away = False

    async def fetch(self) -> KeyRing:
        if self.away:
            raise redis.ConnectionError("Redis is away")
        return KeyRing(dict(self.keys), self.opened_at)


class FakeSessions:
    """Sessions of browsers, by their tokens."""

    def __init__(self) -> None:
        self.tokens: list[str] = []
        self.away = False

    async def open(self, key_id: str) -> str:
        self.tokens.append(f"hs_{key_id}_{len(self.tokens):012x}_{43 * 'S'}")
        return self.tokens[-1]

    async def is_open(self, token: str) -> bool:
        if self.away:
            raise redis.ConnectionError("Redis is away")
        return token in self.tokens

    async def close(self, token: str) -> None:
        self.tokens.remove(token)


class FakeBlob:
    """A stored result, in chunks of a hundred bytes."""

    def __init__(self, content: bytes) -> None:
        self.n_bytes = len(content)
        self.held_bytes = 300
        self.sha256 = hashlib.sha256(content).hexdigest()
        self._chunks = [content[start : start + 100] for start in range(0, len(content), 100)]

    async def chunks(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            if b"BROKEN" in chunk:
                raise BrokenBlob("a digest was wrong")
            yield chunk


class FakeBlobs:
    def __init__(self) -> None:
        self.blobs: list[bytes] = []
        self.deleted: list[str] = []
        self.stored: dict[str, bytes] = {}
        """Results, by name."""

    async def open(self, name: str) -> FakeBlob:
        if name not in self.stored:
            raise BrokenBlob(name)
        return FakeBlob(self.stored[name])

    async def put(self, data: bytes, ttl_s: int = 3600) -> str:
        self.blobs.append(data)
        return f"blob-{len(self.blobs)}"

    async def put_pieces(self, pieces: Iterable[bytes], ttl_s: int = 3600) -> str:
        return await self.put(b"".join(pieces), ttl_s)

    async def delete(self, *names: str) -> None:
        self.deleted += names


def reply_of(job: JobInfo, envelope: Envelope) -> Reply:
    return Reply(
        id=job.id,
        status=job.status,
        problem=job.error,
        envelope=envelope,
        result_json=job.result_json,
        result_blob=job.result_blob,
        file_blob=job.file_blob,
    )


@dataclass
class Fakes:
    """Opens as the backend of `create_app`; a test reaches into its parts."""

    dispatcher: FakeDispatcher = field(default_factory=FakeDispatcher)
    catalogue: FakeCatalogue = field(default_factory=FakeCatalogue)
    blobs: FakeBlobs = field(default_factory=FakeBlobs)
    api_keys: FakeKeys = field(default_factory=FakeKeys)
    sessions: FakeSessions = field(default_factory=FakeSessions)
    wrong_keys: WrongKeys = field(default_factory=WrongKeys)
    key_table: KeyTable | None = None
    budget: ByteBudget | None = None
    admission: Admission | None = None
    scrapes: Scrapes | None = None

    def reset(self) -> None:
        for part in (self.dispatcher, self.catalogue, self.blobs, self.api_keys, self.sessions, self.wrong_keys):
            part.__init__()  # type: ignore[misc]  # the running application holds on to these very objects
        if self.scrapes is not None:
            self.scrapes.forget()
        if self.key_table is not None:
            self.key_table._try_at = 0.0
            self.key_table._seen.forget()
            self.key_table._gone = False

    @asynccontextmanager
    async def open(self, settings: Settings, metrics: Metrics) -> AsyncIterator[Backend]:
        parts: Any = (self.dispatcher, self.catalogue, self.blobs)
        self.key_table = KeyTable(self.api_keys.fetch, settings.require_keys)
        self.budget = ByteBudget(settings.body_memory_bytes)
        self.admission = Admission(settings)
        async with Parsers() as parsers:
            self.scrapes = Scrapes()
            rest: Any = (metrics, self.budget, self.key_table, self.sessions, self.admission, parsers)
            rest += (FakeFeed(), FakeHooks(), Siblings(None, metrics), Repeats(FakeVersions()))
            yield Backend(settings, *parts, *rest, wrong_keys=self.wrong_keys, scrapes=self.scrapes)


class FakeVersions(Versions):
    """It is never known at which version a graph is."""

    def __init__(self) -> None:
        self.connection = 0

    async def at(self, graph: str, guess: Seen | None) -> Seen | None:
        return None


class FakeFeed:
    """Nothing has happened, and nobody watches."""

    async def exists(self, name: str) -> bool:
        return False

    async def watches(self, name: str) -> list[Any]:
        return []


class FakeHooks:
    """There are none."""

    async def get(self, hook_id: str) -> None:
        return None

    async def all(self) -> list[Any]:
        return []

    async def standings(self, now: float) -> list[Any]:
        return []


@dataclass
class Api:
    """A running API process (a thread of this one) and a client of it."""

    fakes: Fakes
    http: httpx.Client
    address: tuple[str, int]
