"""Districts for dispatchers: the streets of Heidelberg in six parts with about as many junctions each, few streets
between them, and kept so as streets are closed and built. Start the service first: `headrace serve`.
"""

from pathlib import Path

import numpy as np
from headrace import Client, NewEdges

ROADS = Path(__file__).with_name("osm-heidelberg.npz")
with np.load(ROADS) as roads:
    inner = (roads["src"] < roads["n"] - 2) & (roads["dst"] < roads["n"] - 2)  # without the super source and sink
    tail, head, capacity = (roads[name][inner] for name in ("src", "dst", "cap"))

with Client() as hr:
    streets = hr.put_graph("districts", tail=tail, head=head, capacity=capacity)
    plan = streets.partition(6, fields=["parts", "cut"])
    print(f"{plan.mode}: {plan.n_vertices} junctions, {plan.cut_edges} street sections between districts")
    before = plan.part_of

    closed = list(plan.edges or ())[:5]
    streets.close(closed)
    bridge = NewEdges(tail=[10, 20], head=[20, 10], capacity=[600, 600])
    streets.restructure(edges=bridge)
    plan = streets.partition(6)
    kept = sum(before[junction] == district for junction, district in plan.part_of.items())
    print(f"{plan.mode}: {kept} of {len(before)} junctions stay where they are, {plan.cut_edges} sections between")

    busy = {int(junction): 20 for junction in np.random.default_rng(1).choice(tail, 500, replace=False)}
    plan = streets.partition(6, vertex_weight=busy)
    print(f"{plan.mode}: of equal demand, {plan.part_weight}, at most {plan.limit} each")
