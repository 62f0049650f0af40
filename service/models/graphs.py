"""Bodies about whole graphs."""

import re
from datetime import datetime
from typing import Annotated, Any, Final, Self, TypeAlias

from pydantic import AfterValidator, BaseModel, Field, model_validator

from gpu_engine.networks.coordinates import MAX_CRS_CHARS
from gpu_engine.networks.rounding import Rounding
from gpu_engine.types import MAX_ARCS, MAX_DECIMALS, MAX_VERTICES
from service.models.amounts import Amount
from service.models.body import Body
from service.models.columns import IN_QUOTES, Amounts, Ids
from service.models.faults import ColumnFault
from service.store.catalogue import GraphInfo

_NAME: Final = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")
NAME: Final = _NAME.pattern
"""What the name of a graph matches."""

NO_NAME: Final = "is no graph name: that is 1 to 128 of a-z, A-Z, 0-9, '.', '_' and '-', first a letter or digit"
"""What is said of any other text."""

EXAMPLE: dict[str, Any] = {
    "n_vertices": 4,
    "tail": [0, 0, 1, 2],
    "head": [1, 2, 3, 3],
    "capacity": [3, 2.5, "inf", 2],
    "undirected": False,
    "edge_ids": ["a", "b", "c", "d"],
    "vertex_labels": None,
    "source": 0,
    "sink": 3,
}


class GraphBody(Body):
    """The columnar JSON of PUT. Documentation only: `gpu_engine.formats` reads it."""

    n_vertices: int | None = Field(default=None, ge=0, le=MAX_VERTICES)
    tail: Ids
    head: Ids
    capacity: Amounts
    undirected: bool | list[bool] = False
    closed: list[bool] | None = None
    """Edges that let nothing through until a PATCH reopens them."""
    cost: Amounts | None = None
    """What a unit of flow costs on each edge; negative on directed edges alone."""
    cost_decimals: int | None = Field(
        default=None,
        ge=0,
        le=MAX_DECIMALS,
        description="Places costs are kept to; the fewest that hold all by default.",
    )
    lower: Amounts | None = None
    """What each edge carries at least in a circulation, finite; 0 on undirected edges."""
    decimals: int | None = Field(
        default=None,
        ge=0,
        le=MAX_DECIMALS,
        description="Places amounts are kept to; the fewest that hold all by default.",
    )
    rounding: Rounding = Field(
        default="error", description="What becomes of a capacity with more places; needs `decimals`."
    )
    edge_ids: Ids | None = None
    vertex_labels: Ids | None = None
    source: int | str | None = None
    sink: int | str | None = None
    vertices: Ids | None = Field(default=None, description="Those that have a capacity; with `vertex_capacity`.")
    vertex_capacity: Amounts | None = Field(
        default=None, description='What may pass each of `vertices`, inflow plus own supply; "inf" for unlimited.'
    )
    x: list[float] | None = Field(default=None, description="Where each vertex lies, with `y`; all or none.")
    y: list[float] | None = None
    crs: str | None = Field(
        default=None,
        max_length=MAX_CRS_CHARS,
        description='What `x` and `y` are; "EPSG:4326", longitude and latitude, by default.',
    )


def is_graph_name(text: str) -> bool:
    """Whether a graph may have this name."""
    return _NAME.fullmatch(text) is not None


def _checked_name(text: str) -> str:
    if not is_graph_name(text):
        raise ColumnFault(f"{text[:100]!r} {NO_NAME}")
    return text


GraphNameText: TypeAlias = Annotated[
    str, Field(json_schema_extra={"pattern": NAME}), IN_QUOTES, AfterValidator(_checked_name)
]


class CopyBody(Body):
    to: GraphNameText
    """The name of the new graph."""


class RestoreBody(Body):
    version: int = Field(ge=1, lt=1 << 60)
    """The next version is to have the capacities, the closed edges and the costs of this one."""


class EstimateBody(Body):
    n_vertices: int = Field(ge=0, le=MAX_VERTICES)
    n_edges: int = Field(ge=0, le=MAX_ARCS // 2)
    n_links: int | None = Field(default=None, ge=0, le=MAX_ARCS // 2)
    """Pairs of vertices that edges join; without it every edge counts as the only one of its pair."""
    n_limited: int = Field(default=0, ge=0, le=MAX_VERTICES)
    """Vertices that have a capacity: each is two inside."""
    n_twins: int = Field(default=0, ge=0, le=MAX_ARCS // 2)
    """Undirected edges at such vertices: each is two inside."""
    n_two_way: int | None = Field(default=None, ge=0, le=MAX_ARCS // 2)
    """Pairs with such a vertex that edges join both ways: each is two inside. Without it, as many as `n_twins`."""
    coordinates: bool = False
    """The vertices have coordinates: 16 bytes each."""
    infinite: bool = False
    """Some edge or vertex with a capacity has no limit."""
    wide: bool = False
    """Some pair has 2**30 units or more between it: a device then holds 64-bit residuals."""
    name_bytes: int = Field(default=0, ge=0, le=1 << 60)
    """Bytes of edge ids and vertex labels: 8 an integer (16 once one has been named), 16 and its bytes a string."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        """Of edges, and of vertices, a part is no more than all, and nothing is said of what there is none of."""
        parts = (("n_links", "n_edges"), ("n_twins", "n_edges"), ("n_two_way", "n_edges"), ("n_limited", "n_vertices"))
        for part, whole in parts:
            if (getattr(self, part) or 0) > getattr(self, whole):
                raise ColumnFault(f"is more than `{whole}`, of which they are a part", field=part)
        if self.n_edges and not self.n_vertices:
            raise ColumnFault("there is no edge without a vertex", field="n_vertices")
        pairs = self.n_vertices * (self.n_vertices - 1) // 2
        if (self.n_links or 0) > pairs:
            raise ColumnFault(f"{self.n_vertices} vertices have {pairs} pairs at most", field="n_links")
        for part in ("n_twins", "n_two_way"):
            if getattr(self, part) and not self.n_limited:
                raise ColumnFault("is at vertices that have a capacity: `n_limited` says how many", field=part)
        return self


class MemoryInfo(BaseModel):
    bytes: int
    """Memory of the graph at rest, without flow states."""
    bytes_per_flow_state: int
    scratch_bytes: int
    """Memory that is needed beside these while a flow state is solved."""
    fits: bool
    free_bytes: int


class EstimateInfo(BaseModel):
    """On the CPU engine all is `host` memory; on a device, flow states and solves take `device` memory instead."""

    host: MemoryInfo
    device: MemoryInfo


class GraphList(BaseModel):
    """A page of the graphs, by name."""

    graphs: list[GraphInfo]
    next: str | None = None
    """For `after`, to get the next page; null: there are no more."""


class CapacitiesInfo(BaseModel):
    """A page of columns, one row per edge."""

    version: int
    edge_ids: list[int] | list[str]
    tail: list[int] | list[str]
    head: list[int] | list[str]
    capacity: list[Amount]
    closed: list[bool]
    undirected: list[bool]
    next: int | None = None
    """The `offset` of the page behind this one; null: it is the last."""
    cost: list[Amount] | None = None
    """If the edges have costs."""
    lower: list[Amount] | None = None
    """If the edges have lower bounds."""


class SnapshotInfo(BaseModel):
    version: int
    bytes: int
    created_at: datetime


class SnapshotList(BaseModel):
    snapshots: list[SnapshotInfo]
