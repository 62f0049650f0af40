"""The `headrace` command: serve, and a thin shell over the Python client."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import typer

from service.cli import keys as key_commands

if TYPE_CHECKING:
    from headrace import Client

OPERATIONS: Final[Mapping[str, Literal["close", "reopen"]]] = {"close": "close", "reopen": "reopen"}

app = typer.Typer(
    help="Max flow and min cut that stay solved while capacities change.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.add_typer(key_commands.app, name="keys")

Url: TypeAlias = Annotated[str, typer.Option(envvar="HEADRACE_URL", help="Where the service listens.")]
DEFAULT_URL = "http://127.0.0.1:8080"
Name: TypeAlias = Annotated[str, typer.Argument(help="The graph's name in the service.")]
GraphFile: TypeAlias = Annotated[Path, typer.Argument(exists=True, dir_okay=False)]
Vertices: TypeAlias = Annotated[list[str] | None, typer.Option(help="Vertex index or label; repeat for several.")]


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on [127.0.0.1].")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port; 0 takes a free one [8080].")] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Where the embedded Redis keeps its data [.headrace].")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Worker processes [1].")] = None,
    redis_url: Annotated[str | None, typer.Option(help="Use this Redis, start none.")] = None,
    access_log: Annotated[
        bool | None, typer.Option("--access-log/--no-access-log", help="Log each request [yes].")
    ] = None,
    insecure_any_host: Annotated[
        bool,
        typer.Option(envvar="HEADRACE_INSECURE_ANY_HOST", help="Allow a host that other machines can reach."),
    ] = False,
) -> None:
    """Start Redis, the workers and the API; SIGTERM or Ctrl-C stops them in order."""
    from service.host.data_dir import DataDirInUse
    from service.host.redis_server import NoRedisServer
    from service.host.supervisor import CannotServe
    from service.host.supervisor import serve as run
    from service.settings import read_settings
    from service.telemetry import logs

    options = {"host": host, "port": port, "data_dir": data_dir, "workers": workers, "redis_url": redis_url}
    options |= {"access_log": access_log}
    logs.configure("supervisor")
    try:
        settings = read_settings(**{name: value for name, value in options.items() if value is not None})
        run(settings, any_host=insecure_any_host, announce=_announce)
    except (CannotServe, DataDirInUse, NoRedisServer, ValueError) as error:
        _fail(str(error))


@app.command()
def load(
    name: Name, file: Annotated[Path, typer.Argument(exists=True, dir_okay=False)], url: Url = DEFAULT_URL
) -> None:
    """Load a file (.npz, .max, .mtx, .csv, .json, .arrow) as a graph."""
    with _client(url) as client:
        _show(client.put_graph(name, file, progress=True).info)


@app.command()
def solve(
    name: Name,
    source: Vertices = None,
    sink: Vertices = None,
    cut: Annotated[bool, typer.Option("--cut", help="Answer with the minimum cut too.")] = False,
    flow: Annotated[bool, typer.Option("--flow", help="Answer with the edges' flows too.")] = False,
    paths: Annotated[int, typer.Option(min=0, help="Answer with so many of its largest paths too.")] = 0,
    url: Url = DEFAULT_URL,
) -> None:
    """The maximum flow; terminals default to the graph's own."""
    wanted = {"cut": cut, "flow": flow, "paths": paths > 0}
    fields: list[Any] = ["value", *(name for name, is_wanted in wanted.items() if is_wanted)]
    with _client(url) as client:
        _show(client.graph(name).max_flow(_names(source), _names(sink), fields=fields, top=max(1, paths)))


@app.command()
def patch(
    name: Name,
    changes: Annotated[list[str], typer.Argument(help='EDGE=CAPACITY, EDGE=close or EDGE=reopen; "inf" is unlimited.')],
    url: Url = DEFAULT_URL,
) -> None:
    """Change capacities: all of them or none, re-solved before the answer."""
    from headrace import Update

    updates = []
    for change in changes:
        edge, equals, amount = change.rpartition("=")
        if not equals or not edge:
            _fail(f"{change!r} is not EDGE=CAPACITY")
        op = OPERATIONS.get(amount)
        amounts = None if op else [_amount(amount)]
        updates.append(Update(edges=[_name(edge)], set=amounts, op=op))
    with _client(url) as client:
        _show(client.graph(name).apply(updates))


@app.command()
def status(url: Url = DEFAULT_URL) -> None:
    """Version, Redis, workers, graphs."""
    with _client(url) as client:
        _show(client.status().details)


@app.command()
def demo() -> None:
    """A road network, loaded, solved, changed, crashed and restored."""
    from service.cli.demo import run

    raise typer.Exit(run(typer.echo))  # which flushes each line, into a pipe as well


@contextmanager
def _client(url: str) -> "Iterator[Client]":
    """The client; its errors end the command with one line and status 1."""
    from headrace import Client, HeadraceError

    try:
        with Client(url) as client:
            yield client
    except HeadraceError as error:
        _fail(str(error))


def _names(given: list[str] | None) -> Any:
    return None if not given else [_name(text) for text in given]


def _name(text: str) -> int | str:
    """A vertex or edge as written: a whole number is an index, all else a label."""
    return int(text) if text.isascii() and text.isdecimal() else text


def _amount(text: str) -> Any:
    from decimal import Decimal, InvalidOperation

    try:
        return float("inf") if text == "inf" else Decimal(text)
    except InvalidOperation:
        _fail(f"{text!r} is no capacity")


def _show(content: object) -> None:
    fields = asdict(content) if is_dataclass(content) and not isinstance(content, type) else content
    typer.echo(json.dumps(fields, indent=2, default=str))


def _announce(url: str) -> None:
    typer.echo(f"Headrace is ready at {url} (API: {url}/docs, state: {url}/status). Ctrl-C stops it.")


def _fail(message: str) -> Any:
    typer.echo(f"headrace: {message}", err=True)
    raise typer.Exit(1)


if __name__ == "__main__":
    app()
