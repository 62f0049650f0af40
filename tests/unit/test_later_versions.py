"""Commands that a worker cannot read, since an API process of a later version wrote them, end: somebody waits."""

import asyncio
import json
import time
from typing import Any

import pyarrow as pa
import pytest

from gpu_engine.formats import pack
from service.protocol import CapacitiesArgs, Command, EdgesOperation, Kind, LoadArgs, Status
from service.store.blobs import Blobs
from service.store.jobs.transitions import GROUP
from service.store.keys import Keys
from service.worker.membership.takeover import Takeover
from service.worker.process import Worker
from service.worker.running.task import UNREADABLE, parse_command, parse_remains
from tests.graphs import diamond
from tests.service_fixtures import Caller
from tests.serving import eventually

PAGE = CapacitiesArgs()
PATIENCE_S = 20


def write_later(monkeypatch: pytest.MonkeyPatch, **members: object) -> None:
    """From now on commands are written with these members, of which today's workers know nothing."""
    to_json = Command.to_json
    monkeypatch.setattr(Command, "to_json", lambda self: json.dumps(json.loads(to_json(self)) | members).encode())


def ended(caller: Caller, job_id: str) -> tuple[Status, str]:
    reply = caller.run(caller.dispatcher.wait(job_id, PATIENCE_S))
    assert reply is not None, "the caller still waits"
    assert reply.problem is not None
    return reply.status, reply.problem.code


@pytest.mark.parametrize("members", [{"priority": 1}, {"kind": "clone"}, {"args": [1]}, {"created_at": "now"}])
def test_a_command_that_cannot_be_read_fails(
    caller: Caller,
    worker: Worker,
    client: Any,
    keys: Keys,
    monkeypatch: pytest.MonkeyPatch,
    members: dict[str, object],
) -> None:
    """Its caller is told, and counts no more among those who wait."""
    left: list[str] = []

    async def asked() -> tuple[str, Status]:
        job_id = await caller.dispatcher.submit(Kind.CAPACITIES, "g", PAGE)
        caller.dispatcher.when_done(job_id, lambda: left.append(job_id))
        reply = await caller.dispatcher.wait(job_id, PATIENCE_S)
        assert reply is not None, "the caller still waits"
        assert reply.problem is not None
        assert reply.problem.code == "internal_error"
        await asyncio.sleep(0)
        return job_id, reply.status

    with monkeypatch.context() as later:
        write_later(later, **members)
        job_id, status = caller.run(asked())
    assert status is Status.FAILED
    assert left == [job_id]
    assert client.hget(keys.job(job_id), "status") == b"failed"
    assert 0 < client.ttl(keys.job(job_id)) <= 3600
    assert client.xlen(keys.commands("w0")) == client.zcard(keys.waiting("w0")) == 0
    assert caller.ask(Kind.CAPACITIES, "g", PAGE)["version"] == 1


def test_a_question_in_a_form_that_is_not_known_fails(
    caller: Caller, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a question for npz does with a worker of the release before: its caller is told, and may ask it again."""
    with monkeypatch.context() as later:
        write_later(later, args={"offset": 0, "limit": 5, "encoding": "parquet"})
        job_id = caller.submit(Kind.CAPACITIES, "g", PAGE, key="form", digest="digest")
        assert ended(caller, job_id) == (Status.FAILED, "internal_error")
        reply = caller.run(caller.dispatcher.wait(job_id, PATIENCE_S))
        assert reply is not None
        assert reply.problem is not None
        assert reply.problem.detail == UNREADABLE
    assert caller.reply(Kind.CAPACITIES, "g", PAGE, key="form", digest="digest").status is Status.SUCCEEDED


def test_its_key_may_be_used_again(caller: Caller, worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a worker that can read it, what is sent again is done."""
    with monkeypatch.context() as later:
        write_later(later, priority=1)
        job_id = caller.submit(Kind.CAPACITIES, "g", PAGE, key="key", digest="digest")
        assert ended(caller, job_id) == (Status.FAILED, "internal_error")
    assert caller.reply(Kind.CAPACITIES, "g", PAGE, key="key", digest="digest").status is Status.SUCCEEDED


def test_a_load_that_cannot_be_read_gives_the_name_back(
    caller: Caller, worker: Worker, client: Any, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_later(monkeypatch, priority=1)
    assert ended(caller, caller.submit(Kind.LOAD, "new", LoadArgs(blob="b"))) == (Status.FAILED, "internal_error")
    assert client.hget(keys.owners, "new") is None


def test_who_cannot_be_told_is_only_logged(caller: Caller, worker: Worker, client: Any, keys: Keys) -> None:
    for fields in ({"command": "{"}, {"command": "[1]"}, {"command": '{"id": 1}'}, {"other": "x"}):
        client.xadd(keys.commands("w0"), fields)
    eventually(lambda: client.xlen(keys.commands("w0")) == 0)
    assert caller.ask(Kind.CAPACITIES, "g", PAGE)["version"] == 1


def test_without_a_place_for_the_reply_the_job_ends_all_the_same(
    caller: Caller, worker: Worker, client: Any, keys: Keys
) -> None:
    client.hset(keys.job("job"), mapping={"status": "queued", "worker": "w0"})
    client.xadd(keys.commands("w0"), {"command": '{"id":"job","reply_to":7}'})
    eventually(lambda: client.hget(keys.job("job"), "status") == b"failed")
    assert b'"internal_error"' in client.hget(keys.job("job"), "reply")
    assert not client.exists(keys.replies(""))


def test_control_messages_of_later_versions_are_passed_over(
    caller: Caller, worker: Worker, client: Any, keys: Keys
) -> None:
    """The thread that reads them goes on: what comes behind is heard."""
    heard: list[str] = []
    worker._consumer._control._on_restore = lambda graph, reply: heard.append(graph)
    client.xadd(keys.control("w0"), {"pause": "g"})
    client.xadd(keys.control("w0"), {"restore": "g"})
    eventually(lambda: heard == ["g"])


def test_a_takeover_keeps_what_it_cannot_read(client: Any, keys: Keys) -> None:
    """Whoever takes over an older or a later worker's commands has the end of each to see to."""
    written = json.dumps({"id": "job", "kind": "clone", "graph": "g", "created_at": time.time(), "reply_to": "api"})
    client.hset(keys.job("job"), mapping={"status": "queued", "worker": "old"})
    client.xgroup_create(keys.commands("old"), GROUP, id="0", mkstream=True)
    client.xadd(keys.commands("old"), {"command": written})
    client.xadd(keys.commands("old"), {"command": "{"})
    takeover = Takeover(client, keys, "w0", lease_s=2)
    takeover._take_from("old")
    assert [fields for _, fields in client.xrange(keys.commands("w0"))] == [{b"command": written.encode()}]
    assert client.xlen(keys.commands("old")) == 0
    assert client.zrange(keys.waiting("w0"), 0, -1) == [b"job"]


def later_edges() -> bytes:
    """A graph with a column of which today's workers know nothing."""
    with pa.ipc.open_stream(pack(diamond().edges)) as stream:
        edges = stream.read_all()
    later, sink = edges.append_column("toll", pa.array([1] * len(edges))), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, later.schema) as writer:
        writer.write_table(later)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def test_a_load_with_more_than_is_known_is_refused_as_no_fault_of_its_caller(caller: Caller, worker: Worker) -> None:
    args = LoadArgs(blob=caller.run(caller.dispatcher.blobs.put(later_edges())))
    reply = caller.reply(Kind.LOAD, "new", args)
    assert reply.problem is not None
    assert reply.problem.code == "internal_error"
    assert reply.problem.detail == f"{UNREADABLE}: there is no column 'toll'"


def test_a_graph_that_a_later_version_has_loaded_is_not_to_be_had(
    caller: Caller, worker: Worker, client: Any, keys: Keys
) -> None:
    """Nothing of it is changed, so that the later version has it as it was; what is asked of it is at fault in
    nothing."""
    graph = keys.graph(worker.graphs.graph_id("g") or "")
    base = client.hget(graph, "base")
    client.hset(graph, "base", Blobs(client, keys).put(later_edges(), ttl_s=3600))
    worker.graphs.residents.drop("g")
    reply = caller.reply(Kind.CAPACITIES, "g", PAGE)
    assert reply.problem is not None
    assert reply.problem.code == "worker_unavailable"
    assert "the edges as loaded cannot be read" in reply.problem.detail
    client.hset(graph, "base", base)
    assert caller.ask(Kind.CAPACITIES, "g", PAGE)["version"] == 1


def test_members_that_came_later_are_written_where_they_say_something() -> None:
    """A worker of the release before reads a batch on the structure that it can run, and refuses any other."""
    names = "op vertices count edge_ids edges tail head capacity cost undirected packed"
    before = dict.fromkeys(names.split())
    deletion = EdgesOperation(op="delete", edges=["a"])
    assert json.loads(deletion.to_json()) == before | {"op": "delete", "edges": ["a"]}
    insertion = EdgesOperation(op="insert", vertices=["v"], vertex_capacity=["3"], x=[0.5], y=[1.5])
    said = {"op": "insert", "vertices": ["v"], "vertex_capacity": ["3"], "x": [0.5], "y": [1.5]}
    assert json.loads(insertion.to_json()) == before | said


def test_what_is_made_out_of_a_command() -> None:
    command = {"id": "job", "kind": "patch", "graph": "g", "reply_to": "api", "idempotency_key": "k", "created_at": 5.0}
    fields = {b"command": json.dumps(command | {"later": 1}).encode()}
    assert parse_command(fields) is None
    assert parse_remains(fields) == Command.model_validate(command)
    deep = {b"command": b'{"id":' + 100_000 * b"["}
    assert parse_remains(deep) is None
    assert parse_remains({b"command": b"\xff"}) is None
    assert parse_remains(None) is None
