"""Rows of values as they are written, where a pair fails, and where memory is short."""

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gpu_engine.control import Control
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.errors import Cancelled, EngineError
from gpu_engine.generators import generate
from gpu_engine.networks.network import Network
from gpu_engine.pairs.solver import seat_nbytes, solver_nbytes
from gpu_engine.types import INFINITE, UnitArray, VertexArray
from service.protocol import Kind, PairsArgs
from service.worker.questions.listed_pairs import ListedPairs
from service.worker.questions.pairs import ROW_BYTES, Values
from service.worker.running.rows import BLOCK_ROWS
from tests.graphs import diamond
from tests.service_fixtures import Caller, StartWorker

LISTED = ListedPairs(
    np.array([0, 1, 2, -1, 3], np.int32), np.array([1, 2, 3, 1, 0], np.int32), ([0, 1, 2, 9, 3], [1, 2, 3, 1, 0])
)


def written(values: Any) -> list[dict[str, Any]]:
    made = Values(Network(diamond().edges), LISTED, SimpleNamespace(values=values), False)  # type: ignore[arg-type]  # a stub
    return [json.loads(piece) for piece in made(range(5), Control())]


def test_a_pair_that_cannot_be_proven_is_told_and_the_others_are_answered() -> None:
    asked: list[list[int]] = []

    def values(sources: VertexArray, sinks: VertexArray, control: Control) -> UnitArray:
        asked.append(sources.tolist())
        if 1 in sources:
            raise EngineError("a pair could not be proven")
        return np.where(sources == 3, INFINITE, 7 + sources.astype(np.int64))

    rows = written(values)
    assert [(row["row"], row["source"], row["sink"]) for row in rows] == [
        (0, 0, 1),
        (1, 1, 2),
        (2, 2, 3),
        (3, 9, 1),
        (4, 3, 0),
    ]
    assert [row.get("value") for row in rows] == [7, None, 9, None, None]
    codes = [row.get("error", {}).get("code") for row in rows]
    assert codes == [None, "internal_error", None, "unknown_vertex", "unbounded"]
    assert asked == [[0, 1, 2, 3], [0], [1], [2], [3]]


def test_a_cancel_is_no_row() -> None:
    def values(sources: VertexArray, sinks: VertexArray, control: Control) -> UnitArray:
        raise Cancelled("cancelled")

    with pytest.raises(Cancelled):
        written(values)


def test_fewer_work_where_there_is_memory_for_fewer(
    caller: Caller, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    worker = start_worker(open_engine=CpuEngine)
    caller.wait_ready()
    edges = generate("genrmf-wide", seed=1, a=4)
    network, count = Network(edges), 2 * BLOCK_ROWS
    caller.load("g", edges)
    asked = PairsArgs(source=[0] * count, sink=[9] * count, most=count)
    residents = worker.graphs.residents
    one = network.nbytes + solver_nbytes(network) + seat_nbytes(network) + ROW_BYTES * count
    budget, answers = residents.budget, []
    for host in (budget.host, residents.held.host + one + seat_nbytes(network) // 2):
        residents.resize(replace(budget, host=host))
        answers.append([row["value"] for row in caller.ask(Kind.PAIRS, "g", asked)["answers"]])
    assert answers[0] == answers[1]
    residents.resize(replace(budget, host=residents.held.host + one - 1))
    reply = caller.reply(Kind.PAIRS, "g", asked)
    assert reply.problem is not None
    assert reply.problem.code == "out_of_memory"
