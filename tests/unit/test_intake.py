"""What another worker hears of a graph that it is about to hand over."""

from types import SimpleNamespace
from typing import Any

import pytest

from gpu_engine.errors import OutOfMemory
from service.worker.membership.intake import Intake


@pytest.mark.parametrize("fault", [None, OutOfMemory("full"), RuntimeError("a device fell off the bus")])
def test_whoever_waits_for_a_graph_to_be_read_is_answered(fault: Exception | None) -> None:
    """Also where it cannot be read, for whatever reason: otherwise the graph answers nobody until the wait is over."""
    answers: list[tuple[str, str]] = []

    def read_ahead(name: str) -> int:
        assert name == "g"
        if fault is not None:
            raise fault
        return 2

    graphs: Any = SimpleNamespace(read_ahead=read_ahead)
    handover: Any = SimpleNamespace(answer=lambda reply, states: answers.append((reply, states)))
    restores: Any = SimpleNamespace()
    intake = Intake(graphs, handover, restores, lambda name, work, expected_s: work(), lambda: None, threads=1)
    intake.prepare("g", "reply-1")
    assert answers == [("reply-1", "0" if fault else "2")]
