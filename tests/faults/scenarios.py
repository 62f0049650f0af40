"""What-if questions: each row is the maximum flow of the version that it names, edges closed or a vertex narrow."""

from dataclasses import replace
from typing import Any, Final

import numpy as np

from tests.faults.model import State

CLOSED: Final = ((2,), (3, 4), ())
"""Edges that every graph has, and that are closed in one scenario each; none is a mark."""

NARROWED: Final = {2: 7}
"""What one more scenario makes the capacity of a vertex that every graph has, and that is no end of it."""

SCENARIOS: Final = [{"id": i, "batch": [{"edges": [*rows], "op": "close"}]} for i, rows in enumerate(CLOSED)]
NARROW: Final = {"id": len(CLOSED), "vertex_batch": [{"vertices": [*NARROWED], "set": [*NARROWED.values()]}]}
BODY: Final = {"scenarios": [*SCENARIOS, NARROW]}


def what_if_faults(body: dict[str, Any], state: State) -> list[str]:
    """What is wrong with an answer about this version."""
    faults = [] if body["base"]["value"] == state.value else [f"the value is {state.value}"]
    told = [(row["row"], row["id"], row.get("value"), row.get("change")) for row in body["answers"]]
    tried = []
    for rows in CLOSED:
        closed = state.closed | np.isin(np.arange(len(state.closed)), state.values.rows([*rows]))
        tried.append(state.values._replace(closed=closed))
    tried.append(state.values._replace(limits={**state.values.limits, **NARROWED}))
    values = [replace(state, values=changed).value for changed in tried]
    wanted = [(number, number, value, value - state.value) for number, value in enumerate(values)]
    if told != wanted:
        faults.append(f"the rows are {wanted}")
    if not all(row.get("certificate", {}).get("valid") for row in body["answers"]):
        faults.append("a proof is missing, or said not to hold")
    return faults
