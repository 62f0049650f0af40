"""`headrace closures`: which closure costs most."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from service.cli.connection import (
    DEFAULT_URL,
    MISWRITTEN,
    Demand,
    Json,
    Key,
    Name,
    Supply,
    Url,
    Vertices,
    caps,
    connected,
    fail,
    names,
)
from service.cli.show import ignored, say_facts, say_json, say_table

if TYPE_CHECKING:
    from headrace import Closure, ClosureStudy

app = typer.Typer()


@app.command("closures")
def closures(
    name: Name,
    close: Annotated[list[str] | None, typer.Option(help="Try this edge; repeat for each. Else all.")] = None,
    cut: Annotated[bool, typer.Option("--cut", help="Try the edges of the minimum cut.")] = False,
    vertices: Annotated[bool, typer.Option("--vertices", help="Close vertices, each with all of its edges.")] = False,
    top: Annotated[int, typer.Option(min=0, help="How many are shown, the worst first; 0: all.")] = 10,
    source: Vertices = None,
    sink: Vertices = None,
    supply: Supply = None,
    demand: Demand = None,
    json: Json = False,
    key: Key = None,
    url: Url = DEFAULT_URL,
) -> None:
    """Which closed edge costs most, or which vertex; nothing is changed."""
    if close and cut:
        fail("either --close or --cut", MISWRITTEN)
    candidates = "cut" if cut else names(close) or "all"
    amounts = caps(supply, demand)
    with connected(url, key) as client:
        graph = client.graph(name)
        ends = names(source), names(sink)
        of: Literal["edges", "vertices"] = "vertices" if vertices else "edges"
        found = graph.closure_study(*ends, candidates=candidates, top=top or None, close=of, **amounts)
    if json:
        say_json({**_facts(found), "certificate": found.certificate, "rows": [_row(row) for row in found]})
        return
    say_facts({"flow": found.value, "proven": found.certificate.valid, **_counts(found), **ignored(found)})
    typer.echo()
    say_table(
        {
            "closed": [" ".join(map(str, row.vertices or row.edges)) for row in found],
            "flow": [row.value for row in found],
            "loss": [row.loss for row in found],
        }
    )


def _counts(found: "ClosureStudy") -> dict[str, object]:
    return {"candidates": found.candidates, "solved": found.solved, "skipped": found.skipped}


def _facts(found: "ClosureStudy") -> dict[str, object]:
    facts: dict[str, object] = {"graph": found.graph, "version": found.version, "value": found.value}
    return facts | _counts(found) | {"skipped_at_most": found.skipped_at_most}


def _row(row: "Closure") -> dict[str, object]:
    """One row for programs."""
    told: dict[str, object] = {
        "row": row.row,
        "edges": row.edges,
        "vertices": row.vertices,
        "value": row.value,
        "loss": row.loss,
    }
    return told | {"mode": row.mode, "certificate": row.certificate}
