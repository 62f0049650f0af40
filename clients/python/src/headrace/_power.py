"""Power networks of pandapower as graphs. pandapower is not needed: its networks are tables."""

import math
from typing import Any

import numpy as np

from headrace._columns import GraphColumns
from headrace._errors import InvalidInput

PLACES = 3
"""Kilovolt-amperes of what is given in megavolt-amperes."""

NOT_READ = {
    "trafo3w": "transformers with three windings are not read: take each as three with two, at a new bus",
    "impedance": "impedances are not read, as nothing says what they carry: take each as a line, or out of service",
    "dcline": "DC lines are not read, as they have losses: take each as a line, or out of service",
}
"""Tables of what joins buses and would be missing, and what to do."""


class Grid:
    """A graph for `put_graph`, made by `from_pandapower`: vertices are called by the indices of their buses."""

    def __init__(self, columns: GraphColumns) -> None:
        self.columns = columns
        """What `put_graph` takes. Edges are called "line 3", "trafo 0", "switch 7"."""


def from_pandapower(net: Any) -> Grid:
    """Lines, transformers with two windings and switches between buses, with what each can carry in MVA.

    A line carries ``sqrt(3) * vn_kv * max_i_ka * parallel * df``, a transformer ``sn_mva * parallel * df``, a closed
    switch between buses any amount. What is out of service, itself or a bus at one of its ends, and what has an open
    switch at one of its ends, is closed: `reopen` lets it through. It is a transport model: voltages and Kirchhoff's
    second law are not in it.

    Raises `InvalidInput` for a network with transformers of three windings, impedances or DC lines in service.
    """
    for name, told in NOT_READ.items():
        if any(part.get("in_service", True) for _, part in _table(net, name).iterrows()):
            raise InvalidInput(told)
    voltage = net.bus["vn_kv"]
    rows: list[tuple[str, int, int, float, bool]] = []
    dead = {int(at) for at, bus in net.bus.iterrows() if not bus.get("in_service", True)}
    opened = {(str(s.et), int(s.element)) for _, s in _table(net, "switch").iterrows() if not s.closed and s.et != "b"}
    for at, line in net.line.iterrows():
        amount = math.sqrt(3) * voltage[line.from_bus] * line.max_i_ka * line.get("parallel", 1) * line.get("df", 1)
        closed = not line.in_service or ("l", at) in opened
        rows.append((f"line {at}", int(line.from_bus), int(line.to_bus), amount, closed))
    for at, trafo in _table(net, "trafo").iterrows():
        amount = trafo.sn_mva * trafo.get("parallel", 1) * trafo.get("df", 1)
        closed = not trafo.in_service or ("t", at) in opened
        rows.append((f"trafo {at}", int(trafo.hv_bus), int(trafo.lv_bus), amount, closed))
    for at, switch in _table(net, "switch").iterrows():
        if switch.et == "b":
            rows.append((f"switch {at}", int(switch.bus), int(switch.element), math.inf, not switch.closed))
    rows = [(name, a, b, amount, closed or a in dead or b in dead) for name, a, b, amount, closed in rows]
    ids, tail, head, capacity, closed_rows = map(list, zip(*rows, strict=True)) if rows else ([], [], [], [], [])
    return Grid(
        {
            "vertex_labels": [int(bus) for bus in net.bus.index],
            "tail": tail,
            "head": head,
            "capacity": [round(float(amount), PLACES) for amount in capacity],
            "undirected": True,
            "closed": np.array(closed_rows, bool),
            "edge_ids": ids,
        }
    )


def _table(net: Any, name: str) -> Any:
    """A table of the network; one that it has not is empty."""
    found = net.get(name) if hasattr(net, "get") else getattr(net, name, None)
    return net.bus.iloc[:0] if found is None else found
