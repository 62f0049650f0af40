"""`headrace what-if`: the flow under changes that are not made."""

from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.connection import (
    DEFAULT_URL,
    MISWRITTEN,
    Demand,
    Json,
    Key,
    Lines,
    Name,
    Supply,
    Url,
    Vertices,
    caps,
    connected,
    fail,
    names,
    refuse_beside,
)
from service.cli.show import Columns, say_facts, say_json, say_line, say_table, solved
from service.cli.updates import CHANGES, update

if TYPE_CHECKING:
    from headrace import WhatIfResult, WhatIfRow

app = typer.Typer()


@app.command("what-if")
def what_if(
    name: Name,
    changes: Annotated[list[str] | None, typer.Argument(help=f"{CHANGES} Each is a scenario.")] = None,
    close: Annotated[list[str] | None, typer.Option(help="EDGE=close; repeat for each.")] = None,
    together: Annotated[bool, typer.Option("--together", help="All changes are one scenario.")] = False,
    vertices: Annotated[bool, typer.Option("--vertices", help="The changes are VERTEX=CAPACITY.")] = False,
    source: Vertices = None,
    sink: Vertices = None,
    supply: Supply = None,
    demand: Demand = None,
    json: Json = False,
    lines: Lines = False,
    key: Key = None,
    url: Url = DEFAULT_URL,
) -> None:
    """The maximum flow if something were otherwise; nothing is changed."""
    from headrace import Scenario

    if lines:
        refuse_beside("beside --lines, whose rows are JSON", json=json)
    closed = [f"{edge}=close" for edge in close or ()]
    written = [*(changes or ()), *closed]
    if not written:
        fail("say what is otherwise: EDGE=CAPACITY, EDGE=reopen or --close EDGE", MISWRITTEN)
    updates = [*(update(change, vertices=vertices) for change in changes or ()), *map(update, closed)]
    if together:
        scenarios = [Scenario(id=" ".join(written), updates=updates)]
    else:
        scenarios = [Scenario(id=text, updates=[one]) for text, one in zip(written, updates, strict=True)]
    amounts = caps(supply, demand)
    with connected(url, key) as client:
        graph, ends = client.graph(name), (names(source), names(sink))
        if lines:
            for row in graph.what_if(scenarios, *ends, stream=True, **amounts):
                say_line(_row(row))
            return
        found = graph.what_if(scenarios, *ends, **amounts)
    if json:
        say_json({**_facts(found), "rows": [_row(row) for row in found]})
    else:
        _say_rows(found)


def _facts(found: "WhatIfResult") -> dict[str, object]:
    return {
        "graph": found.graph,
        "version": found.version,
        "value": found.value,
        "mode": found.mode,
        "engine": found.engine,
        "certificate": found.certificate,
    }


def _row(row: "WhatIfRow") -> dict[str, object]:
    """One row for programs: its error by code and detail."""
    told = {"row": row.row, "id": row.id}
    if row.error is not None:
        return told | {"error": {"code": row.error.code, "detail": row.error.detail}}
    return told | {"value": row.value, "change": row.change, "mode": row.mode, "certificate": row.certificate}


def _say_rows(found: "WhatIfResult") -> None:
    say_facts({"flow": found.value, **solved(found)})
    typer.echo()
    columns: Columns = {
        "if": [row.id for row in found],
        "flow": [row.value for row in found],
        "change": [row.change for row in found],
        "proven": [row.certificate is not None and row.certificate.valid for row in found],
        "error": [None if row.error is None else str(row.error) for row in found],
    }
    if all(row.error is None for row in found):
        columns = {heading: column for heading, column in columns.items() if heading != "error"}
    say_table(columns)
