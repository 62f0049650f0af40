"""Changes of structure as requests, and what they answer. Nothing here does network I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, Self, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

from headrace._amounts import Amounts, Series, amount_column
from headrace._bodies import json_body
from headrace._calls import Call, Ids, Rounding, graph_path, of_change
from headrace._columns import as_column
from headrace._errors import InvalidInput
from headrace._mistakes import flag, n_rows, refuse_set
from headrace._options import check_options
from headrace._places import place_column
from headrace._results import PatchResult

OWN = (
    *("tail", "head", "capacity", "edge_ids", "cost", "lower", "undirected", "edges", "vertices", "vertex_capacity"),
    *("delete", "delete_vertices", "x", "y", "timeout_s"),
)

Floats: TypeAlias = Sequence[float] | NDArray[Any] | Series


class StructureOptions(TypedDict, total=False):
    """Keyword arguments of all changes of structure."""

    on_missing: Literal["error", "skip"]
    """Whether an unknown edge or vertex to delete refuses the whole change (default) or is left out."""
    rounding: Rounding
    """What becomes of an amount with more decimals than the graph's: refused ("error", the default), or rounded."""
    if_version: int | str
    """Refuse unless the graph is at this version, of the load that the handle knows; or the text of an ETag."""
    solve: Literal["all", "none"]
    """Whether flows kept solved are re-solved before the answer (default) or at their next question."""
    idempotency_key: str
    """Apply it once, however often it is sent with this key within an hour: the first answer comes again. For one that
    may have been sent before: by a process that ended, or a call that was given up. Each request has a key of its own
    else."""
    dry_run: bool
    """Say what the change would do, and change nothing: the answer has the version that the graph has and keeps."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NewEdges:
    """Edges to insert: a column with one row for each, or one amount for all."""

    tail: Ids
    head: Ids
    capacity: Amounts
    edge_ids: Ids | None = None
    """Where the edges of the graph have ids; else they get the next numbers."""
    cost: Amounts | None = None
    """Where the edges of the graph have costs."""
    lower: Amounts | None = None
    """What they carry at least in a circulation; 0 if it is not said."""
    undirected: bool | Sequence[bool] | NDArray[np.bool_] | Series = False

    def as_json(self) -> dict[str, object]:
        for name in ("tail", "head", "edge_ids"):
            refuse_set(getattr(self, name), name)
        named = {"edge_ids": self.edge_ids, "tail": self.tail, "head": self.head}
        members: dict[str, Any] = {name: as_column(ids) for name, ids in named.items() if ids is not None}
        for name, amounts in (("capacity", self.capacity), ("cost", self.cost), ("lower", self.lower)):
            if amounts is not None:
                refuse_set(amounts, name)
                members[name] = amount_column(as_column(amounts), n_rows(members["tail"], "tail"), name)
        flags = self.undirected if isinstance(self.undirected, bool) else _flags(self.undirected)
        return {"op": "insert", **members} | ({} if flags is False else {"undirected": flags})


@dataclass(frozen=True, slots=True)
class StructureResult(PatchResult):
    """An accepted change of structure."""

    inserted_vertices: int = 0
    inserted_edges: int = 0
    deleted_edges: int = 0
    """Those of deleted vertices count."""
    deleted_vertices: int = 0
    vertices: range | None = None
    """The numbers of the inserted vertices; None where vertices have names."""
    edges: range | None = None
    """The numbers of the inserted edges; None where edges have ids of their own."""

    @classmethod
    def from_json(cls, body: Any) -> Self:
        patched, inserted = PatchResult.from_json(body), body["inserted"]
        return cls(
            **{field.name: getattr(patched, field.name) for field in fields(PatchResult)},
            inserted_vertices=inserted["vertices"],
            inserted_edges=inserted["edges"],
            deleted_edges=body["deleted"]["edges"],
            deleted_vertices=body["deleted"].get("vertices", 0),
            vertices=_numbers(inserted, "first_vertex", "vertices"),
            edges=_numbers(inserted, "first_edge", "edges"),
        )


def _numbers(inserted: Mapping[str, int], first: str, count: str) -> range | None:
    at = inserted.get(first)
    return None if at is None else range(at, at + inserted[count])


@dataclass(frozen=True, slots=True, eq=False)
class Restructuring:
    """What one version inserts and deletes."""

    vertices: Ids | int | None
    vertex_capacity: Amounts | None
    edges: NewEdges | None
    delete: Ids | None
    delete_vertices: Ids | None
    x: Floats | None
    y: Floats | None

    def operations(self) -> list[dict[str, object]]:
        operations: list[dict[str, object]] = []
        if self.vertices is not None:
            operations.append({"op": "insert", **self._vertices(self.vertices)})
        elif self.vertex_capacity is not None:
            raise InvalidInput(
                "vertex_capacity= is that of vertices= to insert; g.patch(vertices=, set=) changes others"
            )
        elif self.x is not None or self.y is not None:
            raise InvalidInput("x and y are of vertices to insert: give these in vertices=")
        if self.edges is not None:
            if not isinstance(self.edges, NewEdges):
                raise InvalidInput("edges= are NewEdges(tail=..., head=..., capacity=...)")
            operations.append(self.edges.as_json())
        if self.delete is not None:
            operations.append({"op": "delete", "edges": as_column(self.delete)})
        if self.delete_vertices is not None:
            refuse_set(self.delete_vertices, "vertices")
            operations.append({"op": "delete", "vertices": as_column(self.delete_vertices)})
        return operations

    def _vertices(self, vertices: Ids | int) -> dict[str, object]:
        refuse_set(vertices, "vertices")
        given: Any = vertices.item() if isinstance(vertices, np.integer) else vertices
        said: dict[str, Any] = {"count": given} if isinstance(given, int) else {"vertices": as_column(given)}
        if self.vertex_capacity is not None:
            refuse_set(self.vertex_capacity, "capacity")
            count = given if isinstance(given, int) else n_rows(said["vertices"], "vertices")
            said["capacity"] = amount_column(as_column(self.vertex_capacity), count, "capacity")
        places = {name: column for name, column in (("x", self.x), ("y", self.y)) if column is not None}
        return said | {name: place_column(as_column(column), name) for name, column in places.items()}


def restructure(
    name: str, change: Restructuring, options: StructureOptions, generation: str | None
) -> Call[StructureResult]:
    check_options("a change of structure", options, StructureOptions.__annotations__, OWN)
    body: dict[str, object] = {"batch": change.operations()}
    body |= {key: options[key] for key in ("on_missing", "rounding") if key in options}
    params: dict[str, str] = {"solve": options["solve"]} if "solve" in options else {}
    if flag(options.get("dry_run", False), "dry_run"):
        params["dry_run"] = "true"
    return Call(
        "PATCH",
        graph_path(name) + "/edges",
        StructureResult.from_json,
        json_body(body),
        params=params,
        headers=of_change(options, generation),
    )


def _flags(undirected: Any) -> Any:
    """Raises `InvalidInput` for what is no flag, such as the text ``"false"``, which Python takes for true."""
    flags = np.asarray(as_column(undirected))
    if flags.dtype.kind not in "biu" and not all(isinstance(flag, bool) for flag in flags.ravel().tolist()):
        raise InvalidInput(f"undirected is true or false, or a column of these, not {undirected!r:.80}")
    return flags.astype(np.bool_).tolist()
