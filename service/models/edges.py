"""The body of PATCH edges: vertices and edges to insert and to delete; and its answer."""

from typing import Any, Final, Literal, Self

from pydantic import BaseModel, Field, model_validator

from gpu_engine.networks.rounding import Rounding
from gpu_engine.text.counted import counted
from service.errors import ServiceError
from service.models.body import Body
from service.models.capacities import MAX_OPERATIONS
from service.models.columns import Amounts, Ids, Places, refuse_infinite, refuse_negative
from service.models.faults import ColumnFault
from service.models.flows import PatchInfo
from service.packed import PACKED_ROWS, pack
from service.protocol import EdgesArgs, EdgesOperation, Wanted

EXAMPLES: dict[str, Any] = {
    "edges": {
        "value": {"op": "insert", "edge_ids": ["f", "g"], "tail": ["s", "u"], "head": ["u", "t"], "capacity": [2, 1]}
    },
    "a vertex and an edge to it": {
        "value": {
            "batch": [
                {"op": "insert", "vertices": ["w"]},
                {"op": "insert", "edge_ids": ["h"], "tail": ["s"], "head": ["w"], "capacity": ["inf"]},
            ]
        }
    },
    "a vertex with a capacity": {"value": {"op": "insert", "vertices": ["w"], "capacity": [5]}},
    "where all are numbered": {
        "value": {
            "batch": [
                {"op": "insert", "count": 2},
                {"op": "insert", "tail": [4, 5], "head": [5, 1], "capacity": [2, 2], "undirected": True},
            ]
        }
    },
    "a vertex of a graph with coordinates": {"value": {"op": "insert", "vertices": ["w"], "x": [8.69], "y": [49.41]}},
    "delete": {"value": {"op": "delete", "edges": ["c"]}},
    "delete a vertex with its edges": {"value": {"op": "delete", "vertices": ["w"]}},
}

COLUMNS: Final = ("vertices", "edge_ids", "edges", "tail", "head", "capacity", "cost", "lower")
OF_INSERTED: Final = ("edge_ids", "capacity", "cost", "lower", "undirected", "x", "y")
"""Members that no deletion has."""
OF_EDGES: Final = ("edge_ids", "tail", "head", "cost", "lower", "undirected")
"""Members of an insertion of edges alone."""


class EdgesOperationBody(Body):
    """One operation: vertices, or edges, are inserted or deleted."""

    op: Literal["insert", "delete"] | None = None
    vertices: Ids | None = Field(
        default=None, description="Names of vertices to insert, or to delete with all of their edges."
    )
    count: int | None = Field(
        default=None, ge=0, le=2**31 - 2, description="How many vertices to insert, where they are numbered."
    )
    edge_ids: Ids | None = Field(default=None, description="Ids of edges to insert, where they are not numbered.")
    edges: Ids | None = Field(default=None, description="Ids of edges to delete.")
    tail: Ids | None = None
    head: Ids | None = None
    capacity: Amounts | None = Field(
        default=None,
        description='One for each edge to insert, "inf" for unlimited; or one for each vertex, where those have any.',
    )
    cost: Amounts | None = Field(default=None, description="One for each edge to insert, where edges have costs.")
    lower: Amounts | None = Field(default=None, description="Lower bounds, one for each edge to insert; else 0.")
    undirected: bool | list[bool] | None = Field(default=None, description="For all of them, or one for each.")
    x: Places | None = Field(
        default=None, description="Of vertices to insert, where those of the graph have coordinates."
    )
    y: Places | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.check_operation()
        return self

    def check_operation(self) -> None:
        """Check that the members go together, and have as many rows; raises ValueError."""
        if self.op is None:
            raise ValueError('say what to do by `op`: "insert" or "delete"')
        if self.op == "delete":
            self._check_deletion()
        elif self.edges is not None:
            raise ColumnFault("names edges to delete; those to insert are named in `edge_ids`", field="edges")
        elif self.vertices is not None or self.count is not None:
            self._check_vertices()
            self._check_places()
        else:
            self._check_insertion()

    def _check_vertices(self) -> None:
        given = [name for name in ("vertices", "count", *OF_EDGES) if getattr(self, name) is not None]
        if len(given) > 1:
            told = " and ".join(f"`{name}`" for name in given)
            raise ValueError(f"{told} do not go together: vertices are an operation of their own in `batch`")
        self._check_capacity("vertex", "vertices")

    def _check_places(self) -> None:
        for name, other in (("x", "y"), ("y", "x")):
            column = getattr(self, name)
            if column is None and getattr(self, other) is not None:
                raise ColumnFault(f"`{other}` and `{name}` come together", field=name)
            if column is not None and len(column) != self.n_rows:
                rows, vertices = counted(len(column), "row"), counted(self.n_rows, "vertex", "vertices")
                raise ColumnFault(f"{name} has {rows} for {vertices}", field=name)

    def _check_deletion(self) -> None:
        wrong = [n for n in ("count", *OF_INSERTED) if n in self.given]
        if wrong:
            raise ValueError(f"`{wrong[0]}` has no meaning in a deletion, which names `edges` or `vertices`")
        by_ends = self.tail is not None or self.head is not None
        if [self.edges is not None, by_ends, self.vertices is not None].count(True) != 1:
            raise ValueError("name edges by `edges`, or by `tail` and `head`; vertices, in an operation of their own")
        self._check_ends()

    def _check_insertion(self) -> None:
        for name in ("x", "y"):
            if getattr(self, name) is not None:
                raise ColumnFault("has a meaning where vertices are inserted, not edges", field=name)
        missing = [name for name in ("tail", "head", "capacity") if name not in self.given]
        if missing:
            raise ValueError(f"`{missing[0]}` is missing: edges are inserted by `tail`, `head` and `capacity`")
        self._check_ends()
        for name in ("edge_ids", "cost", "lower", "undirected"):
            column = getattr(self, name)
            if column is not None and not isinstance(column, bool):
                self._check_rows(name, len(column), "edge", "edges")
        self._check_capacity("edge", "edges")
        if self.cost is not None:
            refuse_infinite(self.cost, "a cost", "cost")
        if self.lower is not None:
            refuse_infinite(self.lower, "a lower bound", "lower")
            refuse_negative(self.lower, "a lower bound", "lower")

    def _check_capacity(self, one: str, several: str) -> None:
        if self.capacity is not None:
            self._check_rows("capacity", len(self.capacity), one, several)
            refuse_negative(self.capacity, "a capacity", "capacity")

    def _check_rows(self, name: str, n_rows: int, one: str, several: str) -> None:
        if n_rows != self.n_rows:
            told = f"{name} has {counted(n_rows, 'row')} for {counted(self.n_rows, one, several)}"
            raise ColumnFault(told, field=name)

    def _check_ends(self) -> None:
        if (self.tail is None) != (self.head is None):
            raise ValueError("`tail` and `head` come together")
        if self.tail is not None and self.head is not None and len(self.tail) != len(self.head):
            raise ColumnFault(f"`tail` has {counted(len(self.tail), 'row')}, `head` has {len(self.head)}", field="head")

    @property
    def given(self) -> set[str]:
        """Members that say something."""
        return {name for name in self.model_fields_set if getattr(self, name) is not None}

    @property
    def n_rows(self) -> int:
        if self.count is not None:
            return self.count
        columns = (self.vertices, self.edges, self.tail)
        return next((len(column) for column in columns if column is not None), 0)

    def operation(self) -> EdgesOperation:
        """The operation as a worker gets it. Its columns have just been validated, and are not validated again."""
        members: dict[str, Any] = {"op": self.op, "count": self.count, "undirected": self.undirected}
        members |= {"x": self.x, "y": self.y}
        columns: dict[str, Any] = {name: getattr(self, name) for name in COLUMNS}
        if self.tail is None:
            columns["vertex_capacity"] = columns.pop("capacity")
        if self.count is None and self.n_rows >= PACKED_ROWS:
            return EdgesOperation.model_construct(**members, packed=pack(columns))
        return EdgesOperation.model_construct(**members, **columns)


class EdgesBody(EdgesOperationBody):
    """One operation, or several in `batch`, all or nothing. The order of those in a batch does not matter."""

    batch: list[EdgesOperationBody] | None = Field(default=None, max_length=MAX_OPERATIONS)
    on_missing: Literal["error", "skip"] = "error"
    rounding: Rounding = Field(
        default="error", description="What becomes of amounts of more decimals than the graph's."
    )

    def check_operation(self) -> None:
        if self.batch is None:
            super().check_operation()
        elif not self.model_fields_set.isdisjoint(EdgesOperationBody.model_fields):
            raise ValueError("`batch` stands alone: put the operation into it")

    def args(
        self, *, if_match: Wanted | None, solve: Literal["all", "none"], max_rows: int, rounding: Rounding | None
    ) -> EdgesArgs:
        """What the worker gets; raises too_large when the batch has more than `max_rows` rows in all.

        A `rounding` that stands beside the body counts for more than the body's own.
        """
        operations = [self] if self.batch is None else self.batch
        n_rows = sum(operation.n_rows for operation in operations)
        if n_rows > max_rows:
            most = f"a PATCH has at most {max_rows} rows (HEADRACE_MAX_PATCH_ROWS)"
            raise ServiceError("too_large", f"{most}, not {n_rows}: send several")
        return EdgesArgs.model_construct(
            batch=[operation.operation() for operation in operations],
            on_missing=self.on_missing,
            rounding=self.rounding if rounding is None else rounding,
            if_match=if_match,
            solve=solve,
        )


class InsertedRows(BaseModel):
    """What was inserted."""

    vertices: int
    edges: int
    first_vertex: int | None = None
    """The number of the first of them, whom the others follow; left out where vertices have names."""
    first_edge: int | None = None
    """The same of edges; left out where they have ids of their own."""


class DeletedRows(BaseModel):
    """What was deleted."""

    edges: int
    """Those of deleted vertices count."""
    vertices: int


class StructureInfo(PatchInfo):
    """The answer of PATCH edges."""

    inserted: InsertedRows
    deleted: DeletedRows


class RestoredInfo(PatchInfo):
    """The answer of a restore."""

    inserted: InsertedRows | None = None
    """0 of both: nothing is new, and what comes back counts in `applied`. Left out with `deleted` where the same edges
    and vertices were there."""
    deleted: DeletedRows | None = None
    """What was inserted since, and is gone now. Vertices that came since stay."""
