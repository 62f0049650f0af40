"""`headrace solve | cut | min-cost | matching | jobs`: questions to a graph, and the work that answers them."""

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

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
    caps,
    connected,
    fail,
    names,
    refuse_beside,
)
from service.cli.show import Columns, say_facts, say_json, say_table, solved, text

if TYPE_CHECKING:
    from headrace import CostField, FlowField, JobInfo, MaxFlowResult, Paths, SolveOptions, TerminalAmounts

app = typer.Typer()

Near: TypeAlias = Annotated[
    Literal["sources", "sinks"] | None,
    typer.Option(help="Of several minimum cuts show the one nearest this end; by default the sources."),
]


@app.command()
def solve(
    name: Name,
    source: Vertices = None,
    sink: Vertices = None,
    supply: Supply = None,
    demand: Demand = None,
    cut: Annotated[bool, typer.Option("--cut", help="Answer with the minimum cut too.")] = False,
    near: Near = None,
    flow: Annotated[bool, typer.Option("--flow", help="Answer with the edges' flows too.")] = False,
    paths: Annotated[int, typer.Option(min=0, help="Answer with so many of its largest paths too.")] = 0,
    json: Json = False,
    key: Key = None,
    url: Url = DEFAULT_URL,
) -> None:
    """The maximum flow; terminals default to the graph's own."""
    fields: list[FlowField] = ["value"]
    options: SolveOptions = {"fields": fields}
    if supply or demand:
        fields.append("terminals")
    if cut:
        fields.append("cut")
        options["near"] = near or "sources"
    else:
        refuse_beside("without --cut", near=near)
    if flow:
        fields.append("flow")
    if paths:
        fields.append("paths")
        options["top"] = paths
    amounts = caps(supply, demand)
    with connected(url, key) as client:
        answer = client.graph(name).max_flow(names(source), names(sink), **options, **amounts)
    _say_flow(answer, json, terminals="terminals" in fields)


@app.command("cut")
def min_cut(
    name: Name,
    source: Vertices = None,
    sink: Vertices = None,
    supply: Supply = None,
    demand: Demand = None,
    near: Near = None,
    json: Json = False,
    key: Key = None,
    url: Url = DEFAULT_URL,
) -> None:
    """The minimum cut: the edges that bound the flow from the sources to the sinks."""
    amounts = caps(supply, demand)
    with connected(url, key) as client:
        answer = client.graph(name).min_cut(names(source), names(sink), near=near or "sources", **amounts)
    _say_flow(answer, json)


@app.command("min-cost")
def min_cost(
    name: Name,
    source: Vertices = None,
    sink: Vertices = None,
    supply: Supply = None,
    demand: Demand = None,
    value: Annotated[str | None, typer.Option(help="What is to flow; without it as much as can.")] = None,
    flow: Annotated[bool, typer.Option("--flow", help="Answer with the edges' flows too.")] = False,
    paths: Annotated[int, typer.Option(min=0, help="Answer with so many of its largest paths too.")] = 0,
    ignore_lower: Annotated[
        bool, typer.Option("--ignore-lower", help="Answer for a graph with lower bounds too, as if it had none.")
    ] = False,
    json: Json = False,
    key: Key = None,
    url: Url = DEFAULT_URL,
) -> None:
    """The cheapest flow of a value; the graph needs costs, and its lower bounds are not kept."""
    from headrace import MinCostOptions

    fields: list[CostField] = ["value", "cost"]
    if flow:
        fields.append("flow")
    if paths:
        fields.append("paths")
    options: MinCostOptions = {"fields": fields}
    if supply or demand:
        fields.append("terminals")
    if paths:
        options["top"] = paths
    if value is not None:
        options["value"] = amount(value)
    if ignore_lower:
        options["lower"] = "ignore"
    amounts = caps(supply, demand)
    with connected(url, key) as client:
        found = client.graph(name).min_cost_flow(names(source), names(sink), **options, **amounts)
    if json:
        say_json(found)
        return
    proof = found.certificate
    facts: dict[str, object] = {
        "cost": found.cost,
        "flow": found.value,
        "of at most": "no bound" if found.maximum is None else found.maximum,
        "proven": f"yes: potentials prove {text(proof.dual_bound)}" if proof.valid else "NO",
        "version": found.version,
    }
    say_facts(facts)
    if found.flow is not None:
        typer.echo()
        say_table({"edge": found.flow.edges, "flow": found.flow.amount}, "no edge carries flow")
    if found.terminals is not None and "terminals" in fields:
        _say_terminals(found.terminals)
    if found.paths is not None:
        _say_paths(found.paths)
    if found.cycles is not None and len(found.cycles.edges):
        typer.echo()
        say_table({"edge of a cycle": found.cycles.edges, "flow": found.cycles.amount})


@app.command()
def matching(
    name: Name,
    left: Annotated[
        list[str] | None, typer.Option(help="A left vertex; repeat for each; without it the tails of edges.")
    ] = None,
    cover: Annotated[bool, typer.Option("--cover", help="Show the vertices that prove it too.")] = False,
    json: Json = False,
    key: Key = None,
    url: Url = DEFAULT_URL,
) -> None:
    """A maximum matching of the left vertices with the right ones."""
    with connected(url, key) as client:
        found = client.graph(name).matching(names(left))
    if json:
        say_json(found)
        return
    say_facts({"pairs": found.size, **solved(found)})
    typer.echo()
    if found.matching is not None:
        columns: Columns = {"left": found.matching.left, "right": found.matching.right, "edge": found.matching.edges}
        say_table(columns, "nobody is matched")
    if cover and found.cover is not None:
        typer.echo()
        sides = ["left"] * len(found.cover.left) + ["right"] * len(found.cover.right)
        say_table({"cover": [*found.cover.left, *found.cover.right], "side": sides}, "the cover is empty")


@app.command()
def jobs(
    job_id: Annotated[str | None, typer.Argument(metavar="[ID]", help="Show this one alone.")] = None,
    cancel: Annotated[bool, typer.Option("--cancel", help="Cancel it.")] = False,
    json: Json = False,
    key: Key = None,
    url: Url = DEFAULT_URL,
) -> None:
    """What is queued, running and done: the latest hundred jobs, or one of them."""
    if cancel and job_id is None:
        fail("--cancel needs the ID of a job", MISWRITTEN)
    with connected(url, key) as client:
        if job_id is None:
            found = client.jobs()
            in_time = None
        else:
            job = client.job(job_id)
            in_time = job.cancel() if cancel else None
            found = (job.info,)
    if json:
        say_json(found if job_id is None else found[0])
    elif job_id is None:
        _say_jobs(found)
    else:
        _say_job(found[0])
    if in_time is False:
        fail(f"it is too late to cancel {job_id}: it is {found[0].status}")


def _say_flow(answer: "MaxFlowResult", json: bool, *, terminals: bool = False) -> None:
    if json:
        say_json(answer)
        return
    say_facts({"flow": answer.value, **solved(answer)})
    if answer.cut is not None:
        typer.echo()
        unique = {None: "not examined", True: "the only minimum cut", False: "one of several minimum cuts"}
        sides = f"{len(answer.cut.source_side)} with the sources, {len(answer.cut.sink_side)} with the sinks"
        say_facts({"cut": answer.cut.value, "which is": unique[answer.cut.unique], "vertices": sides})
        typer.echo()
        say_table({"edge of the cut": answer.cut.edges, "pays": answer.cut.pays}, "no edge is in the cut")
        for paying_one, paying, pays in (
            ("vertex whose capacity", answer.cut.vertices, answer.cut.vertex_pays),
            ("source whose cap", answer.cut.sources, answer.cut.source_pays),
            ("sink whose cap", answer.cut.sinks, answer.cut.sink_pays),
        ):
            if len(paying):
                typer.echo()
                say_table({f"{paying_one} is in the cut": paying, "pays": pays})
    if answer.flow is not None:
        typer.echo()
        say_table({"edge": answer.flow.edges, "flow": answer.flow.amount}, "no edge carries flow")
    if terminals and answer.terminals is not None:
        _say_terminals(answer.terminals)
    if answer.paths is not None:
        _say_paths(answer.paths)


def _say_terminals(terminals: "TerminalAmounts") -> None:
    typer.echo()
    say_table({"source": terminals.sources, "supplies": terminals.supplied})
    typer.echo()
    say_table({"sink": terminals.sinks, "gets": terminals.delivered})


def _say_paths(paths: "Paths") -> None:
    typer.echo()
    edges = [list(map(str, path.edges)) for path in paths]
    between = ", " if any(" " in name for names in edges for name in names) else " "
    columns: Columns = {
        "from": [path.source for path in paths],
        "to": [path.sink for path in paths],
        "amount": [path.amount for path in paths],
        "edges": [between.join(names) for names in edges],
    }
    say_table(columns, "no path carries flow")


def _say_jobs(found: "tuple[JobInfo, ...]") -> None:
    columns: Columns = {
        "id": [job.id for job in found],
        "kind": [job.kind for job in found],
        "graph": [job.graph for job in found],
        "status": [_status(job) for job in found],
        "created": [job.created_at for job in found],
        "finished": [job.finished_at for job in found],
    }
    say_table(columns, "there are no jobs")


def _say_job(job: "JobInfo") -> None:
    facts: dict[str, object] = {
        "id": job.id,
        "kind": job.kind,
        "graph": job.graph,
        "status": _status(job),
        "before it": job.position,
        "progress": ", ".join(f"{name} {text(count)}" for name, count in job.progress.items()) or None,
        "created": job.created_at,
        "started": job.started_at,
        "finished": job.finished_at,
        "error": None if job.error is None else f"{job.error['code']}: {job.error['detail']}",
    }
    say_facts(facts)


def _status(job: "JobInfo") -> str:
    return f"{job.status}, cancelling" if job.cancelling and not job.finished else job.status
