"""What is over a limit is told at once to come back, and what was let in is not touched."""

import asyncio
import traceback
from functools import partial
from typing import Any

import pytest

from service.api.bodies.budget import ByteBudget
from service.api.guards.admission import BUSY, Admission, Ticket
from service.api.guards.shares import QUEUED_BYTES, QueuedBytes
from service.api.guards.shields import Shedding
from service.errors import ServiceError
from service.protocol import Status
from service.settings import Settings
from tests.contract.fakes import Api
from tests.contract.test_codes import check_problem

SMALL = Settings(graph_queue_limit=3, key_queue_limit=2, max_event_streams=1)


def refused(admission: Admission, graph: str, key_id: str | None) -> bool:
    try:
        admission.enter(graph, key_id).leave()
    except ServiceError as error:
        return error.code == "rate_limited" and error.retry_after_s in (1, 2)
    return False


def test_a_graph_at_its_limit_leaves_room_for_others() -> None:
    admission = Admission(SMALL)
    tickets = [admission.enter("a", None) for _ in range(3)]
    assert refused(admission, "a", None)
    assert not refused(admission, "b", None)
    tickets[1].leave()
    assert not refused(admission, "a", None)


async def nothing(*_: Any) -> Any: ...


def test_one_key_cannot_have_all_requests() -> None:
    """By waiting for a job, say: it may have half of them, so that others get in."""
    waiting = asyncio.Event()
    answers: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await waiting.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def ask(key_id: str | None) -> int:
        headers = [] if key_id is None else [(b"x-api-key", f"hr_{key_id}_{43 * 'x'}".encode())]
        status: list[int] = []

        async def send(message: Any) -> None:
            status.extend([message["status"]] if "status" in message else [])

        scope = {"type": "http", "path": "/v1/jobs/x", "method": "GET", "headers": headers, "state": {}}
        await shedding(scope, nothing, send)
        answers.extend(status)
        return status[0]

    async def main() -> None:
        async with asyncio.timeout(20):
            await all_of_it()

    async def all_of_it() -> None:
        one, other = 12 * "1", 12 * "2"
        open_now = [asyncio.create_task(ask(one)) for _ in range(3)]
        await asyncio.sleep(0.01)
        assert answers == []
        assert await ask(one) == 429
        open_now += [asyncio.create_task(ask(key)) for key in (other, other, None)]
        await asyncio.sleep(0.01)
        assert answers == [429]
        assert await ask(None) == 429
        waiting.set()
        assert await asyncio.gather(*open_now) == 6 * [200]
        assert await ask(one) == 200

    shedding = Shedding(app, limit=6)
    asyncio.run(main())


def test_requests_that_come_together_begin_one_after_the_other() -> None:
    """Each time the event loop turns, one; so the probes need not wait for all of them."""
    begun: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        begun.append(scope["path"])

    async def main() -> None:
        async def ask(path: str) -> None:
            await shedding({"type": "http", "path": path, "headers": []}, nothing, nothing)

        asked = [asyncio.create_task(ask(path)) for path in [*map(str, range(10)), "/livez"]]
        await asyncio.sleep(0)
        assert begun == ["0", "/livez"]
        for _ in range(20):
            before = len(begun)
            await asyncio.sleep(0)
            assert len(begun) <= before + 1
        asked[3].cancel()
        await asyncio.gather(*asked, return_exceptions=True)

    shedding = Shedding(app, limit=20)
    asyncio.run(main())
    assert begun == ["0", "/livez", *map(str, range(1, 10))]


def test_one_key_cannot_have_all_event_streams() -> None:
    admission = Admission(Settings(max_event_streams=4))
    with admission.stream("a"), admission.stream("a"):
        with pytest.raises(ServiceError, match="of this API key"), admission.stream("a"):
            pass
        full = pytest.raises(ServiceError, match="4 event streams")
        with admission.stream("b"), admission.stream(None), full, admission.stream("b"):
            pass
    with admission.stream("a"):
        pass


class Clock:
    """A lane at work, in a time of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **settings: float) -> None:
        self.now = 100.0
        monkeypatch.setattr("service.api.guards.admission.time.monotonic", lambda: self.now)
        self.admission = Admission(Settings(**settings))
        self.inside: list[Ticket] = []

    def enter(self, graph: str, *, waits: bool = True) -> bool:
        try:
            self.inside.append(self.admission.enter(graph, None, waits=waits))
        except ServiceError:
            self.look()
            return False
        return True

    def fill(self, graph: str, *, waits: bool = True) -> int:
        """How many there is room for, before the line is cut."""
        return sum(1 for _ in iter(lambda: self.enter(graph, waits=waits), False))

    def finish_one(self, seconds: float) -> None:
        """Of those at the worker, the first; those who were cut off go."""
        self.now += seconds
        self._leave(next(ticket for ticket in self.inside if ticket.turn_at is not None))
        self.look()

    def _leave(self, ticket: Ticket) -> None:
        self.inside.remove(ticket)
        ticket.leave()

    def look(self) -> None:
        for ticket in [ticket for ticket in self.inside if ticket.refusal is not None]:
            self._leave(ticket)

    def take(self, graph: str, seconds: float) -> None:
        """A few commands, one at a time, with as long a pause after each."""
        for _ in range(20):
            assert self.enter(graph)
            self.finish_one(seconds)
            self.now += seconds

    def leave(self) -> None:
        while self.inside:
            self._leave(self.inside[-1])


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
    assert Clock(monkeypatch).fill("new") == Settings().graph_queue_limit


def test_a_line_that_was_full_is_cut_and_kept_short_until_the_graph_has_been_idle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch, graph_queue_short=20)
    clock.take("a", 0.1)
    assert clock.fill("a") == 20
    assert len(clock.inside) == BUSY
    for _ in range(80):  # always somebody at the door
        clock.finish_one(0.1)
        clock.fill("a")
        assert len(clock.inside) == BUSY
    let_in = []
    for _ in range(40):  # after a hundred commands it is tried again
        clock.finish_one(0.1)
        let_in.append(clock.fill("a"))
        assert len(clock.inside) == BUSY
    assert max(let_in) == 17
    while clock.inside:
        clock.finish_one(0.1)
    clock.take("a", 0.1)  # busy half of the time
    assert clock.fill("a") == 20


def test_jobs_are_not_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, graph_queue_limit=10, graph_queue_short=2, queue_target_s=0.0)
    clock.take("a", 1.0)
    assert clock.fill("a", waits=False) == 10
    assert clock.fill("a") == 0
    assert len(clock.inside) == 10
    assert all(ticket.turn_at is not None for ticket in clock.inside)


def test_who_waits_for_its_turn_gets_it_in_order_or_goes_when_patience_ends() -> None:
    async def stand() -> None:
        admission = Admission(Settings())
        tickets = [admission.enter("a", None) for _ in range(BUSY + 3)]
        assert [ticket.turn_at is None for ticket in tickets] == [False] * BUSY + [True] * 3
        turns = [asyncio.create_task(ticket.turn(30)) for ticket in tickets[:-1]]
        await tickets[-1].turn(0.01)  # its caller gets a 202 now, and the command is sent all the same
        assert tickets[-1].turn_at is not None
        tickets[0].leave()
        tickets[1].leave()
        await asyncio.sleep(0)
        assert [turn.done() for turn in turns[BUSY:]] == [True, False]
        turns[-1].cancel()
        with pytest.raises(asyncio.CancelledError):
            await turns[-1]
        for ticket in tickets[2:]:
            ticket.leave()
        assert admission.enter("a", None).lane.unfinished == 1

    asyncio.run(stand())


def test_who_stands_in_a_line_that_is_cut_is_told_to_come_back() -> None:
    async def stand() -> None:
        admission = Admission(Settings(graph_queue_limit=10))
        tickets = [admission.enter("a", None) for _ in range(10)]
        turns = [asyncio.create_task(ticket.turn(30)) for ticket in tickets]
        await asyncio.sleep(0)
        with pytest.raises(ServiceError):
            admission.enter("a", None)
        outcomes = await asyncio.gather(*turns, return_exceptions=True)
        assert outcomes[:BUSY] == [0.0] * BUSY
        assert [isinstance(outcome, ServiceError) for outcome in outcomes[BUSY:]] == [True] * (10 - BUSY)
        for ticket in tickets:
            ticket.leave()
        assert admission.enter("a", None).lane.unfinished == 1

    asyncio.run(stand())


def code(admission: Admission, graph: str, key_id: str | None) -> str | None:
    refusal = admission.refusal(graph, key_id)
    return None if refusal is None else refusal.code


def test_a_refusal_while_redis_is_away_keeps_nobody_who_was_told_before() -> None:
    """Found by review: one exception was raised for all, and kept the frames of each of them."""

    async def be_refused() -> None:
        admission = Admission(Settings())
        tickets = [admission.enter("a", None) for _ in range(BUSY)]
        admission.note_absence(partial(ServiceError, "worker_unavailable", "Redis does not answer"))
        for _ in range(20):
            with pytest.raises(ServiceError) as refusal:
                admission.enter("a", None)
        assert len(list(traceback.walk_tb(refusal.value.__traceback__))) == 2
        assert len(tickets) == BUSY

    asyncio.run(be_refused())


def test_while_redis_is_away_nobody_stands_in_line() -> None:
    async def stand() -> None:
        admission = Admission(Settings(key_queue_limit=2 * BUSY))
        away = partial(ServiceError, "worker_unavailable", "Redis does not answer", retry_after_s=1)
        tickets = [admission.enter("a", "k1") for _ in range(BUSY + 3)]
        turns = [asyncio.create_task(ticket.turn(30)) for ticket in tickets]
        await asyncio.sleep(0)
        admission.note_absence(away)
        told = await asyncio.gather(*turns, return_exceptions=True)
        assert told[:BUSY] == [0.0] * BUSY
        assert [getattr(error, "code", None) for error in told[BUSY:]] == ["worker_unavailable"] * 3
        assert code(admission, "a", None) == "worker_unavailable"
        assert admission.refusal("a", None, waits=False) is None  # it can be tried
        tickets += [admission.enter("b", "k1")]  # and so can this
        assert code(admission, "c", "k1") == "worker_unavailable"  # not that its key has too much
        admission.note_absence(None)
        assert refused(admission, "c", "k1")
        for ticket in tickets:
            ticket.leave(was_sent=False)
        assert admission.enter("a", None).lane.unfinished == 1

    asyncio.run(stand())


def test_what_was_not_sent_says_nothing_of_how_long_a_command_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has waited for a Redis that was away. The line is as long as ever once it is back."""
    clock = Clock(monkeypatch)
    for _ in range(20):
        assert clock.enter("a")
        clock.now += 1.7
        clock.inside.pop().leave(was_sent=False)
    assert clock.fill("a") == Settings().graph_queue_limit


def test_a_graph_with_too_much_work_does_not_crowd_another(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, graph_queue_limit=8)
    assert clock.fill("a") == 8
    assert clock.fill("b") == 8


def test_a_key_at_its_limit_leaves_room_for_others() -> None:
    admission = Admission(SMALL)
    tickets = [admission.enter(graph, "k1") for graph in "ab"]
    assert refused(admission, "c", "k1")
    assert not refused(admission, "a", "k2")
    tickets[0].leave()
    assert not refused(admission, "c", "k1")


def test_bytes_of_unfinished_commands_are_counted() -> None:
    admission, half = Admission(Settings()), QUEUED_BYTES // 2
    one = admission.enter("a", "k1", waits=False, n_bytes=half - 10)
    with pytest.raises(ServiceError, match=f"of this API key have {half - 10} bytes, and this one has 11") as refusal:
        admission.enter("b", "k1", waits=False, n_bytes=11)
    assert refusal.value.code == "rate_limited"
    admission.enter("b", "k1", waits=False, n_bytes=10).leave()
    other = admission.enter("b", "k2", waits=False, n_bytes=half)
    with pytest.raises(ServiceError, match="and this one has 11"):
        admission.enter("c", None, waits=False, n_bytes=11)
    admission.enter("c", None, waits=False).leave()
    for ticket in (one, other):
        ticket.leave()
    alone = admission.enter("a", "k1", waits=False, n_bytes=3 * half)
    admission.enter("a", "k1", waits=False).leave()
    with pytest.raises(ServiceError, match=r"and this one has 1$"):
        admission.enter("b", "k2", waits=False, n_bytes=1)
    alone.leave()
    admission.enter("b", "k2", waits=False, n_bytes=half).leave()


def test_what_a_long_command_weighs_is_told_until_it_has_ended(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by attack: a question of 6 KiB in gzip took 200 MB of a worker while it waited, and nobody counted them."""
    api.fakes.dispatcher.answer = lambda _: Status.RUNNING
    weighed: list[tuple[str | None, int]] = []
    count = QueuedBytes.count

    def noted(queued: QueuedBytes, key_id: str | None, n_bytes: int) -> None:
        weighed.append((key_id, n_bytes))
        count(queued, key_id, n_bytes)

    monkeypatch.setattr(QueuedBytes, "count", noted)
    patient = {"Prefer": "respond-async"}
    long = {"scenarios": [{"batch": [{"edges": [0], "op": "close"}]}] * 1000}
    for body, least in (({"scenarios": []}, 0), (long, 30_000)):
        assert api.http.post("/v1/graphs/city/what-if", headers=patient, json=body).status_code == 202
        assert weighed[-1][1] >= least
        before = len(weighed)
        api.fakes.dispatcher.unfinished[-1]()
        assert len(weighed) == before + 1
        assert weighed[-1][1] == -weighed[-2][1]


def test_event_streams_are_counted() -> None:
    admission = Admission(SMALL)
    with admission.stream(None), pytest.raises(ServiceError), admission.stream(None):
        pass
    with admission.stream(None):
        pass


def test_a_full_graph_is_429_with_retry_after_and_has_room_once_its_jobs_end(api: Api) -> None:
    api.fakes.dispatcher.answer = lambda _: Status.RUNNING
    patient = {"Prefer": "respond-async"}
    limit = Settings().graph_queue_limit
    for _ in range(limit):
        assert api.http.post("/v1/graphs/full/max-flow", headers=patient).status_code == 202
    response = api.http.post("/v1/graphs/full/max-flow", headers=patient)
    check_problem(response, "rate_limited")
    assert response.headers["retry-after"] in ("1", "2")
    assert api.http.post("/v1/graphs/town/max-flow", headers=patient).status_code == 202
    for act in api.fakes.dispatcher.unfinished:
        act()
    assert api.http.post("/v1/graphs/full/max-flow", headers=patient).status_code == 202
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
