"""`headrace vertices | map`: the vertices of a graph, and where its flow is on a map."""

import json as written
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from service.cli.connection import DEFAULT_URL, Demand, Json, Key, Name, Supply, Url, Vertices, caps, connected, names
from service.cli.questions import Near
from service.cli.show import say_json, say_table

if TYPE_CHECKING:
    from headrace import Graph, VertexCapacities

app = typer.Typer()

PAGE: Final = 100_000
COLUMNS: Final = ("vertices", "capacity", "x", "y")


@app.command()
def vertices(
    name: Name,
    all_of_them: Annotated[
        bool, typer.Option("--all", help="Those without a capacity too, with coordinates where the graph has some.")
    ] = False,
    json: Json = False,
    key: Key = None,
    url: Url = DEFAULT_URL,
) -> None:
    """List the vertices that have a capacity, all of them as of one version. `headrace patch --vertices` changes it."""
    with connected(url, key) as client:
        pages = list(_pages(client.graph(name), all_of_them))
    known = [column for column in COLUMNS if getattr(pages[0], column) is not None]
    columns = {column: [one for page in pages for one in getattr(page, column)] for column in known}
    if json:
        say_json({"graph": name, "version": pages[0].version, **columns})
    else:
        shown = {"vertex" if column == "vertices" else column: rows for column, rows in columns.items()}
        say_table(shown, "there are no vertices" if all_of_them else "no vertex has a capacity: --all lists them")


def _pages(graph: "Graph", all_of_them: bool) -> "Iterator[VertexCapacities]":
    """All of the version that the first one has."""
    ask = graph.vertices if all_of_them else graph.vertex_capacities
    page = ask(limit=PAGE)
    yield page
    while page.next is not None:
        page = ask(page.next, PAGE, if_version=page.version)
        yield page


@app.command("map")
def flow_map(
    name: Name,
    file: Annotated[Path, typer.Argument(dir_okay=False, help="Where the GeoJSON goes; - is standard output.")],
    source: Vertices = None,
    sink: Vertices = None,
    supply: Supply = None,
    demand: Demand = None,
    near: Near = None,
    zeros: Annotated[bool, typer.Option("--zeros", help="Edges without flow too.")] = False,
    key: Key = None,
    url: Url = DEFAULT_URL,
) -> None:
    """Write the maximum flow and its minimum cut as GeoJSON, which QGIS and Leaflet draw."""
    amounts = caps(supply, demand)
    with connected(url, key) as client:
        found = client.graph(name).flow_map(names(source), names(sink), near=near or "sources", zeros=zeros, **amounts)
        text = written.dumps(found, ensure_ascii=False)
        if str(file) == "-":
            typer.echo(text)
        else:
            file.write_text(text + "\n", "utf-8")
    if str(file) != "-":
        lines = len(found["features"])
        typer.echo(f"the flow of {name} at version {found['version']} is in {file}, {lines} lines", err=True)
