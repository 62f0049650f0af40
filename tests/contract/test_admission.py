"""What is over a limit is told at once to come back, and what was let in is not touched."""

from collections.abc import Callable

import pytest

from service.api.admission import Admission
from service.api.budget import ByteBudget
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


class Clock:
    """A lane at work, in a time of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **settings: float) -> None:
        self.now = 100.0
        monkeypatch.setattr("service.api.admission.time.monotonic", lambda: self.now)
        self.admission = Admission(Settings(**settings))
        self.inside: list[Callable[[], None]] = []

    def enter(self, graph: str, *, waits: bool = True) -> bool:
        try:
            self.inside.append(self.admission.enter(graph, None, waits=waits))
        except ServiceError:
            return False
        return True

    def fill(self, graph: str, *, waits: bool = True) -> int:
        """How many there is room for."""
        return sum(1 for _ in iter(lambda: self.enter(graph, waits=waits), False))

    def finish_one(self, seconds: float) -> None:
        self.now += seconds
        self.inside.pop(0)()

    def take(self, graph: str, seconds: float) -> None:
        """A few commands, one at a time, with as long a pause after each."""
        for _ in range(20):
            assert self.enter(graph)
            self.finish_one(seconds)
            self.now += seconds

    def leave(self) -> None:
        while self.inside:
            self.inside.pop()()


@pytest.mark.parametrize(("seconds", "room"), [(0.001, 10), (0.02, 5), (10, 2)])
def test_those_who_wait_find_room_while_the_queue_is_short(
    monkeypatch: pytest.MonkeyPatch, seconds: float, room: int
) -> None:
    """Fast commands may queue up to the limit, slow ones up to a few; jobs always up to the limit."""
    clock = Clock(monkeypatch, graph_queue_limit=10, graph_queue_short=2, queue_target_s=0.1)
    clock.take("a", seconds)
    assert clock.fill("a", waits=False) == 10
    clock.leave()
    clock.take("b", seconds)
    assert clock.fill("b") == room


def test_nobody_knows_how_long_the_first_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Clock(monkeypatch, graph_queue_short=8).fill("new") == 8


def test_a_queue_that_was_full_is_kept_short_until_the_graph_has_been_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, graph_queue_short=8)
    clock.take("a", 0.1)
    assert clock.fill("a") == 8
    for _ in range(80):  # always somebody at the door
        clock.finish_one(0.1)
        clock.fill("a")
        assert len(clock.inside) <= 8
    assert len(clock.inside) == 2
    inside = []
    for _ in range(40):  # after a hundred commands it is tried again
        clock.finish_one(0.1)
        clock.fill("a")
        inside.append(len(clock.inside))
    assert (max(inside), inside[-1]) == (8, 2)
    while clock.inside:
        clock.finish_one(0.1)
    clock.take("a", 0.1)  # busy half of the time
    assert clock.fill("a") == 8


def test_a_graph_with_too_much_work_does_not_crowd_another(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, graph_queue_short=8)
    assert clock.fill("a") == 8
    assert clock.fill("b") == 8


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
