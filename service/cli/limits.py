"""`headrace bottlenecks | parametric | expand`: what limits a flow, and what it takes to let more flow."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

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
    amount,
    by_name,
    caps,
    connected,
    factor,
    fail,
    names,
    pair,
)
from service.cli.connection import name as one_name
from service.cli.show import Columns, ignored, say_facts, say_json, say_table, solved, text

if TYPE_CHECKING:
    from headrace import Bottlenecks, ParametricOptions, ParametricResult, Segment

app = typer.Typer()


@app.command()
def bottlenecks(
    name: Name,
    source: Vertices = None,
    sink: Vertices = None,
    supply: Supply = None,
    demand: Demand = None,
    up_to: Annotated[
        int, typer.Option(min=0, help="Say of so many what the flow would gain if that one had no limit.")
    ] = 0,
    json: Json = False,
    key: Key = None,
    url: Url = DEFAULT_URL,
) -> None:
    """The edges and caps that limit the maximum flow: those that some minimum cut pays."""
    amounts = caps(supply, demand)
    with connected(url, key) as client:
        answer = client.graph(name).max_flow(names(source), names(sink), fields=["bottlenecks"], up_to=up_to, **amounts)
    if json:
        say_json(answer)
        return
    say_facts({"flow": answer.value, **solved(answer)})
    found = answer.bottlenecks
    assert found is not None
    typer.echo()
    say_table(_columns(found), "nothing limits it: no source reaches a sink")


@app.command()
def parametric(
    name: Name,
    to: Annotated[str, typer.Option(help="The largest factor: a number, or a fraction such as 7/6.")],
    edge: Annotated[list[str] | None, typer.Option(help="An edge that the factor scales; repeat for each.")] = None,
    supply: Annotated[
        list[str] | None, typer.Option(help="VERTEX=AMOUNT: the cap of a source, which the factor scales.")
    ] = None,
    demand: Annotated[
        list[str] | None, typer.Option(help="VERTEX=AMOUNT: the cap of a sink, which the factor scales.")
    ] = None,
    start: Annotated[str, typer.Option("--from", help="The least factor.")] = "0",
    source: Vertices = None,
    sink: Vertices = None,
    json: Json = False,
    key: Key = None,
    url: Url = DEFAULT_URL,
) -> None:
    """The maximum flow as a function of a factor that scales some edges, or the supply of the sources, or the demand of
    the sinks."""
    if bool(edge) + bool(supply) + bool(demand) != 1:
        scaled = "--edge EDGE, --supply VERTEX=AMOUNT or --demand VERTEX=AMOUNT"
        fail(f"say what the factor scales: {scaled}, repeated for each", MISWRITTEN)
    options: ParametricOptions = {"start": factor(start), "to": factor(to)}
    if edge:
        options["edges"] = [one_name(each) for each in edge]
    elif supply:
        options["scale"] = "supply"
        options["supply"] = by_name(supply, "--supply")
    else:
        options["scale"] = "demand"
        options["demand"] = by_name(demand or [], "--demand")
    with connected(url, key) as client:
        found = client.graph(name).parametric(names(source), names(sink), **options)
    if json:
        say_json(_curve(found))
        return
    proven = f"yes: {found.flows} flows prove it" if found.valid else "NO"
    facts = {"flow": found.value, "proven": proven, "complete": found.complete, "version": found.version}
    say_facts(facts | ignored(found))
    typer.echo()
    columns: Columns = {
        "from": [str(one.start) for one in found.segments],
        "to": [str(one.to) for one in found.segments],
        "flow": [_line(one) for one in found.segments],
    }
    say_table(columns)


def _line(segment: "Segment") -> str:
    """The value as a function of the factor, without what is nothing."""
    if not segment.rate:
        return text(segment.constant)
    varying = f"{text(segment.rate)} x factor"
    return f"{text(segment.constant)} + {varying}" if segment.constant else varying


@app.command()
def expand(
    name: Name,
    raise_by: Annotated[str, typer.Argument(help="How much more is to flow.")],
    prices: Annotated[list[str], typer.Argument(metavar="EDGE=PRICE...", help="What a unit more costs on each edge.")],
    max_add: Annotated[
        str | None, typer.Option(help="How much may be added to an edge; any amount by default.")
    ] = None,
    source: Vertices = None,
    sink: Vertices = None,
    supply: Supply = None,
    demand: Demand = None,
    json: Json = False,
    key: Key = None,
    url: Url = DEFAULT_URL,
) -> None:
    """What to add to which edges so that more can flow, at the least price; nothing is changed."""
    pairs = list(map(pair, prices))
    most = amount("inf" if max_add is None else max_add)
    amounts = caps(supply, demand)
    with connected(url, key) as client:
        found = client.graph(name).capacity_expansion(
            amount(raise_by),
            names(source),
            names(sink),
            edges=[edge for edge, _ in pairs],
            price=[price for _, price in pairs],
            max_add=most,
            **amounts,
        )
    if json:
        say_json(found)
        return
    proof = found.certificate
    proven = f"yes: potentials prove {text(proof.dual_bound)}" if proof.valid else "NO"
    say_facts({"price": found.price, "flow": found.value, "today": found.maximum, "proven": proven, **ignored(found)})
    typer.echo()
    say_table({"edge": found.edges, "add": found.add}, "nothing has to be added")


def _columns(found: "Bottlenecks") -> Columns:
    """A row for each edge, then for each source, each sink and each vertex."""
    parts: tuple[tuple[str, Sequence[object], Sequence[bool], Sequence[object] | None], ...] = (
        ("edge", found.edges, found.in_every, found.up_to),
        ("source", found.sources, found.source_in_every, found.source_up_to),
        ("sink", found.sinks, found.sink_in_every, found.sink_up_to),
        ("vertex", found.vertices, found.vertex_in_every, None),
    )
    columns: dict[str, list[object]] = {"what": [], "name": [], "in every cut": [], "gain": []}
    gains: list[object] = []
    for kind, rows, in_every, up_to in parts:
        columns["what"] += [kind] * len(rows)
        columns["name"] += [*rows]
        columns["in every cut"] += [*in_every]
        columns["gain"] += [int(every) for every in in_every]
        known: list[object] = [*(up_to or ())]
        gains += known + [None] * (len(rows) - len(known))
    return columns if found.up_to is None else {**columns, "up to": gains}


def _curve(found: "ParametricResult") -> dict[str, object]:
    """For programs: ends of segments as text, since they are fractions."""
    return {
        "graph": found.graph,
        "version": found.version,
        "value": found.value,
        "segments": [
            {"from": str(one.start), "to": str(one.to), "constant": one.constant, "rate": one.rate}
            for one in found.segments
        ],
        "complete": found.complete,
        "valid": found.valid,
    }
