"""Where graphs are served: moves between workers, and workers that are drained."""

from dataclasses import dataclass
from typing import Any, Self

from headrace._bodies import json_body
from headrace._calls import Call, graph_path
from headrace._mistakes import segment

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Move:
    """A graph that another worker serves now."""

    graph: str
    from_worker: str
    to_worker: str
    moved: bool
    """False: it was there already."""
    pause_ms: float | None
    """How long commands of the graph had to wait; None: the worker had not yet said that it serves it."""
    waiting: int
    """Commands that waited for it and went along."""
    flow_states: int
    """Flow states that were solved when it came."""

    @classmethod
    def from_json(cls, body: Json) -> Self:
        pause_ms = None if body["pause_ms"] is None else float(body["pause_ms"])
        figures = body["moved"], pause_ms, body["waiting"], body["flow_states"]
        return cls(body["name"], body["from"], body["to"], *figures)


@dataclass(frozen=True, slots=True)
class Drained:
    """Whether a worker gives its graphs away, and how many it still serves."""

    worker: str
    draining: bool
    graphs_left: int

    @classmethod
    def from_json(cls, body: Json) -> Self:
        return cls(body["worker"], body["draining"], body["graphs_left"])


def move(name: str, to: str) -> Call[Move]:
    return Call("POST", graph_path(name) + ":move", Move.from_json, json_body({"to": to}))


def workers() -> Call[tuple[Json, ...]]:
    return Call("GET", "/v1/workers", lambda body: tuple(body["workers"]))


def drain(worker: str) -> Call[Drained]:
    return Call("PUT", _drain_path(worker), Drained.from_json)


def undrain(worker: str) -> Call[Drained]:
    return Call("DELETE", _drain_path(worker), Drained.from_json)


def _drain_path(worker: str) -> str:
    return f"/v1/workers/{segment(worker)}/drain"
