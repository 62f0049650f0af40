"""`headrace events`, `headrace watch` and `headrace webhooks`: what happens to graphs, and who is told."""

from contextlib import suppress
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

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
    caps,
    connected,
    fail,
    names,
    refuse_beside,
)
from service.cli.show import Columns, printable, say_facts, say_json, say_line, say_table

if TYPE_CHECKING:
    from headrace import Event, Watch, Webhook

app = typer.Typer()
webhooks = typer.Typer(help="Addresses that events are sent to.", no_args_is_help=True)
app.add_typer(webhooks, name="webhooks")

Hook = Annotated[str, typer.Argument(help="The webhook's name.")]


@app.command()
def events(
    name: Name,
    after: Annotated[
        str | None, typer.Option(help="The last event seen; 0: all that are kept; by default from now on.")
    ] = None,
    count: Annotated[int | None, typer.Option(min=1, help="End after so many.")] = None,
    json: Json = False,
    key: Key = None,
    url: Url = DEFAULT_URL,
) -> None:
    """What happens to a graph, line by line, until Ctrl-C."""
    with connected(url, key) as client, suppress(KeyboardInterrupt), client.graph(name).events(after) as found:
        for event in islice(found, count):
            if json:
                say_line({"id": event.id, "type": event.type, "data": event.data})
            else:
                typer.echo(_line(event))


@app.command()
def watch(
    name: Name,
    watch: Annotated[str | None, typer.Argument(help="The watch to make; without it all are listed.")] = None,
    source: Vertices = None,
    sink: Vertices = None,
    supply: Supply = None,
    demand: Demand = None,
    on: Annotated[list[str] | None, typer.Option(help="What is told: value, cut; by default both.")] = None,
    remove: Annotated[bool, typer.Option("--remove", help="End this watch.")] = False,
    json: Json = False,
    key: Key = None,
    url: Url = DEFAULT_URL,
) -> None:
    """Tell when a flow or its cut changes, or list what is watched."""
    if remove and watch is None:
        fail("say which watch is to end", MISWRITTEN)
    if remove or watch is None:
        beside = "beside --remove" if remove else "without the name of a watch"
        refuse_beside(beside, source=source, sink=sink, supply=supply, demand=demand, on=on)
    options: Any = caps(supply, demand) | ({"on": on} if on else {})
    with connected(url, key) as client:
        graph = client.graph(name)
        if watch is None:
            _say_watches(graph.watches(), json)
        elif remove:
            graph.unwatch(watch)
        else:
            made = graph.watch(watch, names(source), names(sink), **options)
            _say_watch(made, json)


@webhooks.command("list")
def list_webhooks(json: Json = False, key: Key = None, url: Url = DEFAULT_URL) -> None:
    """All webhooks, and how many deliveries wait."""
    with connected(url, key) as client:
        found = client.webhooks()
    if json:
        say_json([_told(hook) for hook in found])
        return
    columns: Columns = {
        "webhook": [hook.id for hook in found],
        "url": [hook.url for hook in found],
        "graphs": [" ".join(hook.graphs) for hook in found],
        "waiting": [hook.pending for hook in found],
        "dead": [hook.dead for hook in found],
        "state": [hook.disabled or "enabled" for hook in found],
    }
    say_table(columns, "there are no webhooks")


@webhooks.command("put")
def put_webhook(
    webhook: Hook,
    address: Annotated[str, typer.Argument(help="The URL that events are sent to.")],
    graph: Annotated[list[str], typer.Option(help="A graph whose events are sent; repeat for several.")],
    type: Annotated[
        list[str] | None, typer.Option(help="A type of events; repeat for several; by default all.")
    ] = None,
    json: Json = False,
    key: Key = None,
    url: Url = DEFAULT_URL,
) -> None:
    """Make a webhook, or change one. The secret of a new one is shown once."""
    kinds: Any = type
    with connected(url, key) as client:
        made = client.put_webhook(webhook, address, graph, kinds or None)
    if json:
        say_json(_told(made) | ({} if made.secret is None else {"secret": made.secret}))
    else:
        say_facts({"webhook": made.id, "secret": made.secret or "as before"})


@webhooks.command("delete")
def delete_webhook(webhook: Hook, key: Key = None, url: Url = DEFAULT_URL) -> None:
    """Send nothing there any more."""
    with connected(url, key) as client:
        client.delete_webhook(webhook)


@webhooks.command("rotate")
def rotate_webhook(webhook: Hook, key: Key = None, url: Url = DEFAULT_URL) -> None:
    """Print a new secret, once. The one before signs as well, for a day."""
    with connected(url, key) as client:
        typer.echo(client.rotate_webhook(webhook))


@webhooks.command("deliveries")
def deliveries(
    webhook: Hook,
    dead: Annotated[bool, typer.Option("--dead", help="Those that were given up.")] = False,
    json: Json = False,
    key: Key = None,
    url: Url = DEFAULT_URL,
) -> None:
    """What waits to be delivered, or what was given up."""
    with connected(url, key) as client:
        found = client.deliveries(webhook, "dead" if dead else "pending")
    if json:
        say_json([asdict(one) for one in found])
        return
    columns: Columns = {
        "delivery": [one.id for one in found],
        "type": [one.type for one in found],
        "tries": [one.attempts for one in found],
        "next try": [one.next_at for one in found],
        "error": [one.error for one in found],
    }
    say_table(columns, "there are no such deliveries")


@webhooks.command("redeliver")
def redeliver(webhook: Hook, delivery: str, key: Key = None, url: Url = DEFAULT_URL) -> None:
    """Try a delivery now."""
    with connected(url, key) as client:
        client.redeliver(webhook, delivery)


def _told(hook: "Webhook") -> dict[str, object]:
    told = asdict(hook)
    del told["secret"]
    return told


def _say_watch(made: "Watch", json: bool) -> None:
    if json:
        say_json(made.details)
    else:
        _say_watches((made,), json)


def _say_watches(found: "tuple[Watch, ...]", json: bool) -> None:
    if json:
        say_json([one.details for one in found])
        return
    columns: Columns = {
        "watch": [one.name for one in found],
        "version": [one.version for one in found],
        "flow": [one.value for one in found],
        "error": [one.error for one in found],
    }
    say_table(columns, "nothing is watched")


def _line(event: "Event") -> str:
    """An event for people."""
    data = event.data
    about = " ".join(str(data[name]) for name in ("version", "watch") if name in data)
    if "value" in data:
        about += f": {data['old_value']} -> {data['error'] if data['value'] is None else data['value']}"
    for sign, name in (("+", "cut_added"), ("-", "cut_removed")):
        about += "".join(f" {sign}{edge}" for edge in data.get(name, ()))
    return printable(f"{event.type} {about}")
