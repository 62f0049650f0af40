"""Short questions that wait behind one another are answered in one MULTI, and each only as it would be by itself."""

import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import redis

from gpu_engine.errors import EngineError
from service.protocol import Command, Kind
from service.settings import Settings
from service.store.durable import Written
from service.store.jobs.outcomes import CANCELLED
from service.store.jobs.record import Result
from service.store.jobs.transitions import GROUP, Queued, enqueue
from service.store.keys import Keys
from service.telemetry.tracing import NoTracing
from service.worker.metrics import WorkerMetrics
from service.worker.running.costs import Costs
from service.worker.running.endings import Endings
from service.worker.running.looks import Looks
from service.worker.running.observed import Observer
from service.worker.running.task import Task
from service.worker.running.together import SHORT_S, Together

Handler = Callable[[Task], Result]
ANSWER = Result(b'{"value":5}')


def question(number: int, kind: Kind = Kind.MAX_FLOW) -> Command:
    return Command(id=f"job{number}", kind=kind, graph="g", reply_to="api", created_at=time.time())


@pytest.fixture
def tasks(client: Any, keys: Keys) -> list[Task]:
    """Three questions of one graph and a snapshot, which the worker w0 has been given."""
    commands = [*map(question, range(3)), question(3, Kind.SNAPSHOT)]
    client.xgroup_create(keys.commands("w0"), GROUP, id="0", mkstream=True)
    for command in commands:
        enqueue(client, keys, [Queued(command, command.to_json(), "w0")])
    ((_, entries),) = client.xreadgroup(GROUP, "w0", {keys.commands("w0"): ">"})
    return [Task(entry, command, redelivered=False) for (entry, _), command in zip(entries, commands, strict=True)]


@pytest.fixture
def together(
    client: Any, keys: Keys, settings: Settings, tasks: list[Task], monkeypatch: pytest.MonkeyPatch
) -> Callable[[Handler], Together]:
    """However busy the machine is, there is time for all of them."""
    monkeypatch.setattr("service.worker.running.together.LONGEST_S", 1e9)

    def make(handler: Handler) -> Together:
        observer = Observer(WorkerMetrics(), NoTracing(), Costs(), access_log=False)
        written = Written(client, keys)
        looks = Looks(client, keys, written, lambda graph: None)
        endings = Endings(client, keys, "w0", settings, written)
        made = Together(looks, endings, observer, handler, lambda tasks: nullcontext(None), lambda command: 0.0)
        for task in tasks:
            made.add(task)
        return made

    return make


def multis(client: Any) -> int:
    return int(client.info("commandstats").get("cmdstat_multi", {}).get("calls", 0))


def statuses(client: Any, keys: Keys, tasks: list[Task]) -> list[str]:
    return [client.hget(keys.job(task.command.id), "status").decode() for task in tasks]


def test_questions_are_answered_together(
    client: Any, keys: Keys, tasks: list[Task], together: Callable[[Handler], Together]
) -> None:
    made, before = together(lambda task: ANSWER), multis(client)
    assert made.next(tasks[0]) == tasks[:3]
    assert multis(client) == before + 1
    assert statuses(client, keys, tasks) == ["succeeded"] * 3 + ["queued"]
    assert client.xlen(keys.replies("api")) == 3
    assert client.xlen(keys.commands("w0")) == client.zcard(keys.waiting("w0")) == 1
    assert [made.has_answered(task) for task in tasks] == [True, True, True, False]
    assert made.next(tasks[3]) == []
    assert made.has_answered(tasks[3])


def test_what_was_answered_together_took_a_part_of_the_time_each(
    client: Any, keys: Keys, tasks: list[Task], together: Callable[[Handler], Together]
) -> None:
    """Else sixteen short updates would be taken for long ones, and the next would be answered one by one."""
    costs = Costs()
    observer = Observer(WorkerMetrics(), NoTracing(), costs, access_log=False)
    assert together(lambda task: ANSWER).next(tasks[0]) == tasks[:3]
    assert [task.among for task in tasks] == [3, 3, 3, 1]
    for _ in "ab":  # the first of its kind on a graph says nothing of the others
        with observer.observed(tasks[0]):
            tasks[0].started_at = time.time() - 300
    assert 100 <= costs.expected_s(tasks[0].command) < 150


@pytest.mark.parametrize("why", ["cancelled", "cancelled meanwhile", "over", "refused", "broken"])
def test_what_is_not_simply_answered_is_tried_by_itself(
    client: Any,
    keys: Keys,
    tasks: list[Task],
    together: Callable[[Handler], Together],
    monkeypatch: pytest.MonkeyPatch,
    why: str,
) -> None:
    """And nothing is told of it before."""
    told, asked = list[Task](), list[Task]()
    monkeypatch.setattr(Observer, "_tell", lambda _, task, *more: told.append(task))

    def handler(task: Task) -> Result:
        if task is tasks[1] and why in ("refused", "broken"):
            raise EngineError("no") if why == "refused" else RuntimeError("no")
        asked.append(task)
        if why == "cancelled meanwhile":
            tasks[1].control.cancel()
        return ANSWER

    if why == "cancelled":
        client.set(keys.outcome("job1"), CANCELLED)
    if why == "over":
        client.hset(keys.job("job1"), "status", "failed")
    made = together(handler)
    assert made.next(tasks[0]) == tasks[:1]
    assert told == asked == tasks[:1]
    assert made.next(tasks[1]) == []
    assert not tasks[1].ended
    assert statuses(client, keys, tasks[:1]) == ["succeeded"]
    assert client.xlen(keys.replies("api")) == 1
    assert client.exists(keys.job("job2"))


@pytest.mark.parametrize("what", ["handed on", "ended by another worker", "followed"])
def test_each_ends_by_itself_when_a_job_changes_meanwhile(
    client: Any, keys: Keys, tasks: list[Task], together: Callable[[Handler], Together], what: str
) -> None:
    """With the answer it has, unless another worker has given one."""

    def handler(task: Task) -> Result:
        if task is tasks[2] and what == "followed":
            client.xadd(keys.events("job1"), {"event": "subscribed"})
        elif task is tasks[2]:
            field = ("worker", "w1") if what == "handed on" else ("status", "succeeded")
            client.hset(keys.job("job1"), *field)
        return ANSWER

    assert together(handler).next(tasks[0]) == tasks[:3]
    assert statuses(client, keys, tasks) == ["succeeded"] * 3 + ["queued"]
    assert client.xlen(keys.replies("api")) == (2 if what == "ended by another worker" else 3)
    assert client.xlen(keys.commands("w0")) == 1
    assert client.xlen(keys.events("job1")) == (2 if what == "followed" else 0)


def test_a_slow_one_keeps_no_other_from_its_answer(
    tasks: list[Task], together: Callable[[Handler], Together], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = together(lambda task: ANSWER)
    monkeypatch.setattr("service.worker.running.together.LONGEST_S", 0.0)
    assert made.next(tasks[0]) == tasks[:1]
    assert made.next(tasks[1]) == tasks[1:2]


@pytest.mark.parametrize("why", ["left behind", "cancelled", "ended", "unreadable", "long", "an update"])
def test_what_is_not_among_them(
    tasks: list[Task], together: Callable[[Handler], Together], monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """The delivery of what was left behind is counted first, and what takes long is not waited for by the others."""
    tasks[1].redelivered, tasks[1].ended, tasks[1].readable = why == "left behind", why == "ended", why != "unreadable"
    if why == "cancelled":
        tasks[1].control.cancel()
    if why == "an update":  # which only the question before it waits for
        tasks[1].command = question(1, Kind.PATCH)
    made = together(lambda task: ANSWER)
    if why == "long":
        monkeypatch.setattr(made, "_expected_s", lambda command: 2 * SHORT_S * (command is tasks[1].command))
    assert [made.next(task) for task in tasks[:2]] == [[], []]


@pytest.mark.parametrize(("of", "fails"), [(Task, "let_go"), (Endings, "succeed_together"), (Together, "_may_be")])
def test_no_failure_leaves_the_line_without_an_answer(
    tasks: list[Task],
    together: Callable[[Handler], Together],
    monkeypatch: pytest.MonkeyPatch,
    of: type[object],
    fails: str,
) -> None:
    """Each is tried by itself, and what comes behind it as well."""

    def fail(*_: object) -> None:
        raise redis.TimeoutError("UNWATCH") if fails == "let_go" else RuntimeError("no")

    made = together(lambda task: ANSWER)
    with monkeypatch.context() as broken:
        broken.setattr(of, fails, fail)
        broken.setattr(Endings, "succeed_together", fail)
        assert [made.next(task) for task in tasks[:2]] == [[], []]
    assert [made.next(task) for task in tasks[2:]] == [[], []]
