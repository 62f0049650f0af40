"""`headrace keys create | list | revoke | forget`: on the Redis of a service, whether it is running now or not."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from service.settings import Settings
    from service.store.api_keys import ApiKeys, Scope
    from service.store.keys_seen import KeysSeen

app = typer.Typer(help="API keys: made, listed, revoked.", no_args_is_help=True, add_completion=False)


@app.command()
def create(
    label: Annotated[str, typer.Argument(help="What the key is for; shown by `list`.")],
    scope: Annotated[str, typer.Option(help="read, update or admin; each includes those before it.")] = "read",
    prefix: Annotated[str, typer.Option(help="Only graphs whose names begin with this.")] = "",
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask before the first key closes the service.")
    ] = False,
) -> None:
    """Make a key and print it: once, as only its digest is kept. The first key closes the service to those without."""
    from service.store.api_keys import Scope, TooManyKeys

    try:
        wanted = Scope(scope)
        with _table() as keys:
            if not keys.list():
                _warn_of_the_door(wanted, sure=yes)
            key, token = keys.create(label, wanted, prefix)
    except (TooManyKeys, ValueError) as error:
        _fail(str(error))
    typer.echo(f"key {key.id} ({key.scope}) will not be shown again:", err=True)
    typer.echo(token)
    try:
        _seen().write()
    except OSError as error:
        _say(f"it could not be noted that there are keys: {error}")


def _warn_of_the_door(scope: "Scope", *, sure: bool) -> None:
    """Say what the first key does; at a terminal, make none unless told to."""
    _say("this is the first key: within seconds the service refuses every request that comes without one")
    if scope != "admin":
        _say(f"this one has the scope {scope}: to load graphs, make one with --scope admin as well")
    if not sure and _is_terminal() and not typer.confirm("Make it?", err=True):
        raise typer.Exit(1)


def _is_terminal() -> bool:
    return sys.stdin.isatty()


@app.command("list")
def list_() -> None:
    """All keys, revoked ones included."""
    with _table() as keys:
        found = keys.list()
    for key in found:
        state = "live" if key.revoked_at is None else f"revoked {key.revoked_at:%Y-%m-%dT%H:%M:%SZ}"
        names = f"{key.prefix}*"
        typer.echo(f"{key.id}  {key.scope:<6}  {names:<16}  {key.created_at:%Y-%m-%dT%H:%M:%SZ}  {state}  {key.label}")


@app.command()
def revoke(key_id: Annotated[str, typer.Argument(help="As `list` shows it.")]) -> None:
    """Refuse a key from now on: every API process has noticed within five seconds."""
    with _table() as keys:
        if not keys.revoke(key_id):
            _fail(f"there is no key {key_id!r}")
    typer.echo(f"{key_id} is revoked", err=True)


@app.command()
def forget(
    open_: Annotated[bool, typer.Option("--open", help="Say that the service is to be open from now on.")] = False,
) -> None:
    """Drop all keys and open the service, to whoever reaches its port. Also after a Redis that has lost its keys."""
    if not open_:
        _fail("without keys whoever reaches the port may do anything; say --open if that is what you want")
    with _table() as keys:
        count = keys.forget()
        _seen().forget()
    typer.echo(f"{count} keys are forgotten; API processes without HEADRACE_REQUIRE_KEYS open within seconds", err=True)


def _seen() -> "KeysSeen":
    """What is remembered of keys beside the data of a `headrace serve` on this machine, if there is one."""
    from service.settings import read_settings
    from service.store.keys_seen import FILE, KeysSeen

    settings = read_settings()
    beside = settings.data_dir / FILE if settings.data_dir.is_dir() else None
    return KeysSeen(settings.keys_seen_file or beside)


@contextmanager
def _table() -> "Iterator[ApiKeys]":
    """The keys of the service. What makes them unreachable ends the command with one line and status 1."""
    import redis

    from service.host.data_dir import DataDirInUse
    from service.host.redis_server import NoRedisServer
    from service.settings import SettingsError, read_settings

    try:
        with open_keys(read_settings()) as keys:
            yield keys
    except (redis.RedisError, DataDirInUse, NoRedisServer, OSError, SettingsError) as error:
        _fail(str(error))


@contextmanager
def open_keys(settings: "Settings") -> "Iterator[ApiKeys]":
    """The keys in the Redis of `settings`; an embedded one that does not run is started for as long as this lasts."""
    import redis

    from service.host import redis_server
    from service.host.data_dir import locked
    from service.store.connection import connect

    client = connect(settings)
    try:
        client.ping()
    except redis.ConnectionError:
        if settings.redis_url is not None:
            raise
        with locked(settings.data_dir), redis_server.running(settings):
            yield keys_of(client, settings)
    else:
        yield keys_of(client, settings)
    finally:
        client.close()


def keys_of(client: Any, settings: "Settings") -> "ApiKeys":
    from service.store.api_keys import ApiKeys
    from service.store.keys import Keys

    return ApiKeys(client, Keys(settings.redis_prefix))


def _say(message: str) -> None:
    typer.echo(f"headrace: {message}", err=True)


def _fail(message: str) -> Any:
    _say(message)
    raise typer.Exit(1)
