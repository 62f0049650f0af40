"""Clear the north bank of Heidelberg: how many vehicles an hour get over the Neckar, where do they queue, and which
streets would have to be wider for a lane more? Start the service first: `headrace serve`.
"""

# %% The town, as OpenStreetMap has it: a row for each street, with its capacity in vehicles an hour
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from headrace import Client
from matplotlib.collections import LineCollection

TOWN, HOMES, LANE = Path(__file__).with_name("osm-neckar.npz"), 9_000, 900
with np.load(TOWN) as file:
    town = dict(file)
name, length = town["edge_ids"], town["cost"]
real = length > 0  # the rows without a length lead from the homes into the streets, and out of the map

# %% What gets out, the streets that bound it, what the loss of one of all streets costs, and the cheapest lane more
with Client() as hr:
    streets = hr.put_graph("evacuation", TOWN)
    plan = streets.max_flow(fields=["cut", "flow"])
    worst = streets.closure_study(candidates=name[real], top=1)[0]
    wider = streets.capacity_expansion(LANE, edges=name[real], price=length[real])
print(f"{plan.value:,} vehicles/h, proven: {plan.certificate.valid}: {HOMES / plan.value:.1f} h until all are out.")
print(f"They queue at {', '.join(plan.cut.edges)}. Without {worst.edges[0]} it would be {worst.value:,}.")
print(f"{wider.value:,} if these are wider: {', '.join(wider.edges)}; then it takes {HOMES / wider.value:.1f} h.")

# %% The map: the wider a line the more drive there; orange is where they queue, dotted what would be wider
flow = dict(zip(plan.flow.edges, plan.flow.amount, strict=True))
lines = np.c_[town["x"], town["y"]][np.c_[town["tail"], town["head"]]]
width = np.array([abs(flow.get(street, 0)) / 900 for street in name])
figure, axes = plt.subplots(figsize=(9, 7.5), layout="constrained")
for chosen, style in [(real, {"colors": "0.8", "linewidths": 0.7}), (real, {"linewidths": width[real]})]:
    axes.add_collection(LineCollection(lines[chosen], **style))
axes.add_collection(LineCollection(lines[np.isin(name, plan.cut.edges)], linewidths=7, colors="tab:orange"))
axes.add_collection(LineCollection(lines[np.isin(name, wider.edges)], linewidths=2, colors="k", linestyles=":"))
axes.set(aspect=1.54, title=f"{plan.value:,} vehicles/h leave the north bank (© OpenStreetMap contributors)")
figure.savefig("evacuation.png", dpi=100)
