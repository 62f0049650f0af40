"""What is over a limit is told at once to come back, and what was let in is not touched."""

import pytest

from service.api.admission import Admission
from service.api.bodies import ByteBudget
from service.errors import ServiceError
from service.protocol import Status
from service.settings import Settings
from tests.contract.fakes import Api
from tests.contract.test_codes import check_problem

SMALL = Settings(graph_queue_limit=3, key_queue_limit=2, max_event_streams=1)


def refused(admission: Admission, graph: str, key_id: str | None) -> bool:
    try:
        admission.enter(graph, key_id)()
    except ServiceError as error:
        return (error.code, error.retry_after_s) == ("rate_limited", 1)
    return False


def test_a_graph_at_its_limit_leaves_room_for_others() -> None:
    admission = Admission(SMALL)
    leave = [admission.enter("a", None) for _ in range(3)]
    assert refused(admission, "a", None)
    assert not refused(admission, "b", None)
    leave[1]()
    assert not refused(admission, "a", None)


def test_those_who_wait_are_let_in_while_the_queue_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fast commands may queue up to the limit, slow ones up to a few; jobs always up to the limit."""
    clock = [0.0]
    monkeypatch.setattr("service.api.admission.time.monotonic", lambda: clock[0])
    admission = Admission(Settings(graph_queue_limit=10, graph_queue_short=2, queue_target_s=0.1))

    def room(graph: str, *, waits: bool) -> int:
        leave = []
        try:
            while True:
                leave.append(admission.enter(graph, None, waits=waits))
        except ServiceError:
            return len(leave)
        finally:
            for act in leave:
                act()

    def take(graph: str, seconds: float) -> None:
        for _ in range(50):
            leave = admission.enter(graph, None)
            clock[0] += seconds
            leave()

    take("fast", 0.001)
    take("middling", 0.02)
    take("slow", 10)
    assert [room(graph, waits=False) for graph in ("fast", "middling", "slow", "new")] == [10, 10, 10, 10]
    assert [room(graph, waits=True) for graph in ("fast", "new")] == [10, 10]
    take("middling", 0.02)
    take("slow", 10)
    assert [room(graph, waits=True) for graph in ("middling", "slow")] == [5, 2]


def test_a_key_at_its_limit_leaves_room_for_others() -> None:
    admission = Admission(SMALL)
    leave = [admission.enter(graph, "k1") for graph in "ab"]
    assert refused(admission, "c", "k1")
    assert not refused(admission, "a", "k2")
    leave[0]()
    assert not refused(admission, "c", "k1")


def test_event_streams_are_counted() -> None:
    admission = Admission(SMALL)
    with admission.stream(), pytest.raises(ServiceError), admission.stream():
        pass
    with admission.stream():
        pass


def test_a_full_graph_is_429_with_retry_after_and_has_room_once_its_jobs_end(api: Api) -> None:
    api.fakes.dispatcher.answer = lambda _: Status.RUNNING
    patient = {"Prefer": "respond-async"}
    limit = Settings().graph_queue_limit
    for _ in range(limit):
        assert api.http.post("/v1/graphs/city/max-flow", headers=patient).status_code == 202
    response = api.http.post("/v1/graphs/city/max-flow", headers=patient)
    check_problem(response, "rate_limited")
    assert response.headers["retry-after"] == "1"
    assert api.http.post("/v1/graphs/town/max-flow", headers=patient).status_code == 202
    for act in api.fakes.dispatcher.unfinished:
        act()
    assert api.http.post("/v1/graphs/city/max-flow", headers=patient).status_code == 202
    for act in api.fakes.dispatcher.unfinished[limit + 1 :]:
        act()


def test_bodies_in_flight_are_counted() -> None:
    budget = ByteBudget(10)
    budget.take(8)
    with pytest.raises(ServiceError) as refusal:
        budget.take(3)
    assert refusal.value.code == "rate_limited"
    budget.give_back(8)
    budget.take(10)
