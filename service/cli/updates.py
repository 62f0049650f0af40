"""`headrace patch`: changes of capacities, as they are written, and what an update has changed."""

from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from gpu_engine.text.counted import counted
from service.cli.connection import DEFAULT_URL, MISWRITTEN, Json, Key, Name, Url, amount, by_name, connected, fail, name
from service.cli.show import Columns, say_facts, say_json, say_table, text

if TYPE_CHECKING:
    from headrace import FlowState, PatchResult, Rounded, Update

app = typer.Typer()

CHANGES: Final = 'EDGE=CAPACITY, EDGE=close or EDGE=reopen; "inf" is unlimited.'
OPERATIONS: Final[dict[str, Literal["close", "reopen"]]] = {"close": "close", "reopen": "reopen"}

DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what it would do, and change nothing.")]


@app.command()
def patch(
    name: Name,
    changes: Annotated[list[str], typer.Argument(help=CHANGES)],
    rounding: Annotated[
        Literal["error", "nearest", "down", "up"], typer.Option(help="What has more places than the graph keeps.")
    ] = "error",
    dry_run: DryRun = False,
    vertices: Annotated[bool, typer.Option("--vertices", help="The changes are VERTEX=CAPACITY.")] = False,
    lower: Annotated[bool, typer.Option("--lower", help="The changes are EDGE=LOWER BOUND.")] = False,
    cost: Annotated[bool, typer.Option("--cost", help="The changes are EDGE=COST.")] = False,
    json: Json = False,
    key: Key = None,
    url: Url = DEFAULT_URL,
) -> None:
    """Change capacities: all of them or none, re-solved before the answer."""
    if vertices + lower + cost > 1:
        fail("one of --vertices, --lower and --cost, or none", MISWRITTEN)
    column: Literal["capacity", "cost", "lower"] = "cost" if cost else "lower" if lower else "capacity"
    updates = [update(change, vertices=vertices) for change in changes]
    if column != "capacity" and any(each.op for each in updates):
        fail(f"edges are closed and reopened without --{column}", MISWRITTEN)
    by_name([change for change in changes if change.rpartition("=")[2] not in OPERATIONS], "patch")
    with connected(url, key) as client:
        done = client.graph(name).apply(updates, column=column, rounding=rounding, dry_run=dry_run)
    say_patch(done, json)


def update(change: str, *, vertices: bool = False) -> "Update":
    """One change as written, of an edge or of a vertex."""
    from headrace import Update

    edge, equals, value = change.rpartition("=")
    if not equals or not edge:
        fail(f"{change!r} is not {'VERTEX' if vertices else 'EDGE'}=CAPACITY", MISWRITTEN)
    if vertices:
        return Update(vertices=[name(edge)], set=[amount(value)])
    op = OPERATIONS.get(value)
    return Update(edges=[name(edge)], op=op) if op else Update(edges=[name(edge)], set=[amount(value)])


def say_patch(done: "PatchResult", json: bool) -> None:
    """What an update has changed."""
    if json:
        say_json(done)
        return
    dry = "yes: nothing was changed" if done.dry_run else None
    facts = {"version": done.version, "changed": done.applied, "as before": done.unchanged}
    say_facts(facts | {"rounded": amounts_rounded(done.rounded), "dry run": dry})
    if done.flow_states:
        typer.echo()
        columns: Columns = {
            "flow": [_terminals(state) for state in done.flow_states],
            "before": [state.old_value for state in done.flow_states],
            "now": [state.value for state in done.flow_states],
            "found": [state.mode for state in done.flow_states],
        }
        say_table(columns)


def amounts_rounded(rounded: "Rounded | None") -> str | None:
    """How many amounts were rounded, and by how much; None if none could be."""
    return None if rounded is None else f"{counted(rounded.rows, 'amount')}, by {text(rounded.largest)} at most"


def _terminals(state: "FlowState") -> str:
    if state.kind == "matching":
        return state.kind
    sides = (state.sources, state.n_sources), (state.sinks, state.n_sinks)
    return " to ".join(text(some[0]) if count == 1 else f"{count} vertices" for some, count in sides)
