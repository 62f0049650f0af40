"""What a worker says about a result, beside it, and what is made of results that nothing was said about."""

import json
import time
from typing import Any

import pytest

from gpu_engine.formats import pack
from service.protocol import (
    NPZ_TYPE,
    CapacitiesArgs,
    Command,
    EmptyArgs,
    Envelope,
    Kind,
    LoadArgs,
    MatchingArgs,
    MaxFlowArgs,
    Message,
    MinCostFlowArgs,
    Operation,
    PatchArgs,
    Problem,
    QuestionArgs,
    Status,
)
from service.settings import Settings
from service.store.durable import Written
from service.store.jobs.record import Result, read_reply
from service.store.keys import Keys
from service.worker.running import drafts
from service.worker.running.endings import Endings
from service.worker.running.task import Task
from tests.graphs import drawn
from tests.service_fixtures import Caller, StartWorker

ADD_1 = PatchArgs(batch=[Operation(op="add", edges=[0], amounts=["1"])])
PATIENCE_S = 60.0

PAIRS = drawn(4, [(0, 2, 1), (0, 3, 1), (1, 3, 1)])
"""A flow from 0 to 3, and a matching of 0 and 1 with 2 and 3."""

QUESTIONS: list[tuple[Kind, Message]] = [
    (Kind.MAX_FLOW, MaxFlowArgs()),
    (Kind.CAPACITIES, CapacitiesArgs()),
    (Kind.SNAPSHOT, EmptyArgs()),
    (Kind.MATCHING, MatchingArgs()),
]


@pytest.mark.parametrize("inline_bytes", [drafts.INLINE_BYTES, 0], ids=["short", "long"])
def test_each_answer_says_what_it_is_about(
    caller: Caller, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch, inline_bytes: int
) -> None:
    start_worker()
    caller.wait_ready()
    monkeypatch.setattr(drafts, "INLINE_BYTES", inline_bytes)
    generations = []
    for replaced in (False, True):
        blob = caller.run(caller.dispatcher.blobs.put(pack(PAIRS)))
        said = caller.reply(Kind.LOAD, "g", LoadArgs(blob=blob)).envelope
        generations.append(said.generation)
        assert said == Envelope(version=1, generation=generations[-1], replaced=replaced)
    assert len({*generations, None}) == 3
    second = Envelope(version=2, generation=generations[-1])
    assert caller.reply(Kind.PATCH, "g", ADD_1).envelope == second
    for kind, args in QUESTIONS:
        reply = caller.reply(kind, "g", args)
        assert json.loads(reply.result_json or "null")["version"] == 2, reply
        assert reply.envelope == second, kind
    assert caller.reply(Kind.DELETE, "g", EmptyArgs()).envelope == Envelope()


@pytest.mark.parametrize("unchanged", [0, 1, 6])
def test_a_commit_given_again_says_its_version(unchanged: int) -> None:
    """What it counts as unchanged is no member of an envelope, though one has that name."""
    answer = {"version": 6, "generation": "5389fcd1", "applied": 0, "unchanged": unchanged}
    assert Result.of_commit(json.dumps(answer)).envelope == Envelope(version=6, generation="5389fcd1")
    assert Result.of_commit("[]").envelope == Envelope()
    assert Result.of_commit('{"version": "six"}').envelope == Envelope()


@pytest.fixture
def task() -> Task:
    """A PATCH that a worker has been given."""
    command = Command(id="job", kind=Kind.PATCH, graph="g", args={}, reply_to="api", created_at=time.time())
    return Task(b"1-0", command, redelivered=False)


def test_api_processes_of_the_release_before_can_read_the_reply(
    client: Any, keys: Keys, settings: Settings, task: Task
) -> None:
    """They know these members and no others. What is said of the result stands beside them, in the job as well."""
    said = Envelope(version=2, replaced=True)
    client.hset(keys.job("job"), "status", "running")
    Endings(client, keys, "w0", settings, Written(client, keys)).succeed(task, Result(b"{}", envelope=said))
    ((_, sent),) = client.xrange(keys.replies("api"))
    kept = client.hgetall(keys.job("job"))
    for fields in (sent, kept):
        known = {"id", "status", "problem", "result_json", "result_blob"}
        assert set(json.loads(fields[b"reply"])) <= known
        assert (read_reply(fields).envelope, read_reply(fields).result_json) == (said, "{}")


def of_the_release_before(**result: str) -> dict[bytes, bytes]:
    """A reply as its workers write it."""
    header = {"id": "job", "status": "succeeded", "result_json": None, "result_blob": None, "problem": None}
    return {name.encode(): text.encode() for name, text in {"reply": json.dumps(header), **result}.items()}


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ('{"graph":"g","version":7,"cut":{"version":8}}', Envelope(version=7)),
        ('{"edge_ids":["\\"version\\":9"], "version": 7}', Envelope(version=7)),
        ('{"name":"g","version":1,"replaced":true}', Envelope(version=1, replaced=True)),
        ('{"name":"g","version":1,"replaced":false}', Envelope(version=1, replaced=False)),
        ("{}", Envelope()),
        ("[7]", Envelope()),
        ("no JSON", Envelope()),
    ],
)
def test_workers_of_the_release_before_say_it_in_the_result(result: str, said: Envelope) -> None:
    reply = read_reply(of_the_release_before(result=result))
    assert (reply.status, reply.result_json, reply.envelope) == (Status.SUCCEEDED, result, said)


def test_of_their_long_results_nothing_is_said() -> None:
    reply = read_reply(of_the_release_before(result_blob="blob"))
    assert (reply.status, reply.result_blob, reply.envelope) == (Status.SUCCEEDED, "blob", Envelope())


def test_their_replies_reach_who_waits(caller: Caller, client: Any, keys: Keys) -> None:
    """On the stream of an API process, and from the job, which another one may have asked for."""
    client.set(keys.lease("w0"), "a worker of the release before")
    client.hset(keys.owners, "g", "w0")
    ended = of_the_release_before(result='{"version":3}')
    first, second = (caller.submit(Kind.PATCH, "g", ADD_1) for _ in range(2))
    client.xadd(keys.replies(caller.dispatcher.id), ended | {b"id": first.encode()})
    client.hset(keys.job(second), mapping=ended | {b"status": b"succeeded"})
    for job_id in (first, second):
        reply = caller.run(caller.dispatcher.wait(job_id, PATIENCE_S))
        assert reply is not None
        assert (reply.result_json, reply.envelope) == ('{"version":3}', Envelope(version=3))


def test_what_a_later_release_says_beside_it_is_passed_over() -> None:
    said = '{"version":7,"replaced":null,"media_type":"text/plain","language":"en"}'
    reply = read_reply(of_the_release_before(result="7", envelope=said))
    assert reply.envelope == Envelope(version=7, media_type="text/plain")


def test_a_commit_that_is_answered_again_says_it_too(client: Any, keys: Keys, settings: Settings, task: Task) -> None:
    """The outcome of a command is its result alone: it may be a worker of the release before that finds it."""
    client.hset(keys.job("job"), "status", "running")
    client.set(keys.outcome("job"), '{"version":2,"replaced":true}')
    Endings(client, keys, "w0", settings, Written(client, keys)).refuse(
        task, Problem(code="engine_error", detail="it failed here")
    )
    kept = client.hgetall(keys.job("job"))
    assert Envelope.model_validate_json(kept[b"envelope"]) == Envelope(version=2, replaced=True)


def of_the_release_before_reads(fields: dict[bytes, bytes]) -> tuple[object, bytes | None]:
    """What API processes of the release before make of a job: its JSON, and the blob that they put in its place."""
    return json.loads(fields[b"result"]) if b"result" in fields else None, fields.get(b"result_blob")


@pytest.mark.parametrize("blob", [None, "blob"])
def test_a_file_is_told_to_api_processes_of_the_release_before(
    client: Any, keys: Keys, settings: Settings, task: Task, blob: str | None
) -> None:
    """They would put its bytes into the JSON of the job: what they find there says what it is."""
    said = Envelope(version=2, media_type=NPZ_TYPE)
    file = b"PK\x03\x04\xff"
    result = Result(file, envelope=said) if blob is None else Result(blob=blob, blob_bytes=70, envelope=said)
    client.hset(keys.job("job"), "status", "running")
    Endings(client, keys, "w0", settings, Written(client, keys)).succeed(task, result)
    ((_, sent),) = client.xrange(keys.replies("api"))
    told = {"version": 2, "media_type": NPZ_TYPE, "bytes": 5 if blob is None else 70}
    for fields in (sent, client.hgetall(keys.job("job"))):
        assert of_the_release_before_reads(fields) == (told, None)
        reply = read_reply(fields)
        assert (reply.envelope, reply.file, reply.file_blob) == (said, file if blob is None else None, blob)


def test_workers_of_the_release_before_can_read_a_question_that_says_nothing_of_lower_bounds() -> None:
    assert not {"lower", "encoding"} & json.loads(MinCostFlowArgs().to_json()).keys()
    for asked in (MinCostFlowArgs(lower="ignore"), MinCostFlowArgs(lower="ignore", encoding="npz")):
        assert MinCostFlowArgs.model_validate_json(asked.to_json()) == asked


@pytest.mark.parametrize("args", [MaxFlowArgs(), MatchingArgs(), MinCostFlowArgs(), CapacitiesArgs(limit=5)])
def test_workers_of_the_release_before_can_read_a_question_for_json(args: QuestionArgs) -> None:
    """They refuse members that they do not know."""
    assert "encoding" not in json.loads(args.to_json())
    asked = args.model_copy(update={"encoding": "npz"})
    assert type(args).model_validate_json(asked.to_json()) == asked
