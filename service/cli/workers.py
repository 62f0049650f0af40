"""`headrace move | drain`: which worker serves which graph."""

import time
from typing import Annotated, Final

import typer

from gpu_engine.text.counted import counted
from service.cli.connection import DEFAULT_URL, Json, Key, Name, Url, connected, fail, refuse_beside
from service.cli.show import say_facts, say_json

app = typer.Typer()

LOOK_S: Final = 0.5
WAIT_S: Final = 600.0

Worker = Annotated[str, typer.Argument(help="The name of a worker, as `headrace status` has it.")]


@app.command()
def move(
    graph: Name,
    to: Annotated[str, typer.Option(help="The worker, as `headrace status` names it.")],
    json: Json = False,
    key: Key = None,
    url: Url = DEFAULT_URL,
) -> None:
    """Have another worker serve a graph; it is served meanwhile, but for a pause that is said."""
    with connected(url, key) as client:
        moved = client.graph(graph).move(to)
    if json:
        say_json(moved)
        return
    if not moved.moved:
        typer.echo(f"{graph} was with {to} already")
        return
    pause = "not known: the worker has not said yet that it serves it"
    say_facts(
        {
            "graph": graph,
            "from": moved.from_worker,
            "to": moved.to_worker,
            "pause": pause if moved.pause_ms is None else f"{moved.pause_ms:g} ms",
            "went along": counted(moved.waiting, "waiting command"),
            "kept solved": counted(moved.flow_states, "flow state"),
        }
    )


@app.command()
def drain(
    worker: Worker,
    undo: Annotated[bool, typer.Option("--undo", help="Let it have graphs again.")] = False,
    wait_s: Annotated[
        float | None, typer.Option("--wait", min=0, help="Seconds to wait until no graph is left [600].")
    ] = None,
    json: Json = False,
    key: Key = None,
    url: Url = DEFAULT_URL,
) -> None:
    """Have a worker give all its graphs to the others, and get no new ones, until --undo."""
    if undo:
        refuse_beside("beside --undo", wait=wait_s)
    end = time.monotonic() + (WAIT_S if wait_s is None else wait_s)
    with connected(url, key) as client:
        drained = client.undrain(worker) if undo else client.drain(worker)
        left = drained.graphs_left
        while drained.draining and drained.graphs_left and time.monotonic() < end:
            time.sleep(LOOK_S)
            drained = client.drain(worker)
            if drained.graphs_left != left:
                left = drained.graphs_left
                typer.echo(f"{counted(left, 'graph')} left", err=True)
    if json:
        say_json(drained)
    elif undo:
        typer.echo(f"{worker} may have graphs again; {counted(drained.graphs_left, 'graph')} with it")
    elif not drained.graphs_left:
        typer.echo(f"{worker} has no graph left, and gets none until `headrace drain {worker} --undo`")
    if drained.draining and drained.graphs_left:
        fail(f"{worker} still has {counted(drained.graphs_left, 'graph')}: is another worker ready? The log says more")
