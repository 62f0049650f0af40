"""Webhooks that change, or go, while the courier delivers: what is sent goes where they say just then."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from service.settings import Settings
from service.store.connection import connect_async, connect_listeners
from service.store.feed.reading import FeedReader
from service.store.feed.record import reset_event, version_event
from service.store.hooks.hooks import Hooks
from service.store.hooks.record import OLD_SECRET_S, Delivery, Webhook, new_secret
from service.store.keys import Keys
from service.webhooks.courier import AT_ONCE, SLOW_AT_ONCE, Courier
from service.webhooks.posting import Outcome, Poster

TEN_YEARS_S = 315_360_000
ADDRESS, OTHER = "https://a.example/", "https://b.example/"


class Recorded(Poster):
    """Sends nothing, remembers where it would have, and does something meanwhile."""

    def __init__(self, meanwhile: Callable[[], Awaitable[object]], *outcomes: Outcome) -> None:
        super().__init__(())
        self.sent: list[tuple[str, str]] = []
        self._meanwhile = meanwhile
        self._outcomes = [*outcomes]

    async def post(self, url: str, body: str, headers: Any) -> Outcome:
        self.sent.append((url, headers["webhook-id"]))
        if len(self.sent) == 1:
            await self._meanwhile()
        return self._outcomes.pop(0) if self._outcomes else Outcome(204)


class House:
    """A courier's own Redis and webhooks."""

    def __init__(self, settings: Settings) -> None:
        self.keys = Keys(settings.redis_prefix)
        self.client: Any = connect_async(settings)
        self.listeners: Any = connect_listeners(settings)
        self.hooks = Hooks(self.client, self.keys)

    async def deliver(self, poster: Poster) -> None:
        """One turn of each webhook, to its end."""
        feed = FeedReader(self.client, self.listeners, self.keys)
        courier = Courier(self.client, self.keys, self.hooks, feed, poster, give_up_s=60)
        await courier._look()
        await asyncio.gather(*courier._busy.values())
        await poster.close()

    async def waiting(self, *ids: str, disabled: str | None = None) -> Webhook:
        """A webhook with deliveries of these ids, which are due."""
        hook = Webhook(id="h", url=ADDRESS, graphs=["g"], types=["version"], secret=new_secret(), created_at=1.0)
        assert await self.hooks.put(hook, None, 9, {"g": "0-0"})
        made = [delivery(id) for id in ids]
        assert await self.hooks.queue(hook, "g", "0-0", "1-0", made)
        return hook

    async def left(self) -> list[str]:
        """The names of all that lies there of webhooks."""
        keys = self.keys
        named = [keys.webhooks, keys.cursors("h"), keys.deliveries("h"), keys.due("h"), keys.dead("h")]
        return [name for name in named if await self.client.exists(name)]


def delivery(id: str) -> Delivery:
    event = version_event("g", "0123456789abcdef", 2)
    return Delivery.of("g", event, 0.0).model_copy(update={"id": id, "created_at": time.time() - 1})


class Hanging(Poster):
    """Sends nothing. A first try takes a moment and fails; further ones to other addresses than `OTHER` never end."""

    def __init__(self) -> None:
        super().__init__(())
        self.tried: list[str] = []
        self.ever = asyncio.Event()

    async def post(self, url: str, body: str, headers: Any) -> Outcome:
        self.tried.append(url)
        if url == OTHER:
            return Outcome(204)
        if self.tried.count(url) > 1:
            await self.ever.wait()
        await asyncio.sleep(0.02)
        return Outcome(error="no answer")


Run = Callable[[Callable[[House], Coroutine[Any, Any, None]]], None]


@pytest.fixture
def run(settings: Settings) -> Run:
    def run(work: Callable[[House], Coroutine[Any, Any, None]]) -> None:
        async def whole() -> None:
            house = House(settings)
            try:
                await work(house)
            finally:
                await house.client.aclose()
                await house.listeners.aclose()

        asyncio.run(whole())

    return run


def test_what_waits_goes_to_the_address_of_now(run: Run) -> None:
    async def work(house: House) -> None:
        hook = await house.waiting("1", "2", "3")
        moved = hook.model_copy(update={"url": OTHER})
        poster = Recorded(lambda: house.hooks.put(moved, hook, 9, {}))
        await house.deliver(poster)
        assert poster.sent == [(ADDRESS, "1"), (OTHER, "2"), (OTHER, "3")]
        assert await house.hooks.counts("h") == (0, 0)

    run(work)


@pytest.mark.parametrize("failed", [[], [Outcome(500), Outcome(500)]], ids=["new", "tried before"])
def test_what_was_queued_while_a_clock_was_ahead_is_sent(
    run: Run, failed: list[Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As that of a machine that has just begun: it waited for the year that the clock had said."""

    async def work(house: House) -> None:
        real = time.time
        with monkeypatch.context() as ahead:
            ahead.setattr(time, "time", lambda: real() + TEN_YEARS_S)
            await house.waiting("1", "2")
            if failed:
                await house.deliver(Recorded(_nothing, *failed))
        poster = Recorded(_nothing)
        await house.deliver(poster)
        assert sorted(poster.sent) == [(ADDRESS, "1"), (ADDRESS, "2")]
        assert await house.hooks.counts("h") == (0, 0)

    run(work)


async def _nothing() -> None: ...


@pytest.mark.parametrize("ends", ["removed", "disabled", "made anew"])
def test_nothing_more_is_sent_once_it_is_removed_or_disabled(run: Run, ends: str) -> None:
    async def work(house: House) -> None:
        hook = await house.waiting("1", "2", "3")

        async def end() -> None:
            if ends == "disabled":
                await house.hooks.put(hook.model_copy(update={"disabled": "enough"}), hook, 9, {})
                return
            await house.hooks.remove("h")
            if ends == "made anew":
                await house.hooks.put(hook.model_copy(update={"url": OTHER}), None, 9, {"g": "1-0"})

        poster = Recorded(end, Outcome(500, "answered 500"))
        await house.deliver(poster)
        assert poster.sent == [(ADDRESS, "1")]
        if ends == "removed":
            assert await house.left() == []
        if ends == "made anew":
            assert await house.hooks.counts("h") == (0, 0)

    run(work)


@pytest.mark.parametrize("change", [{"graphs": ["other"]}, {"types": ["value.changed"]}], ids=["graph", "type"])
def test_what_it_does_not_want_any_more_is_forgotten(run: Run, change: dict[str, list[str]]) -> None:
    """Pending and dead deliveries of a graph, or of a type, that is taken off; a reset is for all types."""

    async def work(house: House) -> None:
        hook = await house.waiting("1", "2", "3")
        found = await house.hooks.delivery("h", "3")
        assert found is not None
        await house.hooks.failed("h", found.model_copy(update={"status": "dead"}))
        assert await house.hooks.counts("h") == (2, 1)
        reset = Delivery.of("g", reset_event("g", "reset"), 0.0).model_copy(update={"created_at": time.time() - 1})
        assert await house.hooks.queue(hook, "g", "1-0", "2-0", [reset])
        changed = hook.model_copy(update=change)
        poster = Recorded(lambda: house.hooks.put(changed, hook, 9, {"other": "0-0"}), Outcome(500, "answered 500"))
        await house.deliver(poster)
        left = [] if "graphs" in change else [(ADDRESS, "reset")]
        assert poster.sent == [(ADDRESS, "1"), *left], "the first one was on its way"
        assert await house.hooks.counts("h") == (0, 0)
        assert not await house.client.exists(house.keys.deliveries("h"))

    run(work)


def test_what_is_gone_is_not_sent_again(run: Run) -> None:
    async def work(house: House) -> None:
        await house.waiting("1")
        again = await house.hooks.delivery("h", "1")
        assert again is not None
        again = again.model_copy(update={"next_at": time.time()})
        assert await house.hooks.redeliver("h", again)
        await house.hooks.delivered("h", "1")
        assert not await house.hooks.redeliver("h", again)
        assert await house.hooks.counts("h") == (0, 0)
        await house.hooks.remove("h")
        assert not await house.hooks.redeliver("h", again)
        assert await house.left() == []

    run(work)


def test_a_removal_races_what_is_sent_again(run: Run) -> None:
    """However they meet, a webhook that is removed leaves nothing behind."""

    async def work(house: House) -> None:
        for _ in range(100):
            await house.waiting("1", "2")
            found = [await house.hooks.delivery("h", id) for id in "12"]
            again = [one.model_copy(update={"next_at": 1.0}) for one in found if one is not None]
            await asyncio.gather(
                *(house.hooks.redeliver("h", one) for one in again),
                house.hooks.remove("h"),
                *(house.hooks.redeliver("h", one) for one in again),
            )
            assert await house.left() == []

    run(work)


def test_graphs_without_news_cost_one_look_together(run: Run) -> None:
    """However many a webhook names, one question finds those that have some."""
    graphs = [f"g{number}" for number in range(60)]

    async def work(house: House) -> None:
        hook = Webhook(id="h", url=ADDRESS, graphs=graphs, types=["version"], secret=new_secret(), created_at=1.0)
        assert await house.hooks.put(hook, None, 9, dict.fromkeys(graphs, "0-0"))
        for number, graph in ((1, "g7"), (2, "g41")):
            event = version_event(graph, f"{number}123456789abcdef", 2)
            await house.client.xadd(house.keys.feed(graph), event.fields)
        before = await house.client.info("commandstats")
        poster = Recorded(house.hooks.count)
        await house.deliver(poster)
        after = await house.client.info("commandstats")
        calls = {name: after.get(f"cmdstat_{name}", {}).get("calls", 0) for name in ("xread", "xrange")}
        calls = {name: n - before.get(f"cmdstat_{name}", {}).get("calls", 0) for name, n in calls.items()}
        assert len(poster.sent) == 2
        assert calls["xread"] == 1
        assert calls["xrange"] < len(graphs) / 2, "a page is read again until Redis has written what it says"
        await house.deliver(poster)
        assert len(poster.sent) == 2

    run(work)


def test_how_deliveries_stand_is_counted(run: Run) -> None:
    """Those that wait, those that were tried in vain, those that were given up; what is due and not tried is late."""

    async def work(house: House) -> None:
        assert await house.hooks.standings(time.time()) == []
        hook = await house.waiting("a", "b", "c")
        (due,) = await house.hooks.standings(time.time())
        assert (due.webhook, due.pending, due.failing, due.dead) == ("h", 3, 0, 0)
        assert 1.0 <= due.late_s < 20.0
        await house.deliver(Recorded(house.hooks.count, Outcome(500, "no"), Outcome(500, "no"), Outcome(204)))
        (failing,) = await house.hooks.standings(time.time())
        assert (failing.pending, failing.failing, failing.dead, failing.late_s) == (2, 2, 0, 0.0)
        (later,) = await house.hooks.standings(time.time() + 100)
        assert later.late_s > 90
        await house.hooks.failed("h", delivery("a").model_copy(update={"status": "dead", "next_at": None}))
        assert await house.hooks.put(hook.model_copy(update={"disabled": "gone"}), hook, 9, {})
        (ended,) = await house.hooks.standings(time.time() + 100)
        assert (ended.pending, ended.dead, ended.late_s) == (1, 1, 0.0)

    run(work)


def test_events_are_queued_once_and_for_the_webhook_as_it_is(run: Run) -> None:
    """Not by a process that was slower than another, nor as an address, types or graphs were before a change."""

    async def work(house: House) -> None:
        hook, more = await house.waiting("1"), [delivery("2")]
        assert not await house.hooks.queue(hook, "g", "0-0", "2-0", more)
        moved = hook.model_copy(update={"url": OTHER})
        assert await house.hooks.put(moved, hook, 9, {})
        assert not await house.hooks.queue(hook, "g", "1-0", "2-0", more)
        assert await house.hooks.cursors("h") == {"g": "1-0"}
        assert await house.hooks.counts("h") == (1, 0)
        assert await house.hooks.queue(moved, "g", "1-0", "2-0", more)
        assert await house.hooks.counts("h") == (2, 0)

    run(work)


def test_the_secret_before_signs_for_a_day() -> None:
    hook = Webhook(id="h", url=ADDRESS, graphs=["g"], types=["version"], secret=new_secret(), created_at=1.0)
    rotated = hook.rotated(1000.0)
    assert hook.secrets_at(1000.0) == [hook.secret]
    assert rotated.secrets_at(1000.0 + OLD_SECRET_S - 1) == [rotated.secret, hook.secret]
    assert rotated.secrets_at(1000.0 + OLD_SECRET_S) == [rotated.secret]


def test_a_reset_of_each_graph_is_a_delivery_of_its_own(run: Run) -> None:
    """Two feeds whose first entries have one id: what came in the same millisecond."""

    async def work(house: House) -> None:
        hook = Webhook(id="h", url=ADDRESS, graphs=["g", "k"], types=["version"], secret=new_secret(), created_at=1.0)
        assert await house.hooks.put(hook, None, 9, {"g": "1-0", "k": "1-0"})
        for graph in ("g", "k"):
            event = version_event(graph, "0123456789abcdef", 2)
            await house.client.xadd(house.keys.feed(graph), event.fields, id="5-0")
        poster = Recorded(lambda: asyncio.sleep(0))
        await house.deliver(poster)
        resets = [id for _, id in poster.sent if id.startswith("reset-")]
        assert len({*resets}) == 2, poster.sent
        assert not any("." in id for id in resets), "ids are signed between dots"

    run(work)


def test_webhooks_that_never_answer_keep_no_other_waiting(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.webhooks.courier.SLOW_S", 0.01)

    async def work(house: House) -> None:
        poster, most = Hanging(), AT_ONCE + 2

        async def begin(id: str, url: str) -> None:
            hook = Webhook(id=id, url=url, graphs=["g"], types=["version"], secret=new_secret(), created_at=1.0)
            assert await house.hooks.put(hook, None, 99, {"g": "0-0"})
            assert await house.hooks.queue(hook, "g", "0-0", "1-0", [delivery(f"{id}1"), delivery(f"{id}2")])

        for i in range(most):
            await begin(f"slow{i}", f"{ADDRESS}{i}")
        feed = FeedReader(house.client, house.listeners, house.keys)
        courier = Courier(house.client, house.keys, house.hooks, feed, poster, give_up_s=60)
        await courier._look()
        async with asyncio.timeout(10):
            while len(poster.tried) < most + SLOW_AT_ONCE:
                await asyncio.sleep(0.01)
            await begin("well", OTHER)
            await courier._look()
            await courier._busy["well"]
        assert poster.tried[-2:] == [OTHER, OTHER]
        assert len(poster.tried) == most + SLOW_AT_ONCE + 2
        poster.ever.set()
        await asyncio.gather(*courier._busy.values())
        await poster.close()

    run(work)
