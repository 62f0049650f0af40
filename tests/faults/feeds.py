"""The change feed of each name, held against the versions that there were, and against what a follower was sent.

Every version has its event; what a watch sees is told once of each version, before the next one, if it has changed;
nothing is told of what was not committed. A version whose graph is replaced or deleted may be left untold, and so may
the last one before each cut of the log: the cut may have taken what was told, and left the version.
"""

import json
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from typing import Any, Final, TypeAlias

from tests.faults.aof import Committed, Entry, Load, Watched
from tests.faults.history import History, Op, Told
from tests.faults.model import Model, State

IDS_TOLD: Final = 100
"""Edges in each list of an event."""

MOMENT_S: Final = 1.0
"""How long a follower may still read what it was sent before a cut of the log."""

Happening: TypeAlias = State | Load | Watched | Entry
Event: TypeAlias = tuple[str, str, Any]
"""Its id, its type and its data."""


def check_feeds(history: History, committed: Committed, model: Model) -> list[str]:
    """What is wrong with the feeds of all names, and with what was said of watches."""
    faults = []
    for graph in sorted({op.graph for op in history.ops} | committed.feeds.keys()):
        feed = committed.feeds.get(graph, [])
        faults += _Feed(graph, committed, model, len(history.cuts)).faults()
        faults += followed_faults(history, graph, feed)
    return faults + _watch_faults(history, committed)


class _Feed:
    """Goes through what has happened to one name, and knows what its watches have been told."""

    def __init__(self, graph: str, committed: Committed, model: Model, n_cut_off: int) -> None:
        """`n_cut_off`: how many versions may have been told by what was cut off the log."""
        self._n_cut_off = n_cut_off
        self._graph, self._committed, self._states = graph, committed, model.states.get(graph, [])
        self._found: list[str] = []
        self._watches: dict[str, tuple[str, ...]] = {}
        self._seen: dict[str, tuple[int, list[int]]] = {}
        """By watch: the value and the rows of the cut that it was told of."""
        self._now: State | None = None
        self._is_told = False
        """Whether the present version was."""
        self._told_load: int | None = None
        """Place of the load whose version was told last."""
        self._generations: dict[int, str] = {}
        """By place of the load."""
        self._announced: str | None = None
        """What the transaction of a version or a removal must also have told."""

    def faults(self) -> list[str]:
        for _, group in groupby(self._happenings(), key=lambda each: each[0]):
            together = [each[1] for each in group]
            for each in together:
                if isinstance(each, State):
                    self._committed_version(each)
                elif isinstance(each, Load):
                    self._announced, self._now = "graph.deleted", None
                elif isinstance(each, Watched):
                    self._changed_watch(each)
            self._told([each for each in together if isinstance(each, Entry)])
        return [f"{fault}, in the feed of {self._graph}" for fault in self._found]

    def _happenings(self) -> Iterator[tuple[int, Happening]]:
        """In the order of their transactions."""
        found: list[tuple[int, Happening]] = [(state.order, state) for state in self._states]
        loads = [load for load in self._committed.loads if load.graph == self._graph]
        found += [(load.deleted_at, load) for load in loads if load.deleted]
        found += [(change.order, change) for change in self._committed.watches.get(self._graph, [])]
        found += [(entry.order, entry) for entry in self._committed.feeds.get(self._graph, [])]
        yield from sorted(found, key=lambda each: each[0])

    def _committed_version(self, state: State) -> None:
        if self._now is not None and self._now.load == state.load:
            self._must_be_told(is_excusable=True)
        self._announced, self._now, self._is_told = "version", state, False

    def _changed_watch(self, change: Watched) -> None:
        if self._now is None:
            self._found.append(f"wrong: the watch {change.watch} of no graph")
            return
        self._must_be_told()
        if change.on is None:
            self._watches.pop(change.watch, None)
            self._seen.pop(change.watch, None)
        else:
            self._watches[change.watch] = change.on
            self._seen[change.watch] = self._now.value, self._now.cut
            self._is_told, self._told_load = True, self._now.load

    def _must_be_told(self, *, is_excusable: bool = False) -> None:
        """Before anything follows: an update of the same load, or a change of the watches.

        Who changes the watches has looked at what they were told; before an update that may have been cut off.
        """
        if self._is_told or not self._watches:
            return
        missing = [id_ for id_, _, _ in self._to_tell()]
        if missing and is_excusable and self._n_cut_off:
            self._n_cut_off -= 1
            return
        if missing:
            self._found.append(f"lost: {missing} was never told")
        self._note()

    def _note(self) -> None:
        assert self._now is not None
        self._seen = dict.fromkeys(self._watches, (self._now.value, self._now.cut))
        self._is_told, self._told_load = True, self._now.load

    def _told(self, entries: list[Entry]) -> None:
        """The events of one transaction."""
        kind, self._announced = self._announced, None
        if kind is not None:
            events, entries = entries[:1], entries[1:]
            self._check_announced(kind, events[0] if events else None)
        if not entries:
            return
        told = [(entry.id, entry.type, json.loads(entry.data)) for entry in entries]
        if self._now is None or self._is_told or not self._watches:
            self._found.append(f"wrong: {[id_ for id_, _, _ in told]} was told of nothing new")
            return
        wanted = self._to_tell()
        if told != wanted:
            self._found.append(f"wrong: told {told}, not {wanted}")
        self._note()

    def _check_announced(self, kind: str, entry: Entry | None) -> None:
        """A version, or a removal, and nothing else is told in its own transaction."""
        state = self._now if self._now is not None else self._last_before(entry)
        if entry is None or state is None:
            self._found.append(f"lost: no event {kind} of {state and state.key}")
            return
        generation = self._generations.setdefault(state.load, entry.id.partition("-")[0])
        if len({*self._generations.values()}) < len(self._generations):
            self._found.append(f"wrong: two loads are {generation}")
        suffix = "deleted" if kind == "graph.deleted" else kind
        data = {"graph": self._graph, "generation": generation, "version": state.version}
        right = f"{generation}-{state.version}-{suffix}", kind, data
        if (entry.id, entry.type, json.loads(entry.data)) != right:
            self._found.append(f"wrong: told {entry.id} {entry.type} {entry.data}, not {right}")

    def _last_before(self, entry: Entry | None) -> State | None:
        """What was there until the removal that the entry tells."""
        return max((s for s in self._states if entry and s.order < entry.order), key=lambda s: s.order, default=None)

    def _to_tell(self) -> list[Event]:
        """What has changed for the watches since they were told last."""
        state, events = self._now, []
        assert state is not None
        generation, same = self._generations.get(state.load), self._told_load == state.load
        tag = f"{generation}-{state.version}"
        for watch, on in sorted(self._watches.items()):
            value, cut = self._seen[watch]
            about = {"graph": self._graph, "generation": generation, "version": state.version, "watch": watch}
            data = about | {"old_value": value, "value": state.value}
            data |= {"lower": "ignored"} if state.least.any() else {}
            if "cut" in on:
                data |= _changes(state, cut if same else [])
            if "value" in on and value != state.value:
                events.append((f"{tag}-{watch}-value", "value.changed", data))
            if "cut" in on and not (same and cut == state.cut):
                events.append((f"{tag}-{watch}-cut", "cut.changed", data))
        return events


def _changes(state: State, before: list[int]) -> dict[str, Any]:
    """What came into the cut and what left it, by row, as edges are named."""
    added, removed = sorted({*state.cut} - {*before}), sorted({*before} - {*state.cut})
    ids = state.edges.ids
    names = [[row if ids is None else ids[row] for row in rows[:IDS_TOLD]] for rows in (added, removed)]
    more = {"truncated": True} if max(len(added), len(removed)) > IDS_TOLD else {}
    return {"cut_added": names[0], "cut_removed": names[1]} | more


def followed_faults(history: History, graph: str, feed: list[Entry]) -> list[str]:
    """What is wrong with what who followed the feed was sent: all of it, once and in order, through all faults."""
    told, faults = history.told.get(graph, []), []
    if history.cuts:
        faults += _after_cut_faults(history, told, feed)
    else:
        sent = [(each.id, each.type, each.data) for each in told]
        kept = [(entry.id, entry.type, entry.data) for entry in feed]
        wrong = next((i for i, one in enumerate(sent) if kept[i : i + 1] != [one]), None)
        if wrong is not None:
            wanted = kept[wrong][0] if wrong < len(kept) else "nothing"
            kind = "doubled" if sent[wrong] in sent[:wrong] else "wrong"
            faults.append(f"{kind}: event {wrong} was {sent[wrong]}, not {wanted}")
    last = history.followed_to.get(graph)
    if last is not None and last not in {each.id for each in told}:
        faults.append(f"lost: event {last} was not sent")
    return [f"{fault}, to who follows {graph}" for fault in faults]


def _after_cut_faults(history: History, told: list[Told], feed: list[Entry]) -> list[str]:
    """Events of what was cut off may have been sent before. What comes later is in the feed, in its order."""
    places = {(entry.id, entry.type, entry.data): i for i, entry in enumerate(feed)}
    since, at, faults = max(cut.ended_at for cut in history.cuts) + MOMENT_S, -1, []
    for each in told:
        place = places.get((each.id, each.type, each.data))
        if each.at < since or each.type == "reset":
            continue
        if place is None:
            faults.append(f"wrong: event {each.id} {each.data} is of nothing that is there")
        elif place <= at:
            faults.append(f"doubled: event {each.id}")
        else:
            at = place
    return faults


def _watch_faults(history: History, committed: Committed) -> list[str]:
    """Each watch that was put or dropped is somebody's, and what was acknowledged was done once."""
    faults, done = [], Counter[str]()
    asked = {op.request: op for op in history.ops if op.kind in ("watch", "unwatch")}
    for graph, changes in committed.watches.items():
        for change in changes:
            op = asked.get(committed.requests.get(change.job, ""))
            if op is None or (op.graph, op.watch, tuple(op.on or ())) != (graph, change.watch, change.on or ()):
                faults.append(f"wrong: the watch {change.watch} of {graph}, {change.on}, is nobody's")
            else:
                done[op.request] += 1
    return faults + [text for op in asked.values() for text in _once_faults(op, done[op.request], history)]


def _once_faults(op: Op, done: int, history: History) -> list[str]:
    what = f"{op.kind} {op.watch} of {op.graph}"
    if done > 1:
        return [f"doubled: {what}"]
    if history.survives(op) and op.acknowledged and not done:
        return [f"lost: {what}"]
    if history.survives(op) and done and not op.acknowledged and not op.unknown:
        return [f"wrong: {what} was refused with {op.code} and yet committed"]
    return []
