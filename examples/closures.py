"""Which street of Heidelberg must not be closed? Each street of the cut, closed in thought, and pairs of them.

All closures are scenarios of one question: the graph stays as it is. Start the service first: `headrace serve`.
"""

from itertools import combinations
from pathlib import Path

import numpy as np
from headrace import Client, Scenario

ROADS = Path(__file__).with_name("osm-heidelberg.npz")
with np.load(ROADS) as roads:
    tail, head, capacity, s, t = roads["src"], roads["dst"], roads["cap"], int(roads["s"]), int(roads["t"])

with Client() as hr:
    streets = hr.put_graph("heidelberg-closures", ROADS)
    cut = streets.min_cut(s, t).cut
    bottleneck = [int(street) for street in cut.edges] if cut else []
    single = streets.what_if([Scenario(id=street, close=[street]) for street in bottleneck], s, t)
    pairs = [Scenario(close=pair) for pair in combinations(bottleneck[:12], 2)]
    double = streets.what_if(pairs, s, t)
    study = streets.closure_study(s, t, top=5)
    version = streets.refresh().version

print(
    f"{single.value:,} vehicles/h get through, proven: {single.certificate.valid}; {len(bottleneck)} streets bound it."
)
for row in sorted(single, key=lambda row: row.value or 0)[:5]:
    where = f"street {row.id} from junction {tail[int(row.id or 0)]} to {head[int(row.id or 0)]}"
    print(f"Without {where}: {row.value:,}, which is {-(row.change or 0):,} less.")
worst = min(double, key=lambda row: row.value or 0)
print(f"The worst pair of the first twelve is {pairs[worst.row].close}: {-(worst.change or 0):,} less.")
print(f"Of all {study.candidates:,} streets, {study.solved:,} had to be tried to know the worst five:")
for street in study:
    print(f"- street {street.edges[0]} costs {street.loss:,}.")
print(f"All {len(single) + len(double)} answers are proven; the graph is still at version {version}.")
