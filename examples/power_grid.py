"""Which lines may a power grid not lose? Each line of the IEEE 30-bus system is out by itself, then every two of them
(N-1 and N-2), as a transport model in MW. Start the service first: `headrace serve`.
"""

# %% The grid of Alsac and Stott (1974): lines and their ratings in the file, what a bus makes and takes here
import json
from itertools import combinations
from pathlib import Path

import matplotlib.pyplot as plt
from headrace import Client, Scenario

FILE = Path(__file__).with_name("power-ieee30.json")
grid = json.loads(FILE.read_text())
MAKES = {1: 80, 2: 58.3, 13: 40, 22: 50, 23: 26.8, 27: 55}
TAKES = {3: 2.4, 4: 7.6, 7: 22.8, 8: 30, 10: 5.8, 12: 11.2, 14: 6.2, 15: 8.2, 16: 3.5, 17: 9, 18: 3.2, 19: 9.5}
TAKES |= {20: 2.2, 21: 17.5, 24: 8.7, 26: 3.5, 29: 2.4, 30: 10.6}
supply, demand = ({f"bus {bus}": mw for bus, mw in side.items()} for side in (MAKES, TAKES))

# %% Two questions: of 41 scenarios, and of 820
pairs = list(combinations(grid["edge_ids"], 2))
with Client() as hr:
    lines = hr.put_graph("ieee30", FILE)
    one = lines.what_if([Scenario(id=line, close=[line]) for line in grid["edge_ids"]], supply=supply, demand=demand)
    two = lines.what_if([Scenario(close=pair) for pair in pairs], supply=supply, demand=demand)
alone = {row.id: -row.change for row in one if row.change}
lost = {line: max(-two[row].change for row, pair in enumerate(pairs) if line in pair) for line in grid["edge_ids"]}
print(f"{one.value} of {sum(TAKES.values()):.1f} MW arrive. By itself the loss of these lines costs, in MW: {alone}")
print(f"Of {len(pairs)} pairs {sum(bool(row.change) for row in two)} cost something, {max(lost.values())} MW at most.")

# %% The map: lines as wide as their rating, the redder the more the worst pair with that line costs
place = {bus: at for bus, *at in zip(grid["vertex_labels"], grid["x"], grid["y"], strict=True)}
figure, axes = plt.subplots(figsize=(8, 7), layout="constrained")
for line, *ends, mw in zip(grid["edge_ids"], grid["tail"], grid["head"], grid["capacity"], strict=True):
    red = plt.cm.YlOrRd(float(lost[line] / max(lost.values())))
    axes.plot(*zip(place[ends[0]], place[ends[1]], strict=True), color=red, lw=1 + mw / 25)
for bus, at in place.items():
    axes.text(*at, bus[4:], color="w", bbox={"fc": "tab:green" if bus in supply else "0.2"})
figure.savefig("power_grid.png", dpi=100)
