"""Draw the minimum cut of a real town: what keeps the north bank of Heidelberg from leaving any faster?

Start the service first: `headrace serve`. The map is written to town.svg, which any browser shows.
"""

from pathlib import Path

from headrace import Client

with Client() as hr:
    town = hr.put_graph("town", Path(__file__).with_name("osm-neckar.npz"))
    answer = town.min_cut()
    streets = town.flow_map(zeros=True)["features"]  # GeoJSON: a line for each street
assert answer.cut
print(f"{answer.value:,} vehicles an hour, proven: {answer.certificate.valid}. They queue at:")
for street, pays in zip(answer.cut.edges, answer.cut.pays, strict=True):
    print(f"  {street}, which lets {pays:,} through")

lines = []
for street in streets:
    told = street["properties"]
    if told["id"].startswith(("homes", "way out")):
        continue  # which are no streets
    (x1, y1), (x2, y2) = ((13_000 * (x - 8.643), 20_000 * (49.434 - y)) for x, y in street["geometry"]["coordinates"])
    color = "#f60" if told["in_cut"] else "#38c" if told["flow"] else "#8888"
    width = 12 if told["in_cut"] else 1 + abs(told["flow"]) / 500
    line = (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}" stroke-width="{width:.1f}"/>'
    )
    lines.append(line)
svg = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1140 940" stroke-linecap="round">'
Path("town.svg").write_text("\n".join([svg, *lines, "</svg>\n"]))
