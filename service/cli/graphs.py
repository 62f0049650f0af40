"""`headrace load | list | info | delete | export | copy | restore | snapshots | estimate`: whole graphs."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copyfileobj
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gpu_engine.text.counted import counted
from service.cli.connection import (
    DEFAULT_URL,
    MISWRITTEN,
    Json,
    Key,
    Name,
    Url,
    connected,
    fail,
    refuse_beside,
)
from service.cli.show import Columns, say_facts, say_json, say_table, size
from service.cli.updates import amounts_rounded, say_patch

if TYPE_CHECKING:
    from headrace import GraphInfo

app = typer.Typer()

SUFFIX: Final = re.compile(r"[0-9A-Za-z.]{1,16}")
"""What may stand behind the name of a file: no folder."""


@app.command()
def load(
    name: Name,
    file: Annotated[
        Path,
        typer.Argument(
            dir_okay=False,
            help=".npz .arrow .csv .json .max .min .mtx .npy .adj; - is standard input.",
        ),
    ],
    form: Annotated[str | None, typer.Option("--format", help="Format of standard input, such as csv.")] = None,
    decimals: Annotated[int | None, typer.Option(min=0, max=9, help="Places that amounts are kept to.")] = None,
    rounding: Annotated[
        str | None, typer.Option(help="For amounts with more places: error, nearest, down or up; needs --decimals.")
    ] = None,
    cost_decimals: Annotated[int | None, typer.Option(min=0, max=9, help="Places that costs are kept to.")] = None,
    json: Json = False,
    key: Key = None,
    url: Url = DEFAULT_URL,
) -> None:
    """Load a file as a graph, in place of one of that name."""
    with _kept(file, form) as kept, connected(url, key) as client:
        loaded = client.put_graph(
            name, kept, decimals=decimals, rounding=rounding, cost_decimals=cost_decimals, progress=True
        )
        _say_graph(loaded.info, json)


@contextmanager
def _kept(file: Path, form: str | None) -> Iterator[Path]:
    """The file, or one that has all of standard input, as a load may have to be sent again."""
    if str(file) != "-":
        refuse_beside("beside a file, whose suffix says what it has", format=form)
        if not file.exists():  # typer takes - for a file that is to be there as well
            fail(f"file '{file}' does not exist", MISWRITTEN)
        yield file
        return
    if not form:
        fail("say what standard input has: --format csv, say", MISWRITTEN)
    if not SUFFIX.fullmatch(form):
        fail(f"--format is as the suffix of a file, such as csv or npz, not {form!r}", MISWRITTEN)
    if sys.stdin is None:
        fail("standard input is closed", MISWRITTEN)
    with NamedTemporaryFile(prefix="stdin-", suffix=f".{form}") as kept:
        copyfileobj(typer.get_binary_stream("stdin"), kept)
        kept.flush()
        yield Path(kept.name)


@app.command("list")
def list_(json: Json = False, key: Key = None, url: Url = DEFAULT_URL) -> None:
    """All graphs that the key is good for."""
    with connected(url, key) as client:
        found = client.graphs()
    if json:
        say_json(found)
        return
    columns: Columns = {
        "name": [graph.name for graph in found],
        "version": [graph.version for graph in found],
        "vertices": [graph.n_vertices for graph in found],
        "edges": [graph.n_edges for graph in found],
        "memory": [size(graph.bytes + graph.device_bytes) for graph in found],
        "engine": [graph.engine for graph in found],
        "worker": [graph.worker for graph in found],
        "updated": [graph.updated_at for graph in found],
    }
    say_table(columns, "there are no graphs")


@app.command()
def info(name: Name, json: Json = False, key: Key = None, url: Url = DEFAULT_URL) -> None:
    """One graph: its size, its version, where it lies."""
    with connected(url, key) as client:
        _say_graph(client.graph(name).info, json)


@app.command()
def delete(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    key: Key = None,
    url: Url = DEFAULT_URL,
) -> None:
    """Remove a graph with all its updates and snapshots."""
    if not yes and sys.stdin is None:
        fail("standard input is closed, so nobody can be asked: say --yes", MISWRITTEN)
    with connected(url, key) as client:
        graph = client.graph(name)
        edges = counted(graph.info.n_edges, "edge")
        question = f"{name} has {edges} and is at version {graph.info.version}. Delete it for good?"
        if not yes and not typer.confirm(question):
            fail(f"{name} is kept", MISWRITTEN)
        graph.delete()
    typer.echo(f"{name} is deleted", err=True)


@app.command()
def export(
    name: Name,
    file: Annotated[Path, typer.Argument(dir_okay=False, help=".npz, .arrow, .max or .min, which say the format.")],
    version: Annotated[
        int | None, typer.Option(min=1, help="An earlier version: of a snapshot, or any that `restore` reaches.")
    ] = None,
    key: Key = None,
    url: Url = DEFAULT_URL,
) -> None:
    """Write a graph as it is now, or was at an earlier version, to a file that `load` reads."""
    with connected(url, key) as client:
        written = client.graph(name).export(file, version=version)
    typer.echo(f"{name} at version {written} is in {file}", err=True)


@app.command()
def copy(
    name: Name,
    to: Annotated[str, typer.Argument(help="The name of the new graph; it must be free.")],
    json: Json = False,
    key: Key = None,
    url: Url = DEFAULT_URL,
) -> None:
    """A new graph with the edges that this one has now."""
    with connected(url, key) as client:
        _say_graph(client.graph(name).copy(to).info, json)


@app.command()
def restore(
    name: Name,
    version: Annotated[int, typer.Argument(min=1, help="The version whose capacities and closed edges come back.")],
    json: Json = False,
    key: Key = None,
    url: Url = DEFAULT_URL,
) -> None:
    """Make a new version that has the capacities of an earlier one."""
    with connected(url, key) as client:
        done = client.graph(name).restore(version)
    say_patch(done, json)


@app.command()
def snapshots(
    name: Name,
    write: Annotated[bool, typer.Option("--write", help="Write one of the present version first.")] = False,
    json: Json = False,
    key: Key = None,
    url: Url = DEFAULT_URL,
) -> None:
    """The snapshots a restart would begin from, newest first; `export --version` downloads one."""
    with connected(url, key) as client:
        graph = client.graph(name)
        if write:
            graph.write_snapshot()
        found = graph.snapshots()
    if json:
        say_json(found)
        return
    columns: Columns = {
        "version": [snapshot.version for snapshot in found],
        "size": [size(snapshot.bytes) for snapshot in found],
        "written": [snapshot.created_at for snapshot in found],
    }
    say_table(columns, "there are no snapshots: the edges as loaded and the log hold everything")


@app.command()
def estimate(
    vertices: Annotated[int, typer.Argument(min=0)],
    edges: Annotated[int, typer.Argument(min=0)],
    links: Annotated[
        int | None, typer.Option(min=0, help="Pairs of vertices that edges join; by default one for each edge.")
    ] = None,
    limited: Annotated[int, typer.Option(min=0, help="Vertices that have a capacity.")] = 0,
    twins: Annotated[int, typer.Option(min=0, help="Undirected edges that end at a vertex with a capacity.")] = 0,
    two_way: Annotated[
        int | None, typer.Option(min=0, help="Pairs with such a vertex whose edges run both ways.")
    ] = None,
    infinite: Annotated[bool, typer.Option("--infinite", help="Some edge has no limit.")] = False,
    wide: Annotated[bool, typer.Option("--wide", help="Some pair has 2^30 units or more, both ways together.")] = False,
    name_bytes: Annotated[
        int, typer.Option(min=0, help="Bytes of ids and labels: 8 an integer, 16 and its length a text.")
    ] = 0,
    coordinates: Annotated[bool, typer.Option("--coordinates", help="Vertices have x and y.")] = False,
    json: Json = False,
    key: Key = None,
    url: Url = DEFAULT_URL,
) -> None:
    """What a graph of this size would take in memory, and whether a worker has room for it."""
    split = {"n_limited": limited, "n_twins": twins, "n_two_way": two_way}
    known = {"n_links": links, "infinite": infinite, "wide": wide, "name_bytes": name_bytes, **split}
    known["coordinates"] = coordinates
    with connected(url, key) as client:
        needs = client.estimate(vertices, edges, **known)  # type: ignore[arg-type]  # each as its option says
    if json:
        say_json(needs)
        return
    kinds = {"host": needs.host, "device": needs.device}
    columns: Columns = {
        "memory": list(kinds),
        "graph": [size(kind.bytes) for kind in kinds.values()],
        "each flow state": [size(kind.bytes_per_flow_state) for kind in kinds.values()],
        "while solving": [size(kind.scratch_bytes) for kind in kinds.values()],
        "free": [size(kind.free_bytes) for kind in kinds.values()],
        "fits": [kind.fits for kind in kinds.values()],
    }
    say_table(columns)


def _say_graph(graph: "GraphInfo", json: bool) -> None:
    if json:
        say_json(graph)
        return
    states = f"{graph.flow_states} kept solved" if graph.flow_states else "none is kept solved"
    facts: dict[str, object] = {
        "name": graph.name,
        "version": graph.version,
        "vertices": graph.n_vertices,
        "edges": graph.n_edges,
        "decimals": graph.decimals,
        "costs": None if graph.cost_decimals is None else _with_decimals(graph.cost_decimals),
        "coordinates": graph.coordinates,
        "rounded": amounts_rounded(graph.rounded),
        "costs rounded": amounts_rounded(graph.rounded_costs),
        "source": graph.source,
        "sink": graph.sink,
        "flows": states,
        "memory": size(graph.bytes) + (f", and {size(graph.device_bytes)} on a device" if graph.device_bytes else ""),
        "engine": f"{graph.engine}, on worker {graph.worker}",
        "loaded": graph.created_at,
        "updated": graph.updated_at,
    }
    say_facts(facts)


def _with_decimals(places: int) -> str:
    return f"yes, with {places} {'decimal' if places == 1 else 'decimals'}"
