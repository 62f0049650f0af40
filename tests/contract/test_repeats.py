"""An unchanged answer is given again without its worker, and never once anything has happened to the graph."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.responses import Response

from service.api.replies import repeats
from service.api.replies.repeats import HELD_BYTES, OBJECT_BYTES, ONE_BYTES, Question, Repeats
from service.api.replies.results import HeldResponse
from service.protocol import Envelope, Kind
from service.queue.versions import Seen, Versions
from service.settings import Settings
from service.store.catalogue import generation_of
from service.store.keys import Keys
from tests.contract.columns import ARROW, JSON, NPZ, READ, same, together
from tests.contract.fakes import FakeVersions
from tests.serving import Service, another_api
from tests.shared_services import Services

EDGES = {"tail": [0, 0, 1, 2], "head": [1, 2, 3, 3], "capacity": [3, 2.5, 4, 2], "source": 0, "sink": 3}
ASK: dict[str, Any] = {"sources": [0], "sinks": [3]}


@pytest.fixture(scope="module")
def service(services: Services) -> Iterator[Service]:
    with services.lent() as service:
        yield service


@pytest.fixture
def http(service: Service) -> httpx.Client:
    assert service.http.put("/v1/graphs/g", json=EDGES).status_code in (200, 201)
    return service.http


def count(http: httpx.Client) -> float:
    time.sleep(1.1)  # a scrape is kept for a second
    lines = http.get("/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("headrace_answers_repeated_total{"))


def ask(http: httpx.Client, **options: Any) -> dict[str, Any]:
    answer = http.post("/v1/graphs/g/max-flow", **options)
    assert answer.status_code == 200, answer.text
    said: dict[str, Any] = answer.json()
    assert said["certificate"]["valid"]
    return said


def test_the_worker_is_asked_once_in_a_while(http: httpx.Client) -> None:
    before = count(http)
    answers = [http.post("/v1/graphs/g/min-cut", json=ASK) for _ in range(20)]
    bodies = [answer.json() for answer in answers]
    assert {body["value"] for body in bodies} == {5}
    assert [body["mode"] for body in bodies] == ["cold", *["unchanged"] * 19]
    assert len({answer.headers["ETag"] for answer in answers}) == 1
    assert {answer.headers["Vary"] for answer in answers} == {"Accept"}
    assert count(http) - before >= 10


def test_forms_and_questions_are_told_apart(http: httpx.Client) -> None:
    strings = {"Accept": "application/json; numbers=string"}
    for _ in range(6):
        assert ask(http)["value"] == 5
        assert ask(http, headers=strings)["value"] == "5"
        assert ask(http, json={"sources": [0], "sinks": [1]})["value"] == 3
        assert "cut" in ask(http, json=ASK | {"fields": ["value", "cut"]})


def test_what_was_asked_as_a_job_is_a_job(http: httpx.Client) -> None:
    for _ in range(4):
        ask(http)
    assert http.post("/v1/graphs/g/max-flow", headers={"Prefer": "respond-async"}).status_code == 202


def test_each_change_is_seen_at_once(service: Service, http: httpx.Client) -> None:
    """Through this API process and through another one, waited for and not, and the answers before are warm."""
    assert service.log is not None
    with another_api(service.log.parent / "data") as other:
        for number in range(1, 60):
            for _ in range(3):
                ask(http)
            patch = {"edges": [0], "set": [number % 4]}
            who = other if number % 2 else http
            wait = {"Prefer": "respond-async"} if number % 3 else {}
            done = who.patch("/v1/graphs/g/capacities", json=patch, headers=wait)
            assert done.status_code in (200, 202)
            said = ask(http)
            assert (said["value"], said["version"]) == (number % 4 + 2, number + 1)


def test_another_graph_of_the_name_has_answers_of_its_own(http: httpx.Client) -> None:
    for number in range(1, 12):
        assert http.put("/v1/graphs/g", json=EDGES | {"capacity": [number, 0, 99, 0]}).status_code == 200
        assert [ask(http)["value"] for _ in range(4)] == [number] * 4
    assert http.delete("/v1/graphs/g").status_code == 204
    assert http.post("/v1/graphs/g/max-flow").status_code == 404


QUESTION = Question(Kind.MAX_FLOW, "g", "digest")
SEEN = Seen(1, "id", 7)


class Said(FakeVersions):
    def __init__(self, *seen: Seen | None) -> None:
        super().__init__()
        self.connection = 1
        self.seen = [*seen]

    async def at(self, graph: str, guess: Seen | None) -> Seen | None:
        return self.seen.pop(0)


def envelope(**said: Any) -> Envelope:
    return Envelope(**{"version": 7, "generation": generation_of("id"), "unchanged": True} | said)


def answer(n_bytes: int = 2) -> Response:
    return Response(b"x" * n_bytes, 200, {"ETag": '"7"'}, "application/json")


def found(seen: Seen | None, said: Envelope, connection: int = 1) -> bool:
    kept = Repeats(Said(seen))
    kept.keep(QUESTION, connection, said, answer())
    again = asyncio.run(kept.find(QUESTION))
    assert again is None or (again.body, again.headers) == (answer().body, answer().headers)
    return again is not None


@pytest.mark.parametrize(
    ("seen", "said", "connection"),
    [
        (None, {}, 1),
        (Seen(2, "id", 7), {}, 1),
        (Seen(1, "another", 7), {}, 1),
        (Seen(1, "id", 8), {}, 1),
        (Seen(1, "id", None), {}, 1),
        (Seen(1, "id", 7, changes=1), {}, 1),
        (SEEN, {"unchanged": False}, 1),
        (SEEN, {"generation": None}, 1),
        (SEEN, {"version": 6}, 1),
        (SEEN, {}, 0),
    ],
)
def test_when_it_is_not_given_again(seen: Seen | None, said: dict[str, Any], connection: int) -> None:
    assert found(SEEN, envelope())
    assert not found(seen, envelope(**said), connection)


def test_of_another_version_it_is_not_asked_twice() -> None:
    """Versions only grow, so what is no longer the answer costs no further round trip."""
    versions = Said(Seen(1, "id", 8), SEEN)
    kept = Repeats(versions)
    kept.keep(QUESTION, 1, envelope(), answer())
    assert [asyncio.run(kept.find(QUESTION)) for _ in range(3)] == [None] * 3
    assert versions.seen == [SEEN]


def test_one_that_is_sent_in_pieces_is_not_kept() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"x"

    kept = Repeats(Said())
    kept.keep(QUESTION, 1, envelope(), HeldResponse(pieces(), None, JSON, None, 1))
    assert kept.used_bytes == 0


@pytest.mark.parametrize("accept", [JSON, NPZ, ARROW])
@pytest.mark.parametrize("n_edges", [50, 3_000, 200_000])
def test_answers_of_any_length_and_form_stay_the_same(http: httpx.Client, n_edges: int, accept: str) -> None:
    """One that is in the reply, one that is too long to be kept, one that lies in a blob."""
    half = n_edges // 2
    middle = [*range(2, half + 2)]
    edges = {"tail": [0] * half + middle, "head": middle + [1] * half, "capacity": [1] * n_edges}
    assert http.put("/v1/graphs/long", json=edges | {"source": 0, "sink": 1}).status_code in (200, 201)
    ask = {"fields": ["value", "flow", "cut"]}

    def told() -> dict[str, Any]:
        answer = http.post("/v1/graphs/long/max-flow", json=ask, headers={"Accept": accept})
        assert (answer.status_code, answer.headers["content-type"]) == (200, accept)
        return together(*READ[accept](answer.content)) if accept in READ else answer.json()

    first = told()
    assert first["value"] == half
    assert first["flow"]["amount"] == [1] * n_edges
    assert all(same(told(), first) for _ in range(5))


def test_it_is_kept_for_so_long_and_in_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Repeats(Said())
    for number in range(1000):
        kept.keep(Question(Kind.MAX_FLOW, "g", str(number)), 1, envelope(), answer(ONE_BYTES))
        assert kept.used_bytes <= HELD_BYTES
    kept.keep(Question(Kind.MAX_FLOW, "g", "999"), 1, envelope(), answer(2))
    assert kept.used_bytes == (OBJECT_BYTES + ONE_BYTES) * (len(kept._kept) - 1) + OBJECT_BYTES + 2
    kept.keep(QUESTION, 1, envelope(), answer(ONE_BYTES + 1))
    assert QUESTION not in kept._kept
    monkeypatch.setattr(repeats, "KEPT_S", -1)
    assert not found(SEEN, envelope())


def test_a_new_connection_has_a_new_number(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Redis may have been started again, with an older state: nothing that was answered before counts."""
    monkeypatch.setattr("service.queue.versions.PATIENCE_S", 30)  # a busy machine is not what this is about
    monkeypatch.setattr("service.store.connection.NUMBERED_TIMEOUT_S", 30)
    assert service.log is not None
    settings = Settings(data_dir=service.log.parent / "data", redis_url=None)
    assert service.http.put("/v1/graphs/n", json=EDGES).status_code == 201

    async def run() -> list[Seen | None]:
        versions = Versions(settings, Keys(settings.redis_prefix))
        first = await versions.at("n", None)
        assert first is not None
        second = await versions.at("n", first)
        await versions._redis.connection_pool.disconnect()
        third = await versions.at("n", second)
        nowhere = await versions.at("nowhere", None)
        await versions.close()
        return [first, second, third, nowhere]

    first, second, third, nowhere = asyncio.run(run())
    assert first is not None
    assert second is not None
    assert third is not None
    assert (first.connection, first.version, second.version, third.version) == (1, None, 1, 1)
    assert (second.connection, third.connection, nowhere) == (1, 2, None)


class LoadEnds:
    """Stands for Redis while the load of another graph under the name ends, behind this many of the commands sent."""

    def __init__(self, after: int) -> None:
        self.after = after
        self.asked: list[tuple[Any, ...]] = []

    def pipeline(self, transaction: bool) -> "LoadEnds":
        return self

    async def __aenter__(self) -> "LoadEnds":
        return self

    async def __aexit__(self, *error: object) -> None: ...

    async def aclose(self) -> None: ...

    def execute_command(self, *command: Any) -> None:
        self.asked.append(command)

    def hget(self, *command: Any) -> None:
        self.asked.append(command)

    async def execute(self) -> list[Any]:
        return [self._said(command, place >= self.after) for place, command in enumerate(self.asked)]

    def _said(self, command: tuple[Any, ...], has_ended: bool) -> Any:
        if command[0] == "SCARD":
            return 0 if has_ended else 1
        if command[-1] == "version":
            return b"7"
        return b"new" if has_ended else b"old"


@pytest.mark.parametrize("after", range(4))
def test_a_load_that_ends_meanwhile_is_waiting_or_seen(tmp_path: Path, after: int) -> None:
    """Redis runs the commands of others between those of one look."""

    async def look() -> Seen | None:
        versions = Versions(Settings(data_dir=tmp_path, redis_url=None), Keys("hr"))
        versions._redis = LoadEnds(after)
        seen = await versions.at("g", Seen(0, "old", 7))
        await versions.close()
        return seen

    seen = asyncio.run(look())
    assert seen is not None
    assert seen.changes or seen.version is None
