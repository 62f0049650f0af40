"""A worker answers with what is proven for this very version, and with nothing else."""

from collections.abc import Iterable
from typing import Any

import pytest

from gpu_engine.checks.certificate import Certificate
from gpu_engine.control import Control
from gpu_engine.engine import Mode, SolveReport
from gpu_engine.networks.terminals import Terminals
from service.worker.graph import COMPLETE_EVERY, Graph, NotProven

GOOD, WRONG = Certificate(True, 5, 5), Certificate(False, 5, 4, ("an arc is not saturated",))


class Scripted:
    """Plays an engine that claims the value 5 each time, with these certificates."""

    def __init__(self, certificates: Iterable[Certificate], mode: Mode = Mode.WARM) -> None:
        self.certificates = iter(certificates)
        self.mode = mode
        self.colds: list[bool] = []
        self.complete: list[bool] = []

    def open(self, terminals: Terminals) -> Any:
        return object()

    def solve(self, state: Any, control: Control | None = None, *, cold: bool = False) -> SolveReport:
        self.colds.append(cold)
        return SolveReport(self.mode, 5, "scripted")

    def certificate(self, state: Any, *, complete: bool = True) -> Certificate:
        self.complete.append(complete)
        return next(self.certificates)


def graph_on(engine: Any) -> Graph:
    nothing: Any = None
    return Graph("g", "id", 1, 1, nothing, engine, nothing)


@pytest.mark.parametrize("wrong", [WRONG, Certificate(True, 4, 4)], ids=["not valid", "another value"])
def test_what_is_not_proven_is_solved_again_from_zero(wrong: Certificate) -> None:
    engine, failures = Scripted([wrong, GOOD]), []
    graph = graph_on(engine)
    answer = graph.solve(graph.open(Terminals.of([0], [1])), Control(), lambda: failures.append(1))
    assert answer.certificate is GOOD
    assert (engine.colds, engine.complete, len(failures)) == ([False, True], [True, True], 1)


@pytest.mark.parametrize("wrong", [WRONG, Certificate(True, 4, 4)], ids=["not valid", "another value"])
def test_what_is_not_proven_twice_is_no_answer(wrong: Certificate) -> None:
    failures: list[int] = []
    graph = graph_on(Scripted([wrong, wrong]))
    with pytest.raises(NotProven):
        graph.solve(graph.open(Terminals.of([0], [1])), Control(), lambda: failures.append(1))
    assert len(failures) == 2


def test_now_and_then_a_proof_looks_at_everything() -> None:
    """What an engine says that it has changed is not believed for ever."""
    partial = Certificate(True, 5, 5, complete=False)
    engine = Scripted([GOOD, *[partial] * COMPLETE_EVERY, GOOD, partial])
    graph = graph_on(engine)
    solved = graph.open(Terminals.of([0], [1]))
    for _ in range(COMPLETE_EVERY + 3):
        graph.solve(solved, Control(), lambda: None)
    assert engine.complete == [True] + [False] * COMPLETE_EVERY + [True, False]


def test_a_proof_is_for_one_version() -> None:
    """An engine that says that nothing has changed is believed at the version that was proven, and at no other."""
    later = Certificate(True, 5, 5)
    graph = graph_on(Scripted([GOOD, later], Mode.UNCHANGED))
    solved = graph.open(Terminals.of([0], [1]))
    for version, certificate in ((1, GOOD), (1, GOOD), (2, later), (2, later)):
        graph.version = version
        assert graph.solve(solved, Control(), lambda: None).certificate is certificate
        assert solved.proven_at == version
