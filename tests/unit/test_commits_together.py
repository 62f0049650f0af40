"""Updates of one graph that wait behind one another share a commit, and each is answered as it would be by itself."""

import threading
from collections.abc import Sequence
from typing import Any

import pytest
import redis

from service.protocol import (
    CapacitiesArgs,
    Kind,
    MaxFlowArgs,
    Operation,
    PairsArgs,
    PatchArgs,
    Reply,
    Status,
    WatchArgs,
)
from service.store.durable import Restarted, Written
from service.store.jobs.outcomes import CANCELLED
from service.store.jobs.reading import Jobs
from service.store.log import Log
from service.worker.committing import UNWRITTEN_S, Updates
from service.worker.graph import Graph
from service.worker.graphs import Graphs
from service.worker.process import Worker
from service.worker.running.endings import Endings
from tests.graphs import diamond
from tests.service_fixtures import PATIENCE_S, Caller, StartWorker, result
from tests.serving import eventually

CHANGES = [([0], ["7"]), ([1], ["1"]), ([4], ["0"]), ([0, 2], ["2", "9"]), ([4], ["5"])]
VALUES = [5, 4, 2, 2, 3]
"""Of the flow after each of them."""


@pytest.fixture
def worker(caller: Caller, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch) -> Worker:
    """With time for all of them, however busy the machine is."""
    monkeypatch.setattr("service.worker.patching.LONGEST_S", PATIENCE_S)
    monkeypatch.setattr("service.worker.running.together.SHORT_S", PATIENCE_S)
    worker = start_worker()
    caller.wait_ready()
    for name in ("g", "h"):
        caller.load(name, diamond().edges)
        caller.ask(Kind.MAX_FLOW, name, MaxFlowArgs(sources=[0], sinks=[3]))
    return worker


def setting(edges: list[int], amounts: list[str], **more: Any) -> PatchArgs:
    return PatchArgs(batch=[Operation(op="set", edges=edges, amounts=amounts)], **more)


def at_once(
    caller: Caller, worker: Worker, patches: Sequence[PatchArgs], keys: Sequence[str | None] = (), digest: str = "d"
) -> list[Reply]:
    """The answers to updates of "g" that all wait in its lane before the first of them is run."""
    gate = threading.Event()

    def wait() -> None:
        gate.wait(PATIENCE_S)

    worker._lanes.put("g", wait)
    padded = [*keys, *[None] * (len(patches) - len(keys))]
    jobs = [caller.submit(Kind.PATCH, "g", args, key, digest) for args, key in zip(patches, padded, strict=True)]
    waiting = {*jobs}
    eventually(lambda: waiting <= {task.command.id for task in [*worker._consumer._tasks.values()]})
    gate.set()
    replies = [caller.run(caller.dispatcher.wait(job, PATIENCE_S)) for job in jobs]
    assert None not in replies
    return [reply for reply in replies if reply is not None]


def shared(worker: Worker) -> int:
    """Commits of several updates so far."""
    return worker.graphs.counters.get("commits_shared", 0)


def said(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer without what differs between two graphs."""
    states = [{name: value for name, value in state.items() if name != "timings_ms"} for state in answer["flow_states"]]
    return {name: answer[name] for name in ("version", "applied", "unchanged")} | {"flow_states": states}


def capacities(caller: Caller, name: str = "g") -> list[Any]:
    found: list[Any] = caller.ask(Kind.CAPACITIES, name, CapacitiesArgs())["capacity"]
    return found


def test_each_is_a_version_with_its_own_flow(caller: Caller, worker: Worker, client: Any) -> None:
    one_by_one = [said(caller.set("h", *change)) for change in CHANGES]
    replies = at_once(caller, worker, [setting(*change) for change in CHANGES])
    assert [said(result(reply)) for reply in replies] == one_by_one
    assert [state["value"] for answer in one_by_one for state in answer["flow_states"]] == VALUES
    eventually(lambda: shared(worker) == 1)  # counted behind the answers
    assert client.xlen(worker._keys.log(worker.graphs.graph_id("g") or "")) == len(CHANGES)
    worker.graphs.residents.drop("g")
    assert capacities(caller) == capacities(caller, "h") == [2, 1, 9, 2, 5]
    assert result(replies[0])["timings_ms"].keys() == {"apply", "log", "solve", "total"}


def test_progress_that_is_written_meanwhile_costs_no_answer_its_flow(
    caller: Caller, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each job that runs is reported from time to time: here, just before the commit, which watches the jobs."""
    queue, appended = Updates.queue, count_calls(monkeypatch, Log, "append")

    def reported(self: Updates, pipe: Any) -> None:
        for task in [*worker._consumer._tasks.values()]:
            worker._consumer._progress.report(task)
        queue(self, pipe)

    monkeypatch.setattr(Updates, "queue", reported)
    replies = at_once(caller, worker, [setting(*change) for change in CHANGES])
    eventually(lambda: shared(worker) == 1)  # counted behind the answers
    assert len(appended) == 1
    assert [state["value"] for reply in replies for state in result(reply)["flow_states"]] == VALUES


def count_calls(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> list[str]:
    """Grows by one with each call of a method from now on."""
    calls, original = list[str](), getattr(owner, name)

    def counted(*args: Any, **more: Any) -> Any:
        calls.append(name)
        return original(*args, **more)

    monkeypatch.setattr(owner, name, counted)
    return calls


def test_a_single_one_is_committed_with_its_answer(
    caller: Caller, worker: Worker, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one MULTI, of which its caller hears once Redis has written it to its file."""
    appended, settled = count_calls(monkeypatch, Log, "append"), count_calls(monkeypatch, Jobs, "settled")
    job = caller.submit(Kind.PATCH, "g", setting(*CHANGES[0]))
    reply = caller.run(caller.dispatcher.wait(job, PATIENCE_S))
    assert reply is not None
    assert result(reply)["version"] == 2
    assert result(reply)["flow_states"][0]["value"] == VALUES[0]
    assert not appended
    assert settled
    assert client.hget(worker._keys.job(job), "unwritten") == b"1"
    assert not client.exists(worker._keys.outcome(job))


def test_who_asks_behind_it_waits_for_the_file_as_well(
    caller: Caller, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer at a version that Redis may still lose is none to give yet."""
    settled = count_calls(monkeypatch, Jobs, "settled")
    caller.value("h", sources=[0], sinks=[3])
    assert not settled
    caller.set("h", *CHANGES[0])
    before = len(settled)
    caller.value("h", sources=[0], sinks=[3])
    assert len(settled) > before
    graph = worker.graphs.residents.get("h")
    assert graph is not None
    graph.unwritten_at -= 2 * UNWRITTEN_S
    before = len(settled)
    caller.value("h", sources=[0], sinks=[3])
    assert len(settled) == before
    worker.graphs.residents.drop("h")  # and whoever reads it back does not know when it was committed
    caller.value("h", sources=[0], sinks=[3])
    assert len(settled) > before


def test_one_that_is_refused_takes_no_other_with_it(caller: Caller, worker: Worker) -> None:
    patches = [setting([0], ["7"]), setting([1], ["1"]), setting([99], ["1"]), setting([4], ["5"])]
    replies = at_once(caller, worker, patches)
    assert [reply.status for reply in replies] == [Status.SUCCEEDED, Status.SUCCEEDED, Status.FAILED, Status.SUCCEEDED]
    assert replies[2].problem is not None
    assert replies[2].problem.code == "unknown_edge"
    assert [result(replies[at])["version"] for at in (0, 1, 3)] == [2, 3, 4]
    eventually(lambda: shared(worker) == 1)  # counted behind the answers


def test_a_version_may_be_asked_for_that_one_before_makes(caller: Caller, worker: Worker) -> None:
    patches = [setting([0], ["7"]), setting([1], ["1"], if_match=[2]), setting([4], ["5"], if_match=[2])]
    replies = at_once(caller, worker, patches)
    assert [result(reply)["version"] for reply in replies[:2]] == [2, 3]
    assert replies[2].problem is not None
    assert replies[2].problem.code == "version_conflict"


def test_what_comes_twice_is_done_once(caller: Caller, worker: Worker) -> None:
    twice = setting([0], ["7"])
    caller.reply(Kind.PATCH, "g", twice, "key", "d")
    patches = [setting([1], ["1"]), setting([4], ["5"]), twice]
    graph = worker.graphs.residents.get("g")
    assert graph is not None
    replies = at_once(caller, worker, patches[:2], ["a", "b"])
    assert [result(reply)["version"] for reply in replies] == [3, 4]
    assert {*graph.known} >= {"key", "a", "b"}
    assert [graph.known[key].version for key in ("key", "a", "b")] == [2, 3, 4]


def test_watches_are_told_of_each_version(caller: Caller, worker: Worker) -> None:
    caller.ask(Kind.WATCH, "g", WatchArgs(watch="w", on=("value",), sources=[0], sinks=[3]))
    replies = at_once(caller, worker, [setting(*change) for change in CHANGES])
    assert [result(reply)["version"] for reply in replies] == [2, 3, 4, 5, 6]
    assert shared(worker) == 0


def waits_of(monkeypatch: pytest.MonkeyPatch, *, lost: bool) -> list[str]:
    """Grows with each wait of a worker for the file. If ``lost``, Redis was started again before the first."""
    wait, waits = Written.wait, list[str]()

    def waited(self: Written, run: str) -> None:
        waits.append(run)
        if lost and len(waits) == 1:
            raise Restarted("it was started again")
        wait(self, run)

    monkeypatch.setattr(Written, "wait", waited)
    return waits


def test_a_question_at_a_version_that_was_lost_is_asked_again(
    caller: Caller, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its job has changed since it was looked at, or the connection broke; and Redis is another run of the server."""
    caller.set("g", *CHANGES[0])
    asked = count_calls(monkeypatch, Graphs, "_run")
    waits = waits_of(monkeypatch, lost=True)
    monkeypatch.setattr(Endings, "_succeed_as_seen", lambda *_: False)
    assert caller.value("g", sources=[0], sinks=[3]) == VALUES[0]
    assert (len(asked), len(waits)) == (2, 2)


@pytest.mark.parametrize("lost", [True, False])
def test_a_long_question_leaves_its_lane_at_a_version_that_stays(
    caller: Caller, worker: Worker, monkeypatch: pytest.MonkeyPatch, lost: bool
) -> None:
    """It may be at work when Redis comes back without the version, and another one has taken its number."""
    caller.set("g", *CHANGES[0])
    asked = count_calls(monkeypatch, Graphs, "_run")
    waits = waits_of(monkeypatch, lost=lost)
    found = caller.ask(Kind.PAIRS, "g", PairsArgs(source=[0], sink=[3], most=1))
    assert [row["value"] for row in found["answers"]] == [VALUES[0]]
    assert (len(asked), len(waits)) == (1 + lost, 1 + lost)
    graph = worker.graphs.residents.get("g")
    assert graph is not None
    graph.unwritten_at -= 2 * UNWRITTEN_S
    caller.ask(Kind.PAIRS, "g", PairsArgs(source=[0], sink=[3], most=1))
    assert len(waits) == 1 + lost


def commits(pipe: Any) -> bool:
    """Whether a pipeline is about to write to the log of a graph."""
    return any(command[0][0] == "XADD" and ":log:" in command[0][1] for command in pipe.command_stack)


@pytest.mark.parametrize("error", [redis.WatchError("the connection was lost"), redis.ResponseError("OOM")], ids=repr)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("count", [1, len(CHANGES)])
def test_a_lost_commit_or_a_lost_answer_to_it_doubles_nothing(
    caller: Caller, worker: Worker, monkeypatch: pytest.MonkeyPatch, when: str, error: Exception, count: int
) -> None:
    execute, lost = redis.client.Pipeline.execute, list[int]()

    def lose(pipe: Any, *args: Any, **more: Any) -> Any:
        if lost or not commits(pipe):
            return execute(pipe, *args, **more)
        lost.append(len(pipe.command_stack))
        if when == "after":
            execute(pipe, *args, **more)
        raise error

    monkeypatch.setattr(redis.client.Pipeline, "execute", lose)
    replies = at_once(caller, worker, [setting(*change) for change in CHANGES[:count]])
    assert lost
    assert [result(reply)["version"] for reply in replies] == [2, 3, 4, 5, 6][:count]
    assert capacities(caller) == ([2, 1, 9, 2, 5] if count > 1 else [7, *capacities(caller, "h")[1:]])
    assert caller.value("g", sources=[0], sinks=[3]) == VALUES[count - 1]


def test_one_that_breaks_off_halfway_changes_nothing(
    caller: Caller, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy in memory has its change, and is at the version before: it is not gone on with."""
    update, calls = Graph.update, list[Graph]()

    def broken(self: Graph, *args: Any) -> list[Any]:
        calls.append(self)
        closed = update(self, *args)
        if len(calls) == 1:
            raise RuntimeError("broken off")
        return closed

    monkeypatch.setattr(Graph, "update", broken)
    more = [PatchArgs(batch=[Operation(op="add", edges=[4], amounts=["1"])]) for _ in range(3)]
    replies = at_once(caller, worker, more)
    assert [result(reply)["version"] for reply in replies] == [2, 3, 4]
    assert capacities(caller)[4] == capacities(caller, "h")[4] + 3
    assert calls[0] is not calls[1]


def test_a_cancel_that_was_accepted_holds(
    caller: Caller, worker: Worker, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes as the second one is in the copy in memory already, and the commit is about to be made."""
    queue, seen = Updates.queue, list[str]()

    def meanwhile(self: Updates, pipe: Any) -> None:
        if not seen:
            seen.extend(self._jobs)
            client.set(worker._keys.outcome(seen[1]), CANCELLED)
        queue(self, pipe)

    monkeypatch.setattr(Updates, "queue", meanwhile)
    replies = at_once(caller, worker, [setting(*change) for change in CHANGES])
    assert [reply.status for reply in replies] == [Status.SUCCEEDED, Status.CANCELLED, *[Status.SUCCEEDED] * 3]
    assert [result(replies[at])["version"] for at in (0, 2, 3, 4)] == [2, 3, 4, 5]
    assert capacities(caller) == [2, 2, 9, 2, 5]
    assert caller.value("g", sources=[0], sinks=[3]) == 4


@pytest.mark.parametrize("what", ["updated_at", "epoch"])
def test_a_graph_that_somebody_else_has_changed_is_looked_at_again(
    caller: Caller, worker: Worker, client: Any, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """It was changed since it was looked at, and as the commit is about to be made."""
    queue, seen = Updates.queue, list[str]()
    appended = count_calls(monkeypatch, Log, "append")
    graph_id = worker.graphs.graph_id("g") or ""

    def meanwhile(self: Updates, pipe: Any) -> None:
        if not seen:
            seen.append(what)
            client.hincrbyfloat(worker._keys.graph(graph_id), what, 1)
        queue(self, pipe)

    monkeypatch.setattr(Updates, "queue", meanwhile)
    assert caller.set("g", *CHANGES[0])["version"] == 2
    assert seen
    assert appended
    assert client.xlen(worker._keys.log(graph_id)) == 1
    assert capacities(caller) == [7, *capacities(caller, "h")[1:]]
