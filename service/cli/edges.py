"""`headrace edges list|insert|delete`: what a graph consists of."""

import re
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Final

import typer

from service.cli.connection import (
    DEFAULT_URL,
    MISWRITTEN,
    Json,
    Key,
    Name,
    Url,
    amount,
    connected,
    fail,
    name,
    refuse_beside,
)
from service.cli.show import say_json, say_line, say_table
from service.cli.updates import DryRun, say_patch

if TYPE_CHECKING:
    from headrace import Capacities, Graph

app = typer.Typer(help="List, insert and delete edges, and insert and delete vertices.", no_args_is_help=True)

COLUMNS: Final = ("edge_ids", "tail", "head", "capacity", "cost", "lower", "closed", "undirected")
PAGE: Final = 100_000

EDGES = (
    "TAIL,HEAD=CAPACITY, or ID:TAIL,HEAD=CAPACITY where edges have ids. Names with a comma or a colon stand in double "
    "quotes, as in CSV: '\"Mannheim, Hbf\",t=5'."
)
OWN_WORDS: Final = {
    "give new ones in `edge_ids`": "write ID:TAIL,HEAD=CAPACITY",
    "leave `edge_ids` out": "write TAIL,HEAD=CAPACITY",
    "leave `cost` out": "leave --cost out",
    "give those of new ones in `cost`": "say --cost",
    "leave `x` and `y` out": "leave --x and --y out",
    "have coordinates: give those of new ones": "have coordinates: say --x and --y",
    "insert them by `count`": "insert_vertices of the client inserts so many",
}
"""What a refusal of the service tells to do, by members of a body, and how it is done here."""
ROW: Final = re.compile(r"\Abatch\.\d+\.(?:capacity|cost|lower): row (\d+): ")
EDGE: Final = re.compile(r"""\A(?:("(?:[^"]|"")+"|[^"]+):)?("(?:[^"]|"")+"|[^",:]+),("(?:[^"]|"")+"|[^":]+)=([^=]*)""")


@app.command("list")
def list_edges(
    graph: Name,
    json: Json = False,
    lines: Annotated[bool, typer.Option("--lines", help="Each edge as JSON on a line.")] = False,
    key: Key = None,
    url: Url = DEFAULT_URL,
) -> None:
    """List the edges with their capacities, all of them as of one version."""
    if lines:
        refuse_beside("beside --lines, whose rows are JSON", json=json)
    with connected(url, key) as client:
        asked = client.graph(graph)
        if lines:
            for page in _pages(asked):
                columns = _of_edges(_columns([page]))
                for row in zip(*columns.values(), strict=True):
                    say_line(dict(zip(columns, row, strict=True)))
            return
        pages = list(_pages(asked))
    if json:
        say_json({"graph": graph, "version": pages[0].version, **_columns(pages)})
    else:
        say_table(_of_edges(_columns(pages)), empty="there are no edges")


def _pages(graph: "Graph") -> "Iterator[Capacities]":
    """All of the version that the first one has."""
    page = graph.capacities(limit=PAGE)
    yield page
    while page.next is not None:
        page = graph.capacities(page.next, PAGE, if_version=page.version)
        yield page


def _columns(pages: "list[Capacities]") -> dict[str, list[object]]:
    """Those that the graph has, by their names in the API."""
    known = [column for column in COLUMNS if getattr(pages[0], column) is not None]
    return {column: list(chain.from_iterable(getattr(page, column) for page in pages)) for column in known}


def _of_edges(columns: dict[str, list[object]]) -> dict[str, list[object]]:
    """The same with the name that an edge has where it stands by itself."""
    return {"edge" if column == "edge_ids" else column: rows for column, rows in columns.items()}


@app.command()
def insert(
    graph: Name,
    edges: Annotated[list[str], typer.Argument(help=EDGES)],
    undirected: Annotated[bool, typer.Option("--undirected", help="They carry flow either way.")] = False,
    cost: Annotated[str | None, typer.Option(help="What a unit of flow costs on each, where edges have costs.")] = None,
    lower: Annotated[str | None, typer.Option(help="What each carries at least in a circulation.")] = None,
    vertex: Annotated[list[str] | None, typer.Option(help="A vertex to insert before; repeat for each.")] = None,
    x: Annotated[list[float] | None, typer.Option(help="The x coordinate of each inserted vertex.")] = None,
    y: Annotated[list[float] | None, typer.Option(help="The y coordinate of each inserted vertex.")] = None,
    dry_run: DryRun = False,
    json: Json = False,
    key: Key = None,
    url: Url = DEFAULT_URL,
) -> None:
    """Insert edges, and the flows that are kept solved are repaired: all of them or none."""
    from headrace import ApiError, NewEdges

    rows = [_edge(edge) for edge in edges]
    ids = [row[0] for row in rows]
    if any(given is None for given in ids) and any(given is not None for given in ids):
        fail("either all edges have an ID or none", MISWRITTEN)
    new = NewEdges(
        tail=[name(row[1]) for row in rows],
        head=[name(row[2]) for row in rows],
        capacity=[amount(row[3]) for row in rows],
        edge_ids=None if ids[0] is None else [name(row) for row in ids if row is not None],
        cost=None if cost is None else amount(cost),
        lower=None if lower is None else amount(lower),
        undirected=undirected,
    )
    vertices = [name(one) for one in vertex] if vertex else None
    with connected(url, key) as client:
        asked = client.graph(graph)
        try:
            done = asked.restructure(vertices=vertices, edges=new, x=x or None, y=y or None, dry_run=dry_run)
        except ApiError as error:
            fail(f"{error.code}: {_in_own_words(error.detail, edges)}")
    say_patch(done, json)


@app.command()
def delete(
    graph: Name,
    edges: Annotated[list[str] | None, typer.Argument(help="Edges by id.")] = None,
    vertex: Annotated[
        list[str] | None, typer.Option(help="A vertex to delete with all of its edges; repeat for each.")
    ] = None,
    dry_run: DryRun = False,
    json: Json = False,
    key: Key = None,
    url: Url = DEFAULT_URL,
) -> None:
    """Delete edges for good: all of them or none. `headrace patch EDGE=close` closes one for a while."""
    if not edges and not vertex:
        fail("name edges by id, or vertices by --vertex", MISWRITTEN)
    ids, vertices = ([name(one) for one in names] if names else None for names in (edges, vertex))
    with connected(url, key) as client:
        done = client.graph(graph).restructure(delete=ids, delete_vertices=vertices, dry_run=dry_run)
    say_patch(done, json)


def _edge(written: str) -> tuple[str | None, str, str, str]:
    """Id, tail, head and capacity. A name that only begins with a quote is as it is."""
    found = EDGE.fullmatch(written)
    if found is not None:
        return found[1], found[2], found[3], found[4]
    ends, equals, value = written.rpartition("=")
    given, colon, ends = ends.rpartition(":")
    tail, comma, head = ends.partition(",")
    if not (equals and comma and tail and head and (given or not colon)):
        fail(f"{written!r} is not {EDGES}", MISWRITTEN)
    return given if colon else None, tail, head, value


def _in_own_words(detail: str, edges: list[str]) -> str:
    for theirs, ours in OWN_WORDS.items():
        detail = detail.replace(theirs, ours)
    return ROW.sub(lambda row: f"{edges[int(row[1])]}: ", detail)
