"""How reliable is a network? Each link of the Abilene backbone is down one per cent of the time: how often have Seattle
and New York less than 10 Gbit/s, and which link matters most? Start the service first: `headrace serve`.
"""

# %% The backbone of 2004: 11 cities, and 14 links of 10 Gbit/s each way
import json
from itertools import chain, combinations
from pathlib import Path

import matplotlib.pyplot as plt
from headrace import Client, Scenario

FILE, DOWN, NEEDS, MOST = Path(__file__).with_name("backbone-abilene.json"), 0.01, 10, 4
net = json.loads(FILE.read_text())
links = net["edge_ids"]

# %% Every way in which up to four links are down, in one question of 1,470 scenarios
failures = list(chain.from_iterable(combinations(links, size) for size in range(1, MOST + 1)))
with Client() as hr:
    rows = hr.put_graph("abilene", FILE).what_if([Scenario(close=down) for down in failures])

# %% How likely each is. Failures of five links and more were not tried: that likely are they together, at most
likely = {down: DOWN ** len(down) * (1 - DOWN) ** (len(links) - len(down)) for down in [(), *failures]}
cut_off = [down for down, row in zip(failures, rows, strict=True) if row.value < NEEDS]
low, untried = sum(likely[down] for down in cut_off), 1 - sum(likely.values())
minutes = 525_600 * low, 525_600 * (low + untried)
share = {link: sum(likely[down] for down in cut_off if link in down) / low for link in links}
print(f"{rows.value} Gbit/s with all links; less than {NEEDS} for {minutes[0]:.1f} to {minutes[1]:.1f} minutes a year.")
print(f"In {max(share.values()):.0%} of these {max(share, key=share.get)} is down.")

# %% The map: the redder and wider a link, the more often it is down when the two are cut off
place = {city: at for city, *at in zip(net["vertex_labels"], net["x"], net["y"], strict=True)}
figure, axes = plt.subplots(figsize=(9, 5))
for link, one, other in zip(links, net["tail"], net["head"], strict=True):
    red = plt.cm.YlOrRd(0.2 + share[link])
    axes.plot(*zip(place[one], place[other], strict=True), color=red, lw=2 + 12 * share[link])
for city, at in place.items():
    axes.annotate(city, at, xytext=(6, 6), textcoords="offset points")
figure.savefig("reliability.png", dpi=100, bbox_inches="tight")
