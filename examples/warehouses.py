"""Which stores do eight warehouses reach, by which routes, and what keeps the others short?

The streets of Heidelberg, in vehicles an hour. Start the service first: `headrace serve`.
"""

from pathlib import Path

import headrace
import numpy as np

ROADS = Path(__file__).with_name("osm-heidelberg.npz")
with np.load(ROADS) as roads:
    tail, head = roads["src"], roads["dst"]
    crossings = np.flatnonzero(np.bincount(tail, roads["cap"])[:-1] >= 3_600)  # junctions of wide streets
places = np.random.default_rng(10).choice(crossings, 8 + 39, replace=False).tolist()
supply, demand = dict.fromkeys(places[:8], 3_000), dict.fromkeys(places[8:], 600)

with headrace.Client() as hr:
    streets = hr.put_graph("warehouses", ROADS)
    plan = streets.max_flow(supply=supply, demand=demand, fields=["cut", "paths"], top=10_000)
assert plan.cut
assert plan.paths
assert plan.terminals

routes: dict[tuple[headrace.Vertex, headrace.Vertex], list[headrace.Path]] = {}
for path in plan.paths:
    routes.setdefault((path.source, path.sink), []).append(path)
print("warehouse -> store  vehicles/h  routes  streets of the largest")
for (warehouse, store), ways in sorted(routes.items()):
    print(f"{warehouse:9} -> {store:<5} {sum(way.amount for way in ways):11,} {len(ways):7} {len(ways[0].edges):7}")
for store, arrives in zip(plan.terminals.sinks, plan.terminals.delivered, strict=True):
    if arrives < demand[store]:
        print(f"Store {store} is short of {demand[store] - arrives:,}.")
print(f"{plan.value:,} of {sum(demand.values()):,} vehicles/h arrive. No plan brings more before one of these grows:")
for street, pays in zip(plan.cut.edges, plan.cut.pays, strict=True):
    print(f"  street {street} from junction {tail[street]} to {head[street]}: {pays:,}")
print(f"  what warehouses {', '.join(map(str, plan.cut.sources))} send")
print(f"  what stores {', '.join(map(str, plan.cut.sinks))} want")
