"""A graph's copy in memory answers only while Redis has that very graph, at that very version."""

from typing import Any

import pytest
import redis

from gpu_engine.errors import Cancelled
from gpu_engine.networks.updates import CapacityTable
from service.protocol import CapacitiesArgs, EmptyArgs, Kind, MaxFlowArgs, Operation, PatchArgs, Reply
from service.store.applied import Fenced
from service.store.keys import Keys
from service.store.log import Log
from service.worker.copies import Copies
from service.worker.graphs import NOTES_TOLD
from service.worker.process import Worker
from service.worker.running.task import Forward
from tests.graphs import diamond, drawn
from tests.service_fixtures import Caller, code_of, result

ADD_1 = PatchArgs(batch=[Operation(op="add", edges=[0], amounts=["1"])])
FIRST = int(diamond().edges.capacity[0])


@pytest.fixture
def worker(worker: Worker, caller: Caller) -> Worker:
    """It has solved the graph g."""
    assert caller.value("g") == 5
    return worker


def graph_id(client: Any, keys: Keys) -> str:
    return str(client.hget(keys.names, "g").decode())


@pytest.mark.parametrize("what", ["its name", "its entry"])
def test_a_graph_that_redis_no_longer_has_is_unknown(
    what: str, caller: Caller, worker: Worker, client: Any, keys: Keys
) -> None:
    """As after a power loss that took the load with it; the name still leads to the worker."""
    if what == "its name":
        client.hdel(keys.names, "g")
    else:
        client.delete(keys.graph(graph_id(client, keys)))
    for kind, args in ((Kind.MAX_FLOW, MaxFlowArgs()), (Kind.CAPACITIES, CapacitiesArgs()), (Kind.PATCH, ADD_1)):
        assert code_of(lambda kind=kind, args=args: caller.reply(kind, "g", args)) == "unknown_graph"  # type: ignore[misc]
    assert worker.graphs.residents.get("g") is None


def test_a_copy_from_before_a_takeover_is_read_anew(caller: Caller, worker: Worker, client: Any, keys: Keys) -> None:
    """Another worker had the graph, and what that one wrote is lost: a version may be the same and its content not."""
    copy = worker.graphs.residents.get("g")
    client.hincrby(keys.graph(graph_id(client, keys)), "epoch", 1)
    assert caller.first_capacity("g") == (1, FIRST)
    anew = worker.graphs.residents.get("g")
    assert anew is not None
    assert anew is not copy
    assert anew.epoch == 2


def test_a_graph_in_place_of_the_one_in_memory_is_read_anew(
    caller: Caller, worker: Worker, client: Any, keys: Keys
) -> None:
    """Loaded by another worker, which has lost the name again."""
    caller.load("h", drawn(4, [(0, 1, 1), (0, 2, 1), (1, 2, 1), (1, 3, 1), (2, 3, 1)]))
    client.hset(keys.names, "g", client.hget(keys.names, "h"))
    assert caller.value("g") == 2
    assert caller.first_capacity("g") == (1, 1)


@pytest.mark.parametrize("done", [False, True], ids=["not done", "done"])
@pytest.mark.usefixtures("by_itself")
def test_a_copy_is_given_up_when_nobody_knows_what_became_of_its_commit(
    done: bool, caller: Caller, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the change, and Redis may have it or not; the PATCH is then done exactly once."""
    append, cut = Log.append, []

    def lose(log: Log, *args: Any) -> None:
        if not cut:
            cut.append(args)
            if done:
                append(log, *args)
            raise redis.ConnectionError("cut just now")
        append(log, *args)

    monkeypatch.setattr(Log, "append", lose)
    assert caller.ask(Kind.PATCH, "g", ADD_1)["version"] == 2
    assert cut
    assert caller.first_capacity("g") == (2, FIRST + 1)
    assert caller.value("g") == 5


@pytest.mark.parametrize("error", [Cancelled("just now"), Fenced("others keep writing")], ids=["cancelled", "fenced"])
@pytest.mark.usefixtures("by_itself")
def test_a_copy_is_given_up_when_its_commit_is_refused(
    error: Exception, caller: Caller, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the change by then, and Redis will not have it: at the same version it would be another graph."""
    append, refused = Log.append, []

    def refuse(log: Log, *args: Any) -> None:
        if not refused:
            refused.append(args)
            raise error
        append(log, *args)

    monkeypatch.setattr(Log, "append", refuse)
    done = caller.reply(Kind.PATCH, "g", ADD_1).problem is None
    assert done is isinstance(error, Fenced)  # which is tried again
    assert caller.first_capacity("g") == (1 + done, FIRST + done)


def test_a_copy_of_what_another_worker_owns_is_given_up(worker: Worker, client: Any, keys: Keys) -> None:
    client.hset(keys.owners, "g", "w1")
    with pytest.raises(Forward, match="w1"):
        worker.graphs.restore("g")
    assert worker.graphs.residents.get("g") is None


def test_a_copy_with_half_of_a_change_is_given_up(
    caller: Caller, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine has the new capacities, and an error of ours comes before the table of closed edges has them."""
    close = PatchArgs(batch=[Operation(op="close", edges=[0])])
    with monkeypatch.context() as broken:
        broken.delattr(CapacityTable, "apply")
        assert code_of(lambda: caller.reply(Kind.PATCH, "g", close)) == "engine_error"
    assert caller.first_capacity("g") == (1, FIRST)
    assert caller.value("g") == 5


@pytest.mark.usefixtures("by_itself")
def test_an_answer_lost_in_the_commit_itself_costs_nothing(
    caller: Caller, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection breaks behind EXEC: the outcome of the command tells that it was done, and the copy stays."""
    execute, cut = redis.client.Pipeline.execute, []

    def lose(pipe: Any, *args: Any, **options: Any) -> Any:
        appends = any(command[0][0] == "XADD" and ":log:" in command[0][1] for command in pipe.command_stack)
        answer = execute(pipe, *args, **options)
        if appends and not cut:
            cut.append(answer)
            raise redis.WatchError("a ConnectionError occurred while watching")
        return answer

    monkeypatch.setattr(redis.client.Pipeline, "execute", lose)
    copy = worker.graphs.residents.get("g")
    answer = caller.ask(Kind.PATCH, "g", ADD_1)
    assert cut
    assert (answer["version"], answer["flow_states"][0]["mode"]) == (2, "warm")
    assert worker.graphs.residents.get("g") is copy
    assert caller.first_capacity("g") == (2, FIRST + 1)


@pytest.mark.parametrize("if_match", [1, 3])
def test_a_change_is_for_the_version_it_names(if_match: int, caller: Caller, worker: Worker) -> None:
    caller.ask(Kind.PATCH, "g", ADD_1)
    stale = ADD_1.model_copy(update={"if_match": if_match})
    assert code_of(lambda: caller.reply(Kind.PATCH, "g", stale)) == "version_conflict"
    assert caller.first_capacity("g") == (2, FIRST + 1)
    assert caller.ask(Kind.PATCH, "g", ADD_1.model_copy(update={"if_match": 2}))["version"] == 3


def forget(first: Reply, worker: Worker, client: Any, keys: Keys) -> None:
    """The API forgets the key of a command, and the worker its copy of the graph."""
    client.delete(keys.idempotency("g", "key"), keys.job(first.id))
    worker.graphs.residents.drop("g")


def test_a_key_is_known_from_the_log_alone(caller: Caller, worker: Worker, client: Any, keys: Keys) -> None:
    first = caller.reply(Kind.PATCH, "g", ADD_1, "key", "digest")
    forget(first, worker, client, keys)
    assert result(caller.reply(Kind.PATCH, "g", ADD_1, "key", "digest"))["version"] == 2
    assert caller.first_capacity("g") == (2, FIRST + 1)


def test_a_known_key_is_good_for_one_body(caller: Caller, worker: Worker, client: Any, keys: Keys) -> None:
    """The API has forgotten it, and the worker reads it in the log."""
    first = caller.reply(Kind.PATCH, "g", ADD_1, "key", "digest")
    forget(first, worker, client, keys)
    assert code_of(lambda: caller.reply(Kind.PATCH, "g", ADD_1, "key", "another")) == "idempotency_conflict"
    assert caller.first_capacity("g") == (2, FIRST + 1)


def test_a_log_that_ends_too_early_is_no_graph(caller: Caller, worker: Worker, client: Any, keys: Keys) -> None:
    """Nothing is answered from less than the catalogue says, and nothing is written behind it."""
    for _ in range(2):
        caller.ask(Kind.PATCH, "g", ADD_1)
    client.xdel(keys.log(graph_id(client, keys)), "3-0")
    worker.graphs.residents.drop("g")
    for kind, args in ((Kind.CAPACITIES, CapacitiesArgs()), (Kind.PATCH, ADD_1)):
        assert code_of(lambda kind=kind, args=args: caller.reply(kind, "g", args)) == "worker_unavailable"  # type: ignore[misc]
    assert "the log ends at version 2; the graph is at 3" in worker.graphs.notes[0]


def test_a_heartbeat_tells_of_some_notes_and_how_many_more_there_are(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The report of a worker is written with each heartbeat, and read by all."""
    names = [f"g{i}" for i in range(NOTES_TOLD + 2)]
    monkeypatch.setattr(Copies, "notes", dict.fromkeys(names, "why"))
    assert worker.graphs.notes == [*(f"{name}: why" for name in names[:NOTES_TOLD]), "and 2 more graphs"]
    monkeypatch.setattr(Copies, "notes", dict.fromkeys(names[:NOTES_TOLD], "why"))
    assert worker.graphs.notes == [f"{name}: why" for name in names[:NOTES_TOLD]]


def test_a_key_is_known_from_snapshots_alone(caller: Caller, worker: Worker, client: Any, keys: Keys) -> None:
    """Its entry in the log is trimmed, the API has forgotten it, and the worker reads the graph anew."""
    first = caller.reply(Kind.PATCH, "g", ADD_1, "key", "digest")
    for _ in range(2):
        caller.ask(Kind.PATCH, "g", ADD_1)
        caller.ask(Kind.SNAPSHOT, "g", EmptyArgs())
    assert [entry for entry, _ in client.xrange(keys.log(graph_id(client, keys)))] == [b"4-0"]
    forget(first, worker, client, keys)
    again = result(caller.reply(Kind.PATCH, "g", ADD_1, "key", "digest"))
    assert (again["version"], again["applied"]) == (2, 1)
    assert caller.first_capacity("g") == (4, FIRST + 3)
