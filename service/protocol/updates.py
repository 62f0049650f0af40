"""The arguments of commands that change a graph."""

from typing import Any, Final, Literal

from pydantic import SerializerFunctionWrapHandler, model_serializer

from service.protocol.message import AnswerArgs, Message, Rounding, Wanted


class LoadArgs(Message):
    blob: str
    """Name of the stored blob: a packed edge list (gpu_engine.formats.pack)."""
    n_bytes: int = 0
    """The length of the blob, by which the worker guesses how long the load takes."""
    if_match: Wanted | None = None
    """Load only if the graph is at this version, at one of these, or (``*``) at any; ``absent``: if there is none;
    ``new``: the same for a copy, which is refused in other words."""


class MoveArgs(Message):
    to: str
    """The worker that is to serve the graph."""


class DeleteArgs(Message):
    if_match: Wanted | None = None


class Operation(Message):
    """One operation of a PATCH; exactly one of `edges`, which are vertices in PATCH_VERTICES, or `tail` with `head`."""

    op: Literal["set", "add", "scale", "close", "reopen"]
    edges: list[int] | list[str] | None = None
    tail: list[int] | list[str] | None = None
    head: list[int] | list[str] | None = None
    amounts: list[str] | None = None
    """Decimal literals as the caller wrote them ("4", "1.5", "inf"), for set, add and scale."""
    packed: str | None = None
    """Stands in place of the four members above when they are long (`service.packed`)."""


class PatchArgs(AnswerArgs):
    batch: list[Operation]
    on_missing: Literal["error", "skip"] = "error"
    rounding: Rounding = "error"
    """What becomes of results of set, add and scale that have more decimals than the graph keeps."""
    if_match: Wanted | None = None
    solve: Literal["all", "none"] = "all"


LATER: Final = frozenset({"vertex_capacity", "x", "y", "lower"})
"""Members of an operation on the structure that the first release to have any did not know."""


class EdgesOperation(Message):
    """One operation on the structure: vertices or edges are inserted or deleted."""

    op: Literal["insert", "delete"]
    vertices: list[int] | list[str] | None = None
    """Names of vertices to insert, or to delete."""
    count: int | None = None
    """How many vertices to insert, where they are numbered."""
    edge_ids: list[int] | list[str] | None = None
    """Ids of edges to insert; None where they are numbered."""
    edges: list[int] | list[str] | None = None
    """Ids of edges to delete."""
    tail: list[int] | list[str] | None = None
    head: list[int] | list[str] | None = None
    capacity: list[str] | None = None
    vertex_capacity: list[str] | None = None
    """Of vertices to insert, one for each; None: they have none. A name of its own: an earlier worker does not take an
    insertion without it for the whole one."""
    cost: list[str] | None = None
    lower: list[str] | None = None
    undirected: bool | list[bool] | None = None
    x: list[float] | None = None
    """Where the inserted vertices lie, with `y`; None where those of the graph lie nowhere."""
    y: list[float] | None = None
    packed: str | None = None
    """Stands in place of all columns but `undirected`, `x` and `y` when they are long (`service.packed`)."""

    @model_serializer(mode="wrap")
    def _as_before(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without later members that say nothing, so that workers of the release before can read it."""
        members: dict[str, Any] = written(self)
        return {name: value for name, value in members.items() if value is not None or name not in LATER}


class EdgesArgs(AnswerArgs):
    batch: list[EdgesOperation]
    on_missing: Literal["error", "skip"] = "error"
    rounding: Rounding = "error"
    """What becomes of amounts that have more decimals than the graph keeps."""
    if_match: Wanted | None = None
    solve: Literal["all", "none"] = "all"


class RestoreArgs(AnswerArgs):
    version: int
    """The next version is to have the capacities, the closed edges and the costs of this one."""
    if_match: Wanted | None = None
    solve: Literal["all", "none"] = "all"


class WatchArgs(AnswerArgs):
    """A flow whose changes are told. Terminals that are None are the graph's own at each version.

    `encoding` is of the answer alone, and is not kept with the watch.
    """

    watch: str
    sources: list[int] | list[str] | None = None
    sinks: list[int] | list[str] | None = None
    supply: list[str] | None = None
    demand: list[str] | None = None
    rounding: Rounding = "error"
    on: tuple[Literal["value", "cut"], ...] = ("value", "cut")

    def described(self) -> dict[str, Any]:
        """What is kept and answered of the watch."""
        return self.model_dump(exclude_none=True, exclude={"encoding"})

    def kept(self) -> str:
        """`described` as JSON."""
        return self.model_dump_json(exclude_none=True, exclude={"encoding"})


class UnwatchArgs(Message):
    watch: str


class EmptyArgs(Message):
    """The arguments of kinds that need none: snapshot."""
