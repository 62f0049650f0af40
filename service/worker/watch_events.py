"""What is told of a watch at a version: what has changed since the version that was told before."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.protocol import WatchArgs
from service.store.feed.record import CUT_CHANGED, VALUE_CHANGED, CutSeen, Event, Seen, version_tag
from service.worker import json_writer
from service.worker.graph import Graph
from service.worker.json_writer import Raw

IDS_TOLD: Final = 100
"""Edges that one event lists, of those that came into the cut and of those that left it."""

TEXT_TOLD: Final = 4096
"""Characters of the ids in each of these lists."""


def events_of(graph: Graph, args: WatchArgs, before: Seen | None, now: Seen, *, same_load: bool) -> list[Event]:
    """The events of one watch. Rows of another load are not compared: after a load the whole cut is told."""
    if before is None:
        return []
    old_cut = before.cut if same_load else None
    value_changed = "value" in args.on and (before.value, before.error) != (now.value, now.error)
    cut_changed = ("cut" in args.on and _digest(before.cut) != _digest(now.cut)) or (
        now.cut is not None and not same_load
    )
    if not value_changed and not cut_changed:
        return []
    data: dict[str, object] = {
        "graph": graph.name,
        "generation": graph.generation,
        "version": graph.version,
        "watch": args.watch,
        "old_value": _amount(before),
        "value": _amount(now),
    }
    data |= {} if now.error is None else {"error": now.error}
    data |= {"lower": "ignored"} if now.ignores_lower else {}
    data |= _changes(graph, old_cut, now.cut) if "cut" in args.on else {}
    text, tag = json_writer.dumps(data), version_tag(graph.graph_id, graph.version)
    told = [Event(f"{tag}-{args.watch}-value", VALUE_CHANGED, text)] if value_changed else []
    return [*told, Event(f"{tag}-{args.watch}-cut", CUT_CHANGED, text)] if cut_changed else told


def described(graph: Graph, args: WatchArgs, seen: Seen) -> dict[str, object]:
    """A watch, and what it sees now."""
    told = {"version": graph.version, "generation": graph.generation, "value": Raw(seen.value or "null")}
    kept = {"lower": "ignored"} if seen.ignores_lower else {}
    return {"graph": graph.name} | args.described() | told | {"error": seen.error} | kept


def _digest(cut: CutSeen | None) -> bytes:
    return b"" if cut is None else cut.digest


def _amount(seen: Seen) -> Raw | None:
    return None if seen.value is None else Raw(seen.value)


def _changes(graph: Graph, before: CutSeen | None, now: CutSeen | None) -> dict[str, object]:
    """Edges that came into the cut and edges that left it, by id: the first of them where there are many."""
    if (before is not None and before.rows is None) or (now is not None and now.rows is None):
        return {"cut_added": [], "cut_removed": [], "truncated": True}
    added, added_cut = _ids(graph, np.setdiff1d(_rows(now), _rows(before)))
    removed, removed_cut = _ids(graph, np.setdiff1d(_rows(before), _rows(now)))
    data: dict[str, object] = {"cut_added": added, "cut_removed": removed}
    return data | ({"truncated": True} if added_cut or removed_cut else {})


def _rows(cut: CutSeen | None) -> NDArray[np.int64]:
    return np.empty(0, np.int64) if cut is None or cut.rows is None else cut.rows


def _ids(graph: Graph, rows: NDArray[np.int64]) -> tuple[list[int] | list[str], bool]:
    """The ids of the first edges, and whether there are more."""
    ids = graph.network.edge_ids.of(rows[:IDS_TOLD])
    kept, left = 0, TEXT_TOLD
    for one in ids:
        left -= len(str(one))
        if left < 0:
            break
        kept += 1
    return ids[:kept], kept < len(rows)
