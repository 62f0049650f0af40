"""`headrace pairs | tree | global-cut`: the cuts between all or many pairs of vertices."""

from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.connection import (
    DEFAULT_URL,
    MISWRITTEN,
    Json,
    Key,
    Lines,
    Name,
    Url,
    Vertices,
    connected,
    fail,
    names,
    refuse_beside,
)
from service.cli.show import Columns, ignored, say_facts, say_json, say_line, say_table

if TYPE_CHECKING:
    from headrace import Pair

app = typer.Typer()


@app.command()
def pairs(
    name: Name,
    among: Annotated[list[str] | None, typer.Option(help="All pairs among these; repeat for each.")] = None,
    source: Vertices = None,
    sink: Vertices = None,
    json: Json = False,
    lines: Lines = False,
    key: Key = None,
    url: Url = DEFAULT_URL,
) -> None:
    """The maximum flow from each source to each sink, or of all pairs among some vertices."""
    if bool(among) == bool(source and sink) or bool(source) != bool(sink):
        fail("say which pairs: --source and --sink, each repeated at will, or --among", MISWRITTEN)
    if lines:
        refuse_beside("beside --lines, whose rows are JSON", json=json)
    some, sources, sinks = (_listed(given) if given else None for given in (among, source, sink))
    with connected(url, key) as client:
        graph = client.graph(name)
        if lines:
            for row in graph.pairs(among=some, sources=sources, sinks=sinks, stream=True):
                say_line(_row(row))
            return
        found = graph.pairs(among=some, sources=sources, sinks=sinks)
    if json:
        say_json({"graph": found.graph, "version": found.version, "rows": [_row(row) for row in found]})
        return
    columns: Columns = {
        "source": [row.source for row in found],
        "sink": [row.sink for row in found],
        "flow": [row.value for row in found],
        "error": [None if row.error is None else str(row.error) for row in found],
    }
    if all(row.error is None for row in found):
        columns = {heading: column for heading, column in columns.items() if heading != "error"}
    say_table(columns, "no pairs")


@app.command()
def tree(
    name: Name,
    terminal: Annotated[
        list[str] | None, typer.Option(help="A vertex of the tree; repeat for each; by default all.")
    ] = None,
    json: Json = False,
    key: Key = None,
    url: Url = DEFAULT_URL,
) -> None:
    """The Gomory-Hu tree of an undirected graph: a minimum cut of every two vertices."""
    with connected(url, key) as client:
        found = client.graph(name).gomory_hu_tree(_listed(terminal) if terminal else None)
    if json:
        tails, heads = list(found.tail), list(found.head)
        rows = {"tail": tails, "head": heads, "value": list(found.value)}
        say_json({"graph": found.graph, "version": found.version, "proven": found.proven, "tree": rows})
        return
    say_facts({"rows": len(found), "proven": found.proven, "version": found.version})
    typer.echo()
    say_table({"vertex": list(found.tail), "hangs on": list(found.head), "cut": list(found.value)}, "no rows")


@app.command("global-cut")
def global_cut(name: Name, json: Json = False, key: Key = None, url: Url = DEFAULT_URL) -> None:
    """The cheapest cut that divides the graph at all."""
    with connected(url, key) as client:
        found = client.graph(name).global_min_cut()
    edges, pays, side = list(found.edges or ()), list(found.pays or ()), list(found.source_side or ())
    if json:
        facts = {"graph": found.graph, "version": found.version, "value": found.value, "proven": found.proven}
        say_json({**facts, "edges": edges, "pays": pays, "source_side": side})
        return
    others = len(found.sink_side or ())
    say_facts({"cut": found.value, "divides": f"{len(side)} from {others}", "proven": found.proven, **ignored(found)})
    typer.echo()
    say_table({"edge": edges, "pays": pays}, f"{found.reason}")


def _listed(given: list[str] | None) -> list[int] | list[str]:
    found = names(given)
    return found if isinstance(found, list) else [found]


def _row(row: "Pair") -> dict[str, object]:
    """One row for programs: its error by code and detail."""
    told: dict[str, object] = {"source": row.source, "sink": row.sink}
    if row.error is None:
        return told | {"value": row.value}
    return told | {"error": {"code": row.error.code, "detail": str(row.error)}}
