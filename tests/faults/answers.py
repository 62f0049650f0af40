"""What is wrong with one answer, if it is about one version, and whether a refusal may be about it."""

from typing import Any, Final

from tests.faults.cheapest import cheapest_faults
from tests.faults.circulations import circulation_faults
from tests.faults.exports import export_faults
from tests.faults.history import PAGE_ROWS, Op
from tests.faults.matchings import matching_faults
from tests.faults.model import State
from tests.faults.parts import partition_faults
from tests.faults.scenarios import what_if_faults
from tests.faults.structure import doomed, is_there, n_missing_edges

SHOWN_ROWS: Final = 50
"""Of each column that a fault tells, beside the number of all."""

REFUSALS: Final = ("unknown_edge", "unknown_vertex", "invalid_body")
"""What a change of structure is told that does not go with the graph."""


def answer_faults(op: Op, state: State) -> list[str]:
    """What is wrong with an answer about this version."""
    body = op.body
    if op.kind == "max-flow":
        return _flow_faults(body, state)
    if op.kind == "watch":
        told = op.watch, state.value, op.on
        return [] if (body["watch"], body["value"], body["on"]) == told else [f"it is {told}"]
    if op.kind == "what-if":
        return what_if_faults(body, state)
    if op.kind == "matching":
        return matching_faults(body, state)
    if op.kind == "min-cost-flow":
        return cheapest_faults(body, op.value, state)
    if op.kind == "circulation":
        return circulation_faults(body, op.lower, state)
    if op.kind == "partition":
        return partition_faults(body, state)
    if op.kind == "capacities":
        return page_faults(body, state)
    if op.kind == "export":
        return export_faults(body, state)
    if op.kind in ("costs", "lower") and body["flow_states"]:
        return [f"a change of {op.kind} solves no flow"]
    return _update_faults(op, state) if op.kind in ("patch", "edges", "vertices", "lower", "restore") else []


def _flow_faults(body: dict[str, Any], state: State) -> list[str]:
    rows = state.values.rows(body["cut"]["edges"])
    cut = int(state.effective[rows[rows >= 0]].sum())
    pays = [state.values.limits.get(vertex) for vertex in body["cut"].get("vertices", [])]
    if pays != body["cut"].get("vertex_pays", []):
        return [f"the vertices of the cut pay {pays}"]
    cut += sum(units or 0 for units in pays)
    right = body["value"] == cut == state.value and body["certificate"]["valid"]
    return [] if right else [f"the value is {state.value}, the cut {cut}"]


def page_faults(body: dict[str, Any], state: State) -> list[str]:
    """What is wrong with the first page of capacities: of `PAGE_ROWS` rows, those of deleted edges left out."""
    seen = state.values.seen
    m, n_shown = len(seen.capacity), int((~state.values.gone[:PAGE_ROWS]).sum())
    right: dict[str, Any] = {"tail": seen.tail, "head": seen.head, "capacity": seen.capacity, "closed": seen.closed}
    right |= {"edge_ids": list(range(m)) if seen.ids is None else seen.ids}
    right |= {} if seen.cost is None else {"cost": seen.cost}
    right |= {} if seen.lower is None else {"lower": seen.lower}
    right = {name: column[:n_shown] for name, column in right.items()}
    faults = [
        f"{name} is {column[:SHOWN_ROWS]}, {len(column)} rows"
        for name, column in right.items()
        if body.get(name) != column
    ]
    faults += [f"the graph has no {name}" for name in ("cost", "lower") if name in body and name not in right]
    wanted = PAGE_ROWS if len(state.own) > PAGE_ROWS else None
    return faults if body["next"] == wanted else [*faults, f"the next page begins at {wanted}"]


def _update_faults(op: Op, state: State) -> list[str]:
    body, faults = op.body, []
    for solved in body["flow_states"]:
        right = state.matching if solved["kind"] == "matching" else state.value
        if solved["value"] not in (None, right):
            faults.append(f"the value of a {solved['kind']} is {right}")
    if op.kind != "patch" and body["applied"] != state.n_changed:
        faults.append(f"{state.n_changed} edges have changed")
    if op.kind == "patch":
        return faults
    if op.kind == "edges" and body["skipped"] != state.n_skipped:
        faults.append(f"{state.n_skipped} edges were passed over")
    return faults + (_counts_faults(body, state) if op.kind == "edges" else [])


def _counts_faults(body: dict[str, Any], state: State) -> list[str]:
    """What is wrong with the numbers that inserted vertices and edges are said to have got."""
    assert state.change is not None
    assert state.change.structure is not None
    change = state.change.structure
    inserted: dict[str, int] = {"vertices": change.n_vertices, "edges": len(change.tail)}
    if change.n_vertices:
        inserted["first_vertex"] = state.edges.n_vertices - change.n_vertices
    if change.tail and not state.values.has_ids:
        inserted["first_edge"] = len(state.own) - len(change.tail)
    right = inserted, {"edges": len(change.deleted), "vertices": len(change.deleted_vertices)}
    return [] if (body["inserted"], body["deleted"]) == right else [f"inserted and deleted were {right}"]


def may_refuse(op: Op, state: State) -> bool:
    """Whether a change of structure may be refused for what it names, while the graph is in this state."""
    assert op.batch is not None
    if op.code == "unknown_edge":
        return not op.skips and n_missing_edges(state.values, op.batch) > 0
    inserted = [operation for operation in op.batch if "tail" in operation]
    if op.code == "unknown_vertex":
        n_vertices = state.edges.n_vertices + sum(operation.get("count", 0) for operation in op.batch)
        lost, named = {*state.values.lost, *doomed(op.batch)}, doomed(op.batch)
        if not op.skips and not all(is_there(state.values, vertex) for vertex in named):
            return True
        ends = [vertex for each in inserted for vertex in (*each["tail"], *each["head"])]
        return any(vertex >= n_vertices or vertex in lost for vertex in ends)
    return any(("edge_ids" in each) != state.values.has_ids for each in inserted)
