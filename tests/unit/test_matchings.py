"""What a worker does with a matching that does not hold."""

import numpy as np
import pytest

from gpu_engine.matching import Matching
from gpu_engine.networks.edgelist import EdgeList
from service.protocol import Kind, MatchingArgs
from service.worker.questions import matchings
from tests.service_fixtures import Caller, StartWorker, code_of

EDGES = EdgeList(4, np.array([0, 0, 1], np.int32), np.array([2, 3, 2], np.int32), np.ones(3, np.int64))
COVER = np.array([True, False, False, False]), np.array([False, False, True, False])
FALSE = [
    Matching(np.array([1]), *COVER),  # too small for its cover
    Matching(np.array([0, 2]), *COVER),  # vertex 2 twice
    Matching(np.array([2]), np.zeros(4, bool), COVER[1]),  # edge 1 is not covered
    Matching(np.empty(0, np.int64), np.zeros(4, bool), np.zeros(4, bool)),
]


@pytest.mark.parametrize("found", FALSE)
def test_one_that_does_not_hold_is_never_answered(
    caller: Caller, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch, found: Matching
) -> None:
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", EDGES)
    assert caller.ask(Kind.MATCHING, "g", MatchingArgs())["size"] == 2
    with monkeypatch.context() as broken:
        broken.setattr(matchings, "read_matching", lambda *_: found)
        assert code_of(lambda: caller.reply(Kind.MATCHING, "g", MatchingArgs())) == "engine_error"
    assert worker.graphs.counters["certificate_failures"] == 1
    answer = caller.ask(Kind.MATCHING, "g", MatchingArgs())
    assert (answer["size"], answer["mode"], answer["matching"]["edges"]) == (2, "cold", [1, 2])
