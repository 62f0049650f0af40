"""Two depots bring goods to nine stores through Heidelberg, in tonnes an hour: who is supplied from where, at the least
time on the road, and which store is short? Start the service first: `headrace serve`.
"""

# %% A van with 2.5 tonnes in each 300 vehicles: what a street lets through, to one decimal and exact
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from headrace import Client
from matplotlib.collections import LineCollection

with np.load(Path(__file__).with_name("osm-neckar.npz")) as file:
    town = dict(file)
streets = {name: town[name][town["cost"] > 0] for name in ("tail", "head", "cost", "undirected", "capacity")}
streets["capacity"] = streets["capacity"] / 120
supply = {1623: 14.5, 1087: 9.5}  # what a depot can send
demand = {1197: 2.8, 1311: 1.5, 1753: 3.2, 1044: 2.4, 1697: 4.1, 821: 1.9, 403: 2.6, 1749: 3.7, 1698: 3.3}

# %% As much as can be brought, on the quickest roads
with Client() as hr:
    graph = hr.put_graph("logistics", decimals=1, x=town["x"], y=town["y"], **streets)
    plan = graph.min_cost_flow(supply=supply, demand=demand, fields=["flow", "paths", "terminals"])
print(f"{plan.value} of {sum(demand.values()):.1f} t/h arrive, {plan.cost / plan.value:.0f} seconds on the road each.")
print(*(f"{way.amount:>4} t/h from depot {way.source} to store {way.sink}" for way in plan.paths), sep="\n")
for store, arrives in zip(plan.terminals.sinks, plan.terminals.delivered, strict=True):
    if float(arrives) < demand[store]:
        print(f"Store {store} is short of {demand[store] - float(arrives):.1f} t/h.")

# %% The map: depots are squares, stores are circles, and lines are as wide as what is driven there
place = np.c_[town["x"], town["y"]]
lines, flow = place[np.c_[streets["tail"], streets["head"]]], np.zeros(len(streets["tail"]))
flow[plan.flow.edges] = np.abs(np.asarray(plan.flow.amount, float))
figure, axes = plt.subplots(figsize=(9, 7.5), layout="constrained")
axes.add_collection(LineCollection(lines, colors="0.8", linewidths=0.7))
axes.add_collection(LineCollection(lines, linewidths=flow))
axes.plot(*place[list(supply)].T, "s", *place[list(demand)].T, "o", ms=10)
axes.set(aspect=1.54, title="© OpenStreetMap contributors")
figure.savefig("logistics.png", dpi=100)
