"""What a worker does with a flow that does not hold."""

import numpy as np
import pytest

from gpu_engine.cpu.engine import CpuEngine
from service.protocol import Kind, MaxFlowArgs
from tests.graphs import diamond
from tests.service_fixtures import Caller, StartWorker, code_of

FLOW = MaxFlowArgs(fields=frozenset({"flow"}))
FALSE = [
    [3, 2, 1, 2, 2],  # one unit is lost at vertex 2
    [4, 1, 1, 3, 2],  # more than edge 0 can carry
    [2, 2, 0, 2, 2],  # a flow, but not of the value
]


@pytest.mark.parametrize("flow", FALSE)
def test_one_that_does_not_hold_is_never_answered(
    caller: Caller, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch, flow: list[int]
) -> None:
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    assert caller.ask(Kind.MAX_FLOW, "g", FLOW)["terminals"] == {
        "sources": [0],
        "supplied": [5],
        "sinks": [3],
        "delivered": [5],
    }
    with monkeypatch.context() as broken:
        broken.setattr(CpuEngine, "flow", lambda *_, **__: np.array(flow))
        assert code_of(lambda: caller.reply(Kind.MAX_FLOW, "g", FLOW)) == "engine_error"
    assert worker.graphs.counters["certificate_failures"] == 1
    answer = caller.ask(Kind.MAX_FLOW, "g", FLOW)
    assert (answer["mode"], answer["flow"]["amount"]) == ("cold", [3, 2, 1, 2, 3])
