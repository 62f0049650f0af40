"""What-if questions: each row is the maximum flow of the version that it names, with some edges closed."""

from dataclasses import replace
from typing import Any, Final

import numpy as np

from tests.faults.model import State

CLOSED: Final = ((2,), (3, 4), ())
"""Edges that every graph has, and that are closed in one scenario each; none is a mark."""

BODY: Final = {"scenarios": [{"id": i, "batch": [{"edges": [*rows], "op": "close"}]} for i, rows in enumerate(CLOSED)]}


def what_if_faults(body: dict[str, Any], state: State) -> list[str]:
    """What is wrong with an answer about this version."""
    faults = [] if body["base"]["value"] == state.value else [f"the value is {state.value}"]
    told = [(row["row"], row["id"], row.get("value"), row.get("change")) for row in body["answers"]]
    wanted = []
    for number, rows in enumerate(CLOSED):
        closed = state.closed | np.isin(np.arange(len(state.closed)), state.values.rows([*rows]))
        value = replace(state, values=state.values._replace(closed=closed)).value
        wanted.append((number, number, value, value - state.value))
    if told != wanted:
        faults.append(f"the rows are {wanted}")
    if not all(row.get("certificate", {}).get("valid") for row in body["answers"]):
        faults.append("a proof is missing, or said not to hold")
    return faults
