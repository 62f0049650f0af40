"""`headrace keys create | list | revoke | forget`: on the Redis of a service, whether it is running now or not."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeAlias

import typer

from gpu_engine.text.counted import counted
from service.cli.connection import MISWRITTEN, REFUSED, give_up_output, reason

if TYPE_CHECKING:
    from service.settings import Settings
    from service.store.api_keys import ApiKey, ApiKeys, Scope
    from service.store.keys_seen import KeysSeen

app = typer.Typer(help="API keys: made, listed, revoked.", no_args_is_help=True, add_completion=False)

DataDir: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="Data directory of the service, as `headrace serve` has it [.headrace].",
        show_default=False,
    ),
]
RedisUrl: TypeAlias = Annotated[
    str | None, typer.Option(help="Redis of the service, if it has one of its own.", show_default=False)
]


@app.command()
def create(
    label: Annotated[str, typer.Argument(help="What the key is for; shown by `list`.")],
    scope: Annotated[str, typer.Option(help="read, update or admin; each includes those before it.")] = "read",
    prefix: Annotated[str | None, typer.Option(help="Only graphs whose names begin with this.")] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask before the first key closes the service.")
    ] = False,
    data_dir: DataDir = None,
    redis_url: RedisUrl = None,
) -> None:
    """Make a key and print it: once, as only its digest is kept. The first key closes the service to those without."""
    from service.store.api_keys import Scope, TooManyKeys

    if sys.stdout is None:
        _fail("standard output is closed, and the key is printed there once", MISWRITTEN)
    if scope not in list(Scope):
        _fail(f"--scope is one of {', '.join(Scope)}, not {scope!r}", MISWRITTEN)
    if prefix == "":
        _fail("--prefix is empty, which would be a key for all graphs: leave it out if that is meant", MISWRITTEN)
    wanted, settings = Scope(scope), _settings(data_dir, redis_url)
    if not _has_begun(settings):
        _say(f"no service has run {_place(settings)}: this key is for one that will; --data-dir names another place")
    try:
        with _table(settings) as keys:
            if not keys.list():
                _warn_of_the_door(wanted, sure=yes)
            keys.create(label, wanted, prefix or "", partial(_show, _place(settings)))
    except (TooManyKeys, ValueError) as error:
        _fail(str(error))
    try:
        _seen(settings).write()
    except OSError as error:
        _say(f"it could not be noted that there are keys: {reason(error)}")


def _show(place: str, key: "ApiKey", token: str) -> None:
    """Print a key that is about to be made; where that fails, as on a full disk, the command ends, and it is not."""
    try:
        typer.echo(f"key {key.id} ({key.scope}) of the service {place} will not be shown again:", err=True)
        typer.echo(token)
    except OSError as error:
        give_up_output()
        _fail(f"the key could not be printed, and was not made: {reason(error)}")


def _warn_of_the_door(scope: "Scope", *, sure: bool) -> None:
    """Say what the first key does; at a terminal, make none unless told to."""
    _say("this is the first key: within seconds the service refuses every request that comes without one")
    if scope != "admin":
        _say(f"this one has the scope {scope}: to load graphs, make one with --scope admin as well")
    if not sure and _is_terminal() and not typer.confirm("Make it?", err=True):
        raise typer.Exit(1)


def _is_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


@app.command("list")
def list_(data_dir: DataDir = None, redis_url: RedisUrl = None) -> None:
    """All keys, revoked ones included."""
    settings = _of_a_service(data_dir, redis_url)
    with _table(settings) as keys:
        found = keys.list()
    if not found:
        _say(f"the service {_place(settings)} has no keys")
    for key in found:
        state = "live" if key.revoked_at is None else f"revoked {key.revoked_at:%Y-%m-%dT%H:%M:%SZ}"
        names = f"{key.prefix}*"
        typer.echo(f"{key.id}  {key.scope:<6}  {names:<16}  {key.created_at:%Y-%m-%dT%H:%M:%SZ}  {state}  {key.label}")


@app.command()
def revoke(
    key_id: Annotated[str, typer.Argument(help="As `list` shows it.")],
    data_dir: DataDir = None,
    redis_url: RedisUrl = None,
) -> None:
    """Refuse a key from now on: every API process has noticed within five seconds."""
    with _table(_of_a_service(data_dir, redis_url)) as keys:
        if not keys.revoke(key_id):
            _fail(f"there is no key {key_id!r}")
    typer.echo(f"{key_id} is revoked", err=True)


@app.command()
def forget(
    open_: Annotated[bool, typer.Option("--open", help="Say that the service is to be open from now on.")] = False,
    data_dir: DataDir = None,
    redis_url: RedisUrl = None,
) -> None:
    """Drop all keys and open the service, to whoever reaches its port. Also after a Redis that has lost its keys."""
    if not open_:
        _fail("without keys whoever reaches the port may do anything; say --open if that is what you want", MISWRITTEN)
    settings = _of_a_service(data_dir, redis_url)
    with _table(settings) as keys:
        count = keys.forget()
        _seen(settings).forget()
    forgotten = counted(count, "key is", "keys are")
    typer.echo(f"{forgotten} forgotten; API processes without HEADRACE_REQUIRE_KEYS open within seconds", err=True)


def _settings(data_dir: str | None, redis_url: str | None) -> "Settings":
    """What the options and the environment say; a mistake in it ends the command."""
    from service.settings import OVERRULED, SettingsError, overruled_redis, read_settings

    given = {"data_dir": data_dir, "redis_url": redis_url}
    try:
        settings = read_settings(**{name: value for name, value in given.items() if value is not None})
        settings.data_dir.is_dir()
    except SettingsError as error:
        _fail(str(error), MISWRITTEN)
    except OSError as error:  # another user's folder, say: nobody knows what is in it
        _fail(f"no data can be read in {error.filename}: {error.strerror}; --data-dir names another place")
    if overruled_redis(settings, os.environ) is not None:
        typer.echo(f"headrace: {OVERRULED}", err=True)
    return settings


def _of_a_service(data_dir: str | None, redis_url: str | None) -> "Settings":
    """As `_settings`, of a service that has run: where none has, there is nothing to list, and the place is wrong."""
    settings = _settings(data_dir, redis_url)
    if not _has_begun(settings):
        _fail(f"no service has run {_place(settings)}; --data-dir, or HEADRACE_DATA_DIR, says where it keeps its data")
    return settings


def _has_begun(settings: "Settings") -> bool:
    return settings.redis_url is not None or settings.data_dir.is_dir()


def _place(settings: "Settings") -> str:
    """Which service it is: keys of another one, made in the wrong folder, lock no door."""
    from service.telemetry.redaction import redacted

    if settings.redis_url is not None:
        return f"on {redacted(settings.redis_url)}"
    return f"in {settings.data_dir.absolute()}"


def _seen(settings: "Settings") -> "KeysSeen":
    """What is remembered of keys beside the data of a `headrace serve` on this machine, if there is one."""
    from service.store.keys_seen import FILE, KeysSeen

    beside = settings.data_dir / FILE if settings.data_dir.is_dir() else None
    return KeysSeen(settings.keys_seen_file or beside)


@contextmanager
def _table(settings: "Settings") -> "Iterator[ApiKeys]":
    """The keys of the service. What makes them unreachable ends the command with one line and status 1."""
    import redis

    from service.host.data_dir import DataDirInUse
    from service.host.redis_server import NoRedisServer
    from service.host.refusal import CannotServe

    try:
        with open_keys(settings) as keys:
            yield keys
    except (redis.RedisError, CannotServe, DataDirInUse, NoRedisServer, OSError) as error:
        _fail(str(error))


@contextmanager
def open_keys(settings: "Settings") -> "Iterator[ApiKeys]":
    """The keys in the Redis of `settings`; an embedded one that does not run is started for as long as this lasts.
    Raises `DataDirInUse` where it runs and has lost its files: a key would be lost with it, or be made elsewhere."""
    import redis

    from service.host import redis_server
    from service.host.data_dir import DataDirInUse, files_were_lost, locked, other_files
    from service.store.connection import connect

    if settings.redis_url is None and files_were_lost(settings.data_dir):
        raise DataDirInUse(other_files(settings.data_dir))
    client = connect(settings)
    try:
        client.ping()
    except redis.ConnectionError:
        if settings.redis_url is not None:
            raise
        redis_server.check_owner(settings)
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


def _fail(message: str, status: int = REFUSED) -> NoReturn:
    _say(message)
    raise typer.Exit(status)
