"""Back to an earlier version: what is kept leads there, as a new version, or it is refused and nothing changes."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from service.protocol import EmptyArgs, Kind, Operation, PatchArgs, Reply, RestoreArgs
from service.store.keys import Keys
from service.store.listed import read_listed
from service.worker.process import Worker
from tests.graphs import diamond
from tests.service_fixtures import Caller, StartWorker, code_of


@pytest.fixture
def worker(caller: Caller, start_worker: StartWorker) -> Worker:
    worker = start_worker(max_patch_rows=4)
    caller.wait_ready()
    return worker


def columns(caller: Caller) -> tuple[list[Any], list[bool]]:
    now = caller.page("g")
    return now["capacity"], now["closed"]


def restore(caller: Caller, version: int, **more: Any) -> dict[str, Any]:
    return caller.ask(Kind.RESTORE, "g", RestoreArgs(version=version, **more))


def attempt(caller: Caller, version: int, **more: Any) -> Reply:
    return caller.reply(Kind.RESTORE, "g", RestoreArgs(version=version, **more))


def change(caller: Caller, op: Any, edge: int, amount: str | None = None) -> None:
    amounts = None if amount is None else [amount]
    caller.ask(Kind.PATCH, "g", PatchArgs(batch=[Operation(op=op, edges=[edge], amounts=amounts)]))


def history(caller: Caller, snapshots: Collection[int] = ()) -> dict[int, tuple[list[Any], list[bool]]]:
    """Six versions: set, close, reopen of an edge that is closed as loaded, set, close; capacities and closed edges."""
    caller.load("g", replace(diamond().edges, closed=np.array([False, False, False, False, True])))
    known = {1: columns(caller)}
    steps = (("set", 0, "7"), ("close", 0, None), ("reopen", 4, None), ("set", 0, "inf"), ("close", 1, None))
    for version in range(1, 7):
        if version > 1:
            change(caller, *steps[version - 2])
            known[version] = columns(caller)
        if version in snapshots:
            caller.ask(Kind.SNAPSHOT, "g", EmptyArgs())
    assert len({str(at) for at in known.values()}) == 6
    return known


@pytest.mark.parametrize("snapshots", [[], [3], [1, 4], [6]], ids=str)
def test_every_version_that_is_kept(worker: Worker, caller: Caller, snapshots: list[int]) -> None:
    """With the edges as loaded and the log, with a snapshot before or behind; and after a restart it is still so."""
    known = history(caller, snapshots)
    for at, version in enumerate((3, 1, 6, 2, 5, 4), 7):
        answer = restore(caller, version)
        assert (answer["version"], columns(caller)) == (at, known[version])
        assert answer["applied"] + answer["unchanged"] == 5
        worker.graphs.residents.drop("g")
        assert columns(caller) == known[version], "the log has it"


def test_flows_follow(worker: Worker, caller: Caller) -> None:
    caller.load("g", diamond().edges)
    assert caller.value("g") == 5
    change(caller, "close", 0)
    assert caller.value("g") == 2
    (state,) = restore(caller, 1)["flow_states"]
    assert (state["old_value"], state["value"], state["certificate"]["valid"]) == (2, 5, True)
    assert restore(caller, 2, solve="none")["flow_states"] == []
    assert caller.value("g") == 2


def test_what_is_not_kept_is_refused(worker: Worker, caller: Caller) -> None:
    history(caller)
    for version in (7, 0, -1, 1 << 59):
        never = attempt(caller, version).problem
        assert never is not None
        assert (never.code, never.detail) == (
            "version_unavailable",
            f"the graph has no version {version}: its versions are 1 to 6",
        )
    caller.ask(Kind.SNAPSHOT, "g", EmptyArgs())
    change(caller, "set", 0, "1")
    caller.ask(Kind.SNAPSHOT, "g", EmptyArgs())  # the log before the older one is gone
    reply = attempt(caller, 3)
    assert reply.problem is not None
    assert (reply.problem.code, "begins at version 6" in reply.problem.detail) == ("version_unavailable", True)
    assert caller.page("g")["version"] == 7
    assert restore(caller, 6)["version"] == 8


def test_a_broken_snapshot_is_passed_by(worker: Worker, caller: Caller, client: Any, keys: Keys) -> None:
    known = history(caller)
    caller.ask(Kind.SNAPSHOT, "g", EmptyArgs())
    graph_id = client.hget(keys.names, "g").decode()
    key = keys.snapshots(graph_id)
    (snapshot,) = read_listed(client.get(key), key)
    client.hset(keys.blob(snapshot.blob), "0", b"nonsense")
    assert restore(caller, 6)["applied"] == 0
    assert columns(caller) == known[6]


def test_bounds_and_conditions(worker: Worker, caller: Caller) -> None:
    caller.load("g", diamond().edges)
    for edge in range(5):
        caller.set("g", [edge], ["9"])
    assert code_of(lambda: attempt(caller, 1)) == "too_large", "five edges differ, and four may"
    assert code_of(lambda: attempt(caller, 3, if_match=5)) == "version_conflict"
    assert caller.page("g")["version"] == 6
    assert restore(caller, 3, if_match=6)["version"] == 7


def test_once_for_each_key(worker: Worker, caller: Caller) -> None:
    caller.load("g", diamond().edges)
    caller.set("g", [0], ["9"])
    first = caller.reply(Kind.RESTORE, "g", RestoreArgs(version=1), key="k", digest="d")
    again = caller.reply(Kind.RESTORE, "g", RestoreArgs(version=1), key="k", digest="d")
    assert first.result_json == again.result_json
    assert caller.page("g")["version"] == 3
