"""`headrace circulation`: is there a flow in which edges and terminals move at least so much, and if not, why."""

from typing import TYPE_CHECKING, Annotated, TypeAlias

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
    by_name,
    caps,
    connected,
    fail,
    names,
)
from service.cli.show import say_facts, say_json, say_table, text

if TYPE_CHECKING:
    from headrace import Barrier, CirculationOptions

app = typer.Typer()

Pairs: TypeAlias = list[str] | None


@app.command()
def circulation(
    name: Name,
    lower: Annotated[Pairs, typer.Option(help="EDGE=AMOUNT: it carries at least so much; repeat for several.")] = None,
    min_supply: Annotated[Pairs, typer.Option(help="VERTEX=AMOUNT: a source supplies at least so much.")] = None,
    min_demand: Annotated[Pairs, typer.Option(help="VERTEX=AMOUNT: a sink takes at least so much.")] = None,
    supply: Supply = None,
    demand: Demand = None,
    source: Vertices = None,
    sink: Vertices = None,
    no_terminals: Annotated[bool, typer.Option("--no-terminals", help="Without the terminals of the graph.")] = False,
    json: Json = False,
    key: Key = None,
    url: Url = DEFAULT_URL,
) -> None:
    """A flow in which edges and terminals move at least so much, edge by edge, or why there is none."""
    options: CirculationOptions = {"fields": ["flow"]}
    if lower:
        options["lower"] = by_name(lower, "--lower")
    if min_supply:
        options["min_supply"] = by_name(min_supply, "--min-supply")
    if min_demand:
        options["min_demand"] = by_name(min_demand, "--min-demand")
    if no_terminals and source and sink:
        fail("--no-terminals does nothing beside --source and --sink", MISWRITTEN)
    none: list[str] | None = [] if no_terminals else None
    amounts = caps(supply, demand)
    with connected(url, key) as client:
        found = client.graph(name).circulation(names(source) or none, names(sink) or none, **options, **amounts)
    if json:
        say_json(found)
        return
    if found.proof is not None:
        _explain(found.proof)
        return
    say_facts({"feasible": True, "proven": "yes: it keeps every bound" if found.valid else "NO"})
    if found.flow is not None:
        typer.echo()
        say_table({"edge": found.flow.edges, "flow": found.flow.amount}, "nothing has to flow")


def _explain(proof: "Barrier") -> None:
    """What must and cannot be, and the edges that are part of it."""
    what = f"{text(proof.must)} must {proof.way}, and {text(proof.can)} can"
    say_facts({"feasible": False, "because": what, "vertices": len(proof.vertices) or None})
    if len(proof.vertices):
        typer.echo()
        say_table({"vertex": proof.vertices})
    typer.echo()
    say_table({"can, along": proof.edges, "capacity": proof.capacity}, "no edge lets anything through")
    if len(proof.bound_edges):
        typer.echo()
        say_table({"must, along": proof.bound_edges, "lower": proof.lower})
