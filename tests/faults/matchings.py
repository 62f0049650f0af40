"""Matchings, proven from what a client is told alone: as many edges as vertices that cover all open edges (König)."""

from typing import Any

import numpy as np

from tests.faults.model import State


def matching_faults(body: dict[str, Any], state: State) -> list[str]:
    """What is wrong with an answer about this version; no solver is needed to tell."""
    faults = []
    tail, head = np.array(state.edges.tail), np.array(state.edges.head)
    is_open = state.effective > 0
    matching = body["matching"]
    rows = state.values.rows(matching["edges"])
    if (rows < 0).any():
        return ["there is no such edge"]
    ends = np.concatenate([tail[rows], head[rows]])
    if not body["size"] == len(rows) == len(matching["left"]) == len(matching["right"]):
        faults.append(f"the size is {body['size']}, {len(rows)} edges are listed")
    elif not np.array_equal(np.sort(ends), np.sort(np.array([*matching["left"], *matching["right"]], np.int64))):
        faults.append("the ends are not those of the edges")
    if len(np.unique(ends)) != len(ends):
        faults.append("two edges share a vertex")
    if not is_open[rows].all():
        faults.append("a closed edge is matched")
    cover = np.array([*body["cover"]["left"], *body["cover"]["right"]], np.int64)
    covered = np.isin(tail, cover) | np.isin(head, cover)
    if not covered[is_open].all():
        faults.append("an open edge is not covered")
    if len(cover) != body["size"]:
        faults.append(f"{len(cover)} vertices cover, {body['size']} edges match")
    if not body["certificate"]["valid"]:
        faults.append("the proof is said not to hold")
    return faults
