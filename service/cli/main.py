"""The `headrace` command: serve, demo, keys, and a thin shell over the Python client."""

import os
import sys
from collections.abc import Mapping
from io import TextIOWrapper
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from service.cli import (
    circulation,
    closures,
    cluster,
    edges,
    feed,
    graphs,
    keys,
    limits,
    pairs,
    partition,
    places,
    questions,
    updates,
    what_if,
)
from service.cli import workers as workers_commands
from service.cli.connection import (
    DEFAULT_URL,
    MISWRITTEN,
    REFUSED,
    Json,
    Key,
    Url,
    connected,
    fail,
    give_up_output,
    reason,
)
from service.cli.show import Columns, say_facts, say_json, say_table, size
from service.collector import paused
from service.left_out import without, without_unused


class Commands(TyperGroup):
    """The `headrace` command, which ends with one line where what it prints cannot be written, and writes a name that
    the terminal has no letters for by their numbers. It does without the command of httpx, which imports rich: a tenth
    of the time of most commands."""

    def main(self, *args: Any, **options: Any) -> Any:
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            with without("httpx._main"):
                return super().main(*args, **options)
        except OSError as error:  # a full disk; a pipe that nobody reads has ended the command already
            give_up_output()
            typer.echo(f"headrace: {reason(error)}", err=True)
            sys.exit(REFUSED)


app = typer.Typer(
    cls=Commands,
    help="Max flow and min cut that stay solved while capacities change.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(keys.app, name="keys")
app.add_typer(edges.app, name="edges")


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        from gpu_engine import kernel_directory

        typer.echo(f"headrace {version('headrace-server')}\nkernels in {kernel_directory()}")
        raise typer.Exit


@app.callback()
def main(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and end.")
    ] = False,
    url: Annotated[str | None, typer.Option(help="Where the service listens: here, or behind the command.")] = None,
    key: Annotated[str | None, typer.Option(help="API key: here, or behind the command.")] = None,
) -> None:
    """Max flow and min cut that stay solved while capacities change."""
    for option, value, variable in (("--url", url, "HEADRACE_URL"), ("--key", key, "HEADRACE_API_KEY")):
        if value is not None:
            _refuse_without(context, option)
            os.environ[variable] = value  # where the command looks, if it is not told behind it


def _refuse_without(context: typer.Context, option: str) -> None:
    """End with a line if the command has no such option: it would do something else than what was meant."""
    group, name = context.command, context.invoked_subcommand or ""
    assert isinstance(group, TyperGroup)
    command = group.get_command(context, name)
    assert command is not None, "which the group has just found"
    known = [each for part in (command, *getattr(command, "commands", {}).values()) for each in part.params]
    if not any(option in each.opts for each in known):
        fail(f"headrace {name} takes no {option}", MISWRITTEN)


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on [127.0.0.1].")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port; 0 takes a free one [8080].")] = None,
    data_dir: Annotated[
        str | None, typer.Option(metavar="PATH", help="Where the embedded Redis keeps its data [.headrace].")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Worker processes [1].")] = None,
    gpus: Annotated[
        str | None, typer.Option(help="One worker for each GPU: all, how many, or which, as in 0,2.")
    ] = None,
    api_processes: Annotated[
        int | None,
        typer.Option(min=1, max=64, help="API processes on the port; by default one for each 4 cores."),
    ] = None,
    redis_url: Annotated[str | None, typer.Option(help="Use this Redis, start none.")] = None,
    access_log: Annotated[
        bool | None, typer.Option("--access-log/--no-access-log", help="Log each request, or none; by default each.")
    ] = None,
    insecure_any_host: Annotated[
        bool,
        typer.Option(
            "--insecure-any-host",
            envvar="HEADRACE_INSECURE_ANY_HOST",
            help="Allow a host that other machines can reach.",
        ),
    ] = False,
    stop_on_eof: Annotated[
        bool, typer.Option("--stop-on-eof", help="Stop when standard input ends, as when its writer is gone.")
    ] = False,
) -> None:
    """Start Redis, the workers and the API; SIGTERM or Ctrl-C stops them in order."""
    with paused(), without_unused():
        from service.host.data_dir import DataDirInUse
        from service.host.redis_server import NoRedisServer
        from service.host.refusal import CannotServe
        from service.host.supervisor import serve as run
        from service.settings import SettingsError, read_settings, refuse_idle
        from service.telemetry import logs
        from service.telemetry.doubts import warn_of_redis_address

    options = {"host": host, "port": port, "data_dir": data_dir, "workers": workers, "redis_url": redis_url}
    options |= {"access_log": access_log, "gpus": gpus, "api_processes": api_processes}
    logs.configure("supervisor")
    try:
        settings = read_settings(**{name: value for name, value in options.items() if value is not None})
        refuse_idle(settings)
        warn_of_redis_address(settings)
        run(settings, any_host=insecure_any_host, stop_on_eof=stop_on_eof, announce=_announce)
    except SettingsError as error:
        fail(str(error), MISWRITTEN)
    except (CannotServe, DataDirInUse, NoRedisServer, OSError, ValueError) as error:
        fail(reason(error))


@app.command()
def worker(
    name: Annotated[
        str, typer.Option(help="A name that no other machine has: the worker's, or its beginning (NAME-gpu-0).")
    ] = "",
    redis_url: Annotated[str | None, typer.Option(help="The Redis of the service, else REDIS_URL.")] = None,
    gpus: Annotated[
        str | None, typer.Option(help="One worker for each GPU: all, how many, or which, as in 0,2.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Workers that are bound to no GPU [1].")] = None,
) -> None:
    """Start workers alone: they join the service whose Redis this is. SIGTERM hands their graphs to the others."""
    with paused(), without_unused():
        from service.host.refusal import CannotServe
        from service.host.workers import work
        from service.settings import SettingsError, read_settings
        from service.telemetry import logs
        from service.telemetry.doubts import warn_of_redis_address

    options = {"redis_url": redis_url, "gpus": gpus, "workers": workers}
    logs.configure("supervisor")
    try:
        settings = read_settings(**{option: value for option, value in options.items() if value is not None})
        warn_of_redis_address(settings)
        work(settings, name)
    except SettingsError as error:
        fail(str(error), MISWRITTEN)
    except (CannotServe, OSError, ValueError) as error:
        fail(reason(error))


@app.command()
def backup(
    target: Annotated[str, typer.Argument(help="A folder that is not there yet, or is empty.")],
    data_dir: Annotated[
        str | None, typer.Option(metavar="PATH", help="Data directory of the service [.headrace].", show_default=False)
    ] = None,
) -> None:
    """Copy all that a `headrace serve` keeps while it serves: `headrace serve --data-dir TARGET` starts on the copy."""
    from service.host.backup import NoBackup, back_up_service
    from service.settings import SettingsError, read_settings

    try:
        n_bytes = back_up_service(read_settings(**({} if data_dir is None else {"data_dir": data_dir})), Path(target))
    except SettingsError as error:
        fail(str(error), MISWRITTEN)
    except NoBackup as error:
        fail(reason(error))
    except OSError as error:
        error.filename = error.filename or target  # which a write to an open file does not name, as on a full disk
        fail(reason(error))
    trial = f"HEADRACE_SEND_WEBHOOKS=false headrace serve --data-dir {quote(target)} --port 0"
    typer.echo(f"{size(n_bytes)} in {target}; try it: {trial}", err=True)


app.add_typer(graphs.app)
app.add_typer(updates.app)
app.add_typer(cluster.app)
app.add_typer(questions.app)
app.add_typer(what_if.app)
app.add_typer(closures.app)
app.add_typer(pairs.app)
app.add_typer(limits.app)
app.add_typer(circulation.app)
app.add_typer(partition.app)
app.add_typer(places.app)
app.add_typer(feed.app)
app.add_typer(workers_commands.app)


@app.command()
def status(json: Json = False, key: Key = None, url: Url = DEFAULT_URL) -> None:
    """Version, Redis, workers, graphs; or, within seconds, why none of it can be told."""
    with connected(url, key, patient=False) as client:  # whoever asks wants to know that Redis is away
        found = client.status()
    if json:
        say_json(found.details)
        return
    say_facts({"version": found.version, "redis": _redis(found.details["redis"]), "graphs": found.details["n_graphs"]})
    typer.echo()
    columns: Columns = {
        "worker": [worker["name"] for worker in found.workers],
        "version": [worker.get("version") or "-" for worker in found.workers],
        "ready": [_readiness(worker) for worker in found.workers],
        "engine": [worker["engine"] for worker in found.workers],
        "device": [worker.get("device") or "-" for worker in found.workers],
        "graphs": [worker["graphs"] for worker in found.workers],
        "memory": [f"{size(worker['bytes'])} of {size(worker['budget_bytes'])}" for worker in found.workers],
        "waiting": [worker["waiting"] for worker in found.workers],
    }
    say_table(columns, "no worker is there: nobody solves")


@app.command()
def demo() -> None:
    """A road network, loaded, solved, changed, crashed and restored."""
    from service.cli.demo import run

    raise typer.Exit(run(typer.echo))  # which flushes each line, into a pipe as well


@app.command("warm-up")
def warm_up() -> None:
    """Compile the solver's kernels ahead: once for each release and kind of processor, a minute or two."""
    from gpu_engine.errors import EngineError
    from service.host.kernels import check_kernels
    from service.host.refusal import CannotServe
    from service.settings import SettingsError, read_settings

    try:
        check_kernels()
        from service.cli.warm_up import run  # Numba refuses to import kernels that it cannot keep

        run(read_settings().engine)
    except SettingsError as error:
        fail(str(error), MISWRITTEN)
    except (CannotServe, EngineError) as error:
        fail(str(error))


def _redis(redis: Mapping[str, Any]) -> str:
    """The version of Redis, how full it is, and whether it forgets."""
    durable = f"append-only file, fsync {redis['fsync']}" if redis["appendonly"] else "no append-only file known of"
    if redis.get("data_gone"):
        durable = "its files were removed or replaced while it runs: everything is lost when it stops"
    if redis.get("maxmemory_policy") not in (None, "noeviction"):
        durable += f", and its maxmemory-policy {redis['maxmemory_policy']} loses graphs"
    used, limit = redis["used_memory_bytes"], redis.get("maxmemory_bytes")
    memory = f"{size(used)} of {size(limit)} in use" if limit else f"{size(used)} in use"
    if limit and used >= limit:
        memory += ", which is all it has: it takes no writes, and workers are away as long as it does not"
    return f"{redis['version']}, {memory}, {durable}"


def _readiness(worker: Mapping[str, Any]) -> object:
    """Yes or no, or what a worker that starts is busy with."""
    if not worker.get("alive", True):
        return "away"
    compiling = worker.get("compiling")
    if compiling:
        return f"compiling, {compiling['done']} of {compiling['of']}"
    return "drained" if worker["ready"] and worker.get("draining") else worker["ready"]


def _announce(url: str) -> None:
    try:
        typer.echo(f"Headrace is ready at {url} (API: {url}/docs, state: {url}/status). Ctrl-C stops it.")
    except OSError:  # the service goes on where this cannot be read
        give_up_output()


if __name__ == "__main__":
    app()
