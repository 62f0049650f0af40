"""The checker's part in watches and feeds: a clean history of them passes, and each kind of harm to them is seen."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.faults.aof import Entry, Watched, read_committed
from tests.faults.follower import read_events
from tests.faults.history import LOAD_UNIT, Cut, Op, Told
from tests.faults.stories import Story, announce, change, job, see
from tests.faults.test_reading import command, load_commands, packed_edges, transaction

LOADED = LOAD_UNIT
"""What can flow through g as it is loaded: nothing passes but the marks."""
CHANGED = [LOADED, LOADED + 20000, LOADED + 30000]
"""By version, from 1 on."""


class Watching(Story):
    """As `Story`, and g is watched from the beginning, by `main` its value and cut and by `value` its value.

    `value` is dropped before version 3, and all that is told is followed. The name is loaded again after the DELETE.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self.load.order, self.load.deleted_at = 1, 30
        for commit, order in zip(self.load.commits, (10, 20), strict=True):
            commit.order = order
        self.put_main = self._watch("watch", "main", ["value", "cut"], 2)
        self.put_value = self._watch("watch", "value", ["value"], 3)
        self.dropped = self._watch("unwatch", "value", None, 12)
        announce(self.committed)
        self.feed = self.committed.feeds["g"]
        self._tell(11, 2, "main", ["value", "cut"], [1], [])
        self._tell(11, 2, "value", ["value"])
        self._tell(21, 3, "main", ["value"], [], [])
        self.feed.sort(key=lambda entry: entry.order)
        for i, entry in enumerate(self.feed):
            self.history.told["g"].append(Told(entry.id, entry.type, entry.data, 1.0 + i))
        self.history.followed_to["g"] = self.feed[-1].id
        self.told = self.history.told["g"]

    def _watch(self, kind: str, watch: str, on: list[str] | None, order: int) -> Op:
        body = None if on is None else {"version": 1, "value": LOADED, "watch": watch, "on": on}
        op = self._op(kind, body, watch=watch, on=on, request=f"r-{order}")
        self.history.ops.insert(1, self.history.ops.pop())  # before the first PATCH
        change(op, invoked_at=0.5, answered_at=0.7)
        name = f"watch-{order}"
        self.committed.requests[name] = op.request
        self.committed.watches["g"].append(Watched(watch, on and tuple(on), name, order))
        return op

    def _tell(self, order: int, version: int, watch: str, parts: list[str], *cuts: list[int]) -> None:
        """`cuts`: what came into the cut, and what left it, if the watch looks at it."""
        value, before = CHANGED[version - 1], CHANGED[version - 2]
        data: dict[str, Any] = {"graph": "g", "generation": "00000000", "version": version, "watch": watch}
        data |= {"old_value": before, "value": value}
        data |= dict(zip(("cut_added", "cut_removed"), cuts, strict=False))
        for part in parts:
            entry = Entry(f"00000000-{version}-{watch}-{part}", f"{part}.changed", json.dumps(data), order)
            self.feed.append(entry)

    def place(self, part: str) -> int:
        """Of the event in the feed whose id ends so."""
        (place,) = [i for i, entry in enumerate(self.feed) if entry.id.endswith(part)]
        return place

    def forget(self, part: str) -> None:
        """An event was never told, neither in the feed nor to who follows."""
        place = self.place(part)
        del self.feed[place], self.told[place]

    def say(self, part: str, **members: Any) -> None:
        """An event says something else, in the feed and to who follows."""
        place = self.place(part)
        data = json.dumps(json.loads(self.feed[place].data) | members)
        change(self.feed[place], data=data)
        change(self.told[place], data=data)

    def tell_more(self, order: int, part: str) -> None:
        """One event, a second time."""
        entry = self.feed[self.place(part)]
        self.feed.append(Entry(entry.id, entry.type, entry.data, order))
        self.feed.sort(key=lambda each: each.order)

    def tell_later(self) -> None:
        """What version 3 changes, when nothing was told of version 2."""
        place = self.place("3-main-value")
        self.say("3-main-value", old_value=LOADED, cut_added=[1])
        entry = self.feed[place]
        more = Entry(entry.id.replace("value", "cut"), "cut.changed", entry.data, entry.order)
        self.feed.insert(place + 1, more)
        self.told.insert(place + 1, Told(more.id, more.type, more.data, 9.0))

    def cut_off(self, at: float) -> None:
        """The log lost its end then: version 3, and what was told of it and followed before."""
        self.history.cuts.append(Cut(at - 0.1, at))
        self.history.ops = [op for op in self.history.ops if op.kind in ("put", "watch", "unwatch") or op is self.first]
        self.load.commits.pop()
        self.load.deleted, self.load.deleted_at = False, 0
        self.committed.removals.clear()
        self.committed.cancelled.clear()
        del self.feed[self.place("3-version") :]
        self.history.followed_to["g"] = self.feed[-1].id


HARMS: dict[str, tuple[Callable[[Watching], object], str | None]] = {
    "clean": (lambda story: None, None),
    "a version is not told": (lambda story: story.forget("2-version"), "lost: no event version of (0, 2)"),
    "a removal is not told": (lambda story: story.forget("deleted"), "lost: no event graph.deleted"),
    "a version is told as another": (lambda story: story.say("2-version", version=3), "wrong: told 00000000-2"),
    "an event is lost": (lambda story: story.forget("2-main-cut"), "wrong: told [('00000000-2-main-value'"),
    "all events of a version are lost": (
        lambda story: [story.forget(part) for part in ("2-main-value", "2-main-cut", "2-value-value")],
        "lost: ['00000000-2-main-value', '00000000-2-main-cut', '00000000-2-value-value'] was never told",
    ),
    "what was told is cut off": (
        lambda story: (
            [story.forget(part) for part in ("2-main-value", "2-main-cut", "2-value-value")],
            change(story.committed.watches["g"][2], order=5),
            story.history.cuts.append(Cut(-2.0, -1.0)),
            story.tell_later(),
        ),
        None,
    ),
    "the last version is left untold": (lambda story: story.forget("3-main-value"), None),
    "an event has another value": (lambda story: story.say("3-main-value", value=7), "wrong: told"),
    "an event has another old value": (lambda story: story.say("3-main-value", old_value=LOADED), "wrong: told"),
    "an event has another cut": (lambda story: story.say("2-main-value", cut_added=[2]), "wrong: told"),
    "an event is told twice": (lambda story: story.tell_more(13, "2-main-value"), "wrong: ['00000000-2-main-value']"),
    "an event is told too late": (
        lambda story: [change(story.feed[story.place(part)], order=22) for part in ("2-main-value", "2-main-cut")],
        "wrong: told [('00000000-2-value-value'",
    ),
    "an event is told too early": (lambda story: change(story.feed[story.place("3-main-value")], order=19), "wrong: "),
    "nobody dropped the watch": (lambda story: story.committed.watches["g"].pop(), "lost: unwatch value"),
    "a watch is lost": (lambda story: story.committed.watches["g"].pop(1), "lost: watch value"),
    "a watch is put twice": (
        lambda story: story.committed.watches["g"].append(Watched("main", ("value", "cut"), "watch-2", 4)),
        "doubled: ",
    ),
    "a watch is nobody's": (lambda story: story.committed.requests.pop("watch-2"), "wrong: the watch main"),
    "a watch looks at something else": (lambda story: change(story.put_main, on=["cut"]), "wrong: the watch main"),
    "a watch is refused and there": (
        lambda story: change(story.put_main, status=429, body={"code": "overloaded"}),
        "wrong: watch main of g was refused",
    ),
    "a watch has seen another value": (lambda story: story.put_main.body.update(value=LOADED + 1), "wrong: watch"),
    "a watch is said to be gone": (
        lambda story: change(story.dropped, invoked_at=0.8, status=404, body={"code": "unknown_watch"}),
        "wrong: unwatch value of g was refused",
    ),
    "a watch is gone by itself": (
        lambda story: (
            change(story.dropped, watch="main", invoked_at=0.8, status=404, body={"code": "unknown_watch"}),
            story.committed.watches["g"].pop(),
        ),
        "lost: unwatch",
    ),
    "who follows is not sent an event": (lambda story: story.told.pop(3), "wrong: event 3 was"),
    "who follows is sent one twice": (lambda story: story.told.insert(3, story.told[2]), "doubled: event 3 was"),
    "who follows is not sent the end": (lambda story: story.told.pop(), "lost: event 00000000-3-deleted"),
    "who follows is sent another": (lambda story: change(story.told[2], data="{}"), "wrong: event 2 was"),
    "who follows is sent what was not committed": (
        lambda story: story.told.append(Told("00000000-4-version", "version", "{}", 9.0)),
        "wrong: event 8 was",
    ),
    "who follows is to begin anew for nothing": (
        lambda story: story.told.insert(3, Told("", "reset", '{"graph": "g"}', 3.5)),
        "wrong: event 3 was ('', 'reset'",
    ),
    "who follows saw what was cut off": (lambda story: story.cut_off(20.0), None),
    "who follows sees later what was cut off": (lambda story: story.cut_off(3.0), "wrong: event 00000000-3-version"),
}


@pytest.mark.parametrize(("harm", "kind"), HARMS.values(), ids=HARMS.keys())
def test_harm_to_feeds_is_seen(harm: Callable[[Watching], object], kind: str | None) -> None:
    see(Watching(), harm, kind)


def test_a_load_of_the_name_tells_the_whole_cut() -> None:
    """What watches see is compared across loads, but for the cut, which is told whole."""
    story = Watching()
    edges = story.put.edges
    assert edges is not None
    again = story._op("put", {"version": 1}, number=5, edges=type(edges)(2, [0, 0], [1, 1], [5 * LOAD_UNIT, 0]))
    story.committed.loads.append(type(story.load)("g", "later", 5, again.edges, order=40))
    about = {"graph": "g", "generation": "00000001", "version": 1}
    story.feed.append(Entry("00000001-1-version", "version", json.dumps(about), 40))
    data = about | {"watch": "main", "old_value": CHANGED[2], "value": 5 * LOAD_UNIT}
    text = json.dumps(data | {"cut_added": [0], "cut_removed": []})
    story.feed += [Entry(f"00000001-1-main-{part}", f"{part}.changed", text, 41) for part in ("value", "cut")]
    story.told += [Told(entry.id, entry.type, entry.data, 20.0) for entry in story.feed[-3:]]
    see(story, lambda story: None, None)
    del story.feed[-1], story.told[-1]
    see(story, lambda story: None, "wrong: told")


def test_two_loads_have_two_generations() -> None:
    story = Watching()
    edges = story.put.edges
    assert edges is not None
    again = story._op("put", {"version": 1}, number=5, edges=type(edges)(2, [0, 0], [1, 1], [5 * LOAD_UNIT, 0]))
    story.committed.loads.append(type(story.load)("g", "later", 5, again.edges, order=40))
    about = json.dumps({"graph": "g", "generation": "00000000", "version": 1})
    story.feed.append(Entry("00000000-1-version", "version", about, 40))
    see(story, lambda story: None, "wrong: two loads are 00000000")


def test_watches_and_events_in_the_log_are_read() -> None:
    event = (b"id", b"g-1-version", b"event", b"version", b"data", b"{}")
    put = (
        (b"HSET", b"p:watches:g", b"main", b'{"watch":"main","on":["value"]}'),
        (b"HSET", b"p:told:g", b"at", b"x-1", b"=main", b"{}"),
        (b"SET", b"p:outcome:job-5", b"{}"),
    )
    drop = ((b"HDEL", b"p:watches:g", b"main"), (b"HDEL", b"p:told:g", b"=main"), (b"SET", b"p:outcome:job-6", b"{}"))
    told = command(b"XADD", b"p:feed:g", b"MAXLEN", b"~", b"100", b"5-1", *event)
    data = load_commands(packed_edges()) + transaction(*put) + told + transaction(*drop)
    found = read_committed(data, "p:")
    assert found.feeds == {"g": [Entry("g-1-version", "version", "{}", 4)]}
    assert found.watches == {"g": [Watched("main", ("value",), "job-5", 3), Watched("main", None, "job-6", 5)]}
    assert ("job-5", "the watch main of g") in found.by_job()
    with pytest.raises(ValueError, match="has 0 outcomes"):
        read_committed(data + transaction(*put[:2]), "p:")


def test_a_job_that_watches_and_was_cancelled() -> None:
    story = Watching()
    story.committed.cancelled.add("watch-2")
    see(story, lambda story: None, "wrong: job watch-2 was cancelled, and did the watch main")
    assert job("j", "queued", cancelling=True)["cancelling"]


def test_events_that_are_cut_short_are_not_read() -> None:
    async def lines() -> AsyncIterator[str]:
        for line in (": from here on", "id: a", "", "", "event: version", "data: {", "data:}", "id: b", "", "data: x"):
            yield line

    async def read() -> list[dict[str, str]]:
        return [fields async for fields in read_events(lines())]

    assert asyncio.run(read()) == [{"id": "a"}, {"event": "version", "data": "{\n}", "id": "b"}]
