"""The change feed: its events and watches, webhooks, and the calls for them. No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Self, TypeAlias, TypedDict, TypeVar

from headrace import _calls as calls
from headrace._amounts import Amount
from headrace._bodies import json_body
from headrace._calls import Call, Caps, Rounding, Terminals
from headrace._errors import InvalidInput
from headrace._mistakes import one_or_many, segment
from headrace._records import JobEvent
from headrace._results import Json

T = TypeVar("T")

Watched: TypeAlias = Literal["value", "cut"]
EventType: TypeAlias = Literal["version", "value.changed", "cut.changed", "graph.deleted"]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that has happened to a graph."""

    id: str | None
    """The same however often the event comes; None for `reset`."""
    type: str
    """`version`, `value.changed`, `cut.changed`, `graph.deleted`; `reset`: events before this one are missing."""
    data: Json

    @classmethod
    def of(cls, event: JobEvent) -> Self:
        return cls(None if event.name == "reset" else event.id, event.name, event.data)


@dataclass(frozen=True, slots=True)
class Watch:
    """A flow that is solved at each version of its graph, and what it was last."""

    name: str
    graph: str
    version: int
    value: Amount | None
    """None: there is none, as `error` says."""
    error: str | None
    details: Json
    """The whole answer: terminals, caps, and what is told."""
    lower: Literal["ignored"] | None = None
    """Edges have lower bounds, and the flow is that of the graph without them."""

    @classmethod
    def from_json(cls, body: Json) -> Self:
        told = body["version"], body["value"], body.get("error")
        return cls(body["watch"], body["graph"], *told, details=body, lower=body.get("lower"))


@dataclass(frozen=True, slots=True)
class Webhook:
    """An address that events are sent to."""

    id: str
    url: str
    graphs: tuple[str, ...]
    types: tuple[str, ...]
    disabled: str | None
    """Why nothing is sent any more."""
    pending: int
    dead: int
    """Deliveries that were given up."""
    secret: str | None
    """Shown when the webhook is made, and never again."""

    @classmethod
    def from_json(cls, body: Json) -> Self:
        told = body["disabled"], body["pending"], body["dead"], body.get("secret")
        return cls(body["id"], body["url"], tuple(body["graphs"]), tuple(body["types"]), *told)


@dataclass(frozen=True, slots=True)
class Delivery:
    """An event on its way to a webhook."""

    id: str
    type: str
    graph: str
    status: str
    attempts: int
    answer: int | None
    """The HTTP status of the last answer."""
    error: str | None
    next_at: datetime | None

    @classmethod
    def from_json(cls, body: Json) -> Self:
        next_at = None if body["next_at"] is None else datetime.fromisoformat(body["next_at"])
        names = ("id", "type", "graph", "status", "attempts", "answer", "error")
        return cls(**{name: body[name] for name in names}, next_at=next_at)


class WatchOptions(TypedDict, total=False):
    """Keyword arguments of `watch`."""

    supply: Caps
    """At most this much out of each source."""
    demand: Caps
    """At most this much into each sink."""
    rounding: Rounding
    on: Watched | Sequence[Watched]
    """What is told when it changes: "value", "cut"; both by default."""


def watch(
    name: str, watch: str, source: Terminals | None, sink: Terminals | None, options: WatchOptions
) -> Call[Watch]:
    known = {"supply", "demand", "rounding", "on"}
    unknown = set(options) - known
    if unknown:
        raise TypeError(f"watch() has no option {min(unknown)!r}: the options are {', '.join(sorted(known))}")
    body = calls.ends(source, sink, options.get("supply"), options.get("demand"))
    if "rounding" in options:
        body["rounding"] = options["rounding"]
    if "on" in options:
        body["on"] = list(one_or_many(options["on"]))
    return Call("PUT", watch_path(name, watch), Watch.from_json, json_body(body))


def unwatch(name: str, watch: str) -> Call[None]:
    return Call("DELETE", watch_path(name, watch), _nothing)


def watches(name: str) -> Call[tuple[Watch, ...]]:
    path = calls.graph_path(name) + "/watches"
    return Call("GET", path, lambda body: tuple(map(Watch.from_json, body["watches"])))


def watch_path(name: str, watch: str) -> str:
    return f"{calls.graph_path(name)}/watches/{segment(watch)}"


def events_path(name: str) -> str:
    return calls.graph_path(name) + "/events"


def event_id(after: object) -> str | None:
    """The id to go on after, as a header has it; 0 may be a number. Raises `InvalidInput` for what is no id."""
    text = str(after) if isinstance(after, int) and not isinstance(after, bool) else after
    if text is None or (isinstance(text, str) and text.isascii() and text.isprintable()):
        return text
    raise InvalidInput(f"after= is the id of an event, as in events(after=event.id), not {after!r:.80}")


def put_webhook(
    webhook: str, url: str, graphs: str | Sequence[str], types: EventType | Sequence[EventType] | None
) -> Call[Webhook]:
    body: dict[str, Any] = {"url": url, "graphs": list(one_or_many(graphs))}
    if types is not None:
        body["types"] = list(one_or_many(types))
    return Call("PUT", webhook_path(webhook), Webhook.from_json, json_body(body))


def webhooks() -> Call[tuple[Webhook, ...]]:
    return Call("GET", "/v1/webhooks", lambda body: tuple(map(Webhook.from_json, body["webhooks"])))


def delete_webhook(webhook: str) -> Call[None]:
    return Call("DELETE", webhook_path(webhook), _nothing)


def rotate_webhook(webhook: str) -> Call[str]:
    return Call("POST", webhook_path(webhook) + ":rotate", lambda body: str(body["secret"]))


def deliveries(webhook: str, status: Literal["pending", "dead"]) -> Call[tuple[Delivery, ...]]:
    path = webhook_path(webhook) + "/deliveries"
    return Call("GET", path, lambda body: tuple(map(Delivery.from_json, body["deliveries"])), params={"status": status})


def redeliver(webhook: str, delivery: str) -> Call[Delivery]:
    path = f"{webhook_path(webhook)}/deliveries/{segment(delivery)}:redeliver"
    return Call("POST", path, Delivery.from_json)


def webhook_path(webhook: str) -> str:
    return "/v1/webhooks/" + segment(webhook)


def _nothing(_: Any) -> None:
    return None
