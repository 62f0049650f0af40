"""How much traffic gets from ten places in Heidelberg to ten others, and on which streets must nobody dig?

A hundred questions at once, in vehicles an hour. Start the service first: `headrace serve`.
"""

import asyncio
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
from headrace import AsyncClient, AsyncGraph, EdgeId, Exact

ROADS = Path(__file__).with_name("osm-heidelberg.npz")
with np.load(ROADS) as roads:
    tail, head, capacity = roads["src"], roads["dst"], roads["cap"]
crossings = np.flatnonzero(np.bincount(tail, capacity)[:-1] >= 4_500)  # junctions of wide streets
places = np.random.default_rng(3).choice(crossings, 20, replace=False).tolist()
starts, ends = places[:10], places[10:]


async def bottleneck(streets: AsyncGraph, start: int, end: int) -> tuple[Exact, list[EdgeId]]:
    cut = (await streets.min_cut(start, end)).cut
    return (cut.value, list(cut.edges)) if cut else (0, [])


async def ask() -> list[tuple[Exact, list[EdgeId]]]:
    async with AsyncClient() as hr:
        streets = await hr.put_graph("heidelberg-pairs", ROADS)
        return await asyncio.gather(*(bottleneck(streets, *pair) for pair in product(starts, ends)))


found = asyncio.run(ask())
print("vehicles/h" + "".join(f"{end:7}" for end in ends))
for i, start in enumerate(starts):
    print(f"{start:10}" + "".join(f"{value:7,}" for value, _ in found[10 * i : 10 * i + 10]))
for street, n_pairs in Counter(street for _, streets in found for street in streets).most_common(8):
    where = f"street {street} from junction {tail[street]} to {head[street]}"
    print(f"While {where} is closed, {n_pairs} pairs lose {capacity[street]:,} vehicles/h each.")
