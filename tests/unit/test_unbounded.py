"""What was once asked stands in the way of no update: flow states that it leaves without a bound are let go."""

import threading
from typing import Any

import pytest

from service.protocol import CapacitiesArgs, Kind, MaxFlowArgs, Operation, PatchArgs, RestoreArgs
from service.worker.answers import TERMINALS_SHOWN
from service.worker.process import Worker
from tests.graphs import diamond, drawn
from tests.service_fixtures import Caller, StartWorker, code_of
from tests.serving import eventually

EVERYWHERE = [1, 4], ["inf", "inf"]
"""Both edges of the diamond's path 0, 2, 3."""


@pytest.fixture
def worker(caller: Caller, start_worker: StartWorker) -> Worker:
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    return worker


def asked(**more: Any) -> MaxFlowArgs:
    return MaxFlowArgs(**({"sources": [0], "sinks": [3]} | more))


def modes(answer: dict[str, Any]) -> dict[int, str]:
    """By source."""
    return {state["sources"][0]: state["mode"] for state in answer["flow_states"]}


def test_an_update_is_not_refused_for_what_somebody_has_asked(caller: Caller, worker: Worker) -> None:
    caller.ask(Kind.MAX_FLOW, "g", asked())
    caller.ask(Kind.MAX_FLOW, "g", asked(sources=[1]))
    answer = caller.set("g", *EVERYWHERE)
    assert (answer["version"], answer["applied"], modes(answer)) == (2, 2, {0: "unbounded", 1: "cold"})
    gone = answer["flow_states"][0]
    assert (gone["old_value"], gone["value"], gone["certificate"], gone["sinks"]) == (5, None, None, [3])
    assert caller.ask(Kind.CAPACITIES, "g", CapacitiesArgs())["capacity"] == [3, "inf", 1, 2, "inf"]
    assert code_of(lambda: caller.reply(Kind.MAX_FLOW, "g", asked())) == "unbounded"
    assert caller.value("g", sources=[1], sinks=[3]) == 3
    assert modes(caller.set("g", [1], ["2"])) == {1: "cold"}
    assert caller.ask(Kind.MAX_FLOW, "g", asked())["mode"] == "cold"


def test_a_restore_is_not_refused_either(caller: Caller, worker: Worker) -> None:
    caller.set("g", *EVERYWHERE)
    caller.set("g", [1, 4], ["2", "3"])
    assert caller.value("g") == 5
    answer = caller.ask(Kind.RESTORE, "g", RestoreArgs(version=2))
    assert (answer["version"], modes(answer)) == (4, {0: "unbounded"})
    assert caller.ask(Kind.CAPACITIES, "g", CapacitiesArgs())["capacity"] == [3, "inf", 1, 2, "inf"]


def test_a_capped_question_has_a_bound_and_is_kept(caller: Caller, worker: Worker) -> None:
    caller.ask(Kind.MAX_FLOW, "g", asked(supply=["4"]))
    answer = caller.set("g", *EVERYWHERE)
    assert [(state["mode"], state["value"]) for state in answer["flow_states"]] == [("cold", 4)]


def test_a_batch_beyond_the_sums_closes_nothing(caller: Caller, worker: Worker) -> None:
    """It is refused before it is known that it would leave a flow without a bound."""
    caller.ask(Kind.MAX_FLOW, "g", asked())
    beyond = [Operation(op="set", edges=[0, 1, 2, 4], amounts=[str(1 << 59), "inf", str(1 << 59), "inf"])]
    beyond += [Operation(op="set", edges=[3], amounts=["1"])]
    assert code_of(lambda: caller.reply(Kind.PATCH, "g", PatchArgs(batch=beyond))) == "capacity_overflow"
    assert caller.ask(Kind.MAX_FLOW, "g", asked())["mode"] == "unchanged"


def test_one_that_cannot_be_solved_any_more_keeps_no_other_from_coming_back(
    caller: Caller, start_worker: StartWorker, worker: Worker
) -> None:
    """After a restart, where an update that nobody was told of came between."""
    caller.ask(Kind.MAX_FLOW, "g", asked(sources=[1]))
    caller.ask(Kind.MAX_FLOW, "g", asked())
    worker.graphs.look_after()  # as its heartbeat does: the catalogue knows of both
    caller.set("g", *EVERYWHERE)
    worker.stop()
    for thread in threading.enumerate():
        if thread.name == worker.name:
            thread.join()
    later = start_worker()
    eventually(lambda: later.graphs.counters.get("flow_states_reopened") == 1)
    assert caller.ask(Kind.MAX_FLOW, "g", asked(sources=[1]))["mode"] == "unchanged"


def test_the_answer_of_an_update_lists_the_first_of_many_terminals(caller: Caller, worker: Worker) -> None:
    """Sixteen flow states of a million terminals each would make hundreds of megabytes of each PATCH's answer."""
    n = 3 * TERMINALS_SHOWN
    caller.load("star", drawn(n + 1, [(i, n, 1) for i in range(n)]))
    caller.ask(Kind.MAX_FLOW, "star", asked(sources=list(range(n)), sinks=[n]))
    (state,) = caller.set("star", [0], ["0"])["flow_states"]
    assert (state["sources"], state["n_sources"]) == (list(range(TERMINALS_SHOWN)), n)
    assert (state["sinks"], state["n_sinks"], state["value"]) == ([n], 1, n - 1)
