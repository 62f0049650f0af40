"""Python client for Headrace, the resident max-flow / min-cut service.

```python
from headrace import Client

with Client("http://127.0.0.1:8080") as hr:
    city = hr.put_graph("city", tail=[0, 0, 1, 2], head=[1, 2, 3, 3], capacity=[3, 2, 4, 2])
    print(city.max_flow(0, 3).value)
```
"""

from headrace._amounts import Amount, Amounts, Exact
from headrace._async_client import AsyncClient
from headrace._async_graph import AsyncGraph
from headrace._async_job import AsyncJob
from headrace._async_row_stream import AsyncRowStream
from headrace._async_watching import AsyncEvents
from headrace._bottlenecks import Bottlenecks
from headrace._calls import (
    Caps,
    End,
    FlowField,
    GraphFormat,
    Ids,
    MatchingField,
    MatchingOptions,
    PatchOptions,
    RestoreOptions,
    Rounding,
    SolveOptions,
    Terminals,
    Update,
)
from headrace._circulations import Barrier, CirculationOptions, CirculationResult
from headrace._client import Client
from headrace._closures import Closure, ClosureOptions, ClosureStudy
from headrace._columns import GraphColumns
from headrace._errors import (
    AlreadyExists,
    AmbiguousEdge,
    ApiError,
    Cancelled,
    CapacityOverflow,
    ConnectionFailed,
    CostOverflow,
    Forbidden,
    HasLowerBounds,
    HasVertexCapacities,
    HeadraceError,
    IdempotencyConflict,
    Infeasible,
    InternalError,
    InvalidBody,
    InvalidInput,
    InvalidRequest,
    InvalidSignature,
    MethodNotAllowed,
    NoCosts,
    NotAcceptable,
    NotBipartite,
    NotDirected,
    NotFound,
    NotUndirected,
    OutOfMemory,
    RateLimited,
    SourceIsSink,
    TimedOut,
    TooLarge,
    TransportError,
    Unauthorised,
    Unbounded,
    UnexpectedAnswer,
    UnknownEdge,
    UnknownGraph,
    UnknownJob,
    UnknownVertex,
    UnknownWatch,
    UnknownWebhook,
    UnknownWorker,
    UnsupportedMediaType,
    VersionConflict,
    VersionUnavailable,
    WaitTimeout,
    WorkerDrained,
    WorkerUnavailable,
)
from headrace._exchange import Retry
from headrace._feed import Delivery, Event, EventType, Watch, Watched, WatchOptions, Webhook
from headrace._flows import Cut, Flow, MaxFlowResult, Path, Paths, TerminalAmounts
from headrace._graph import Graph
from headrace._grid import Grid
from headrace._job import Job
from headrace._limits import ExpansionOptions, ExpansionResult, Factor, ParametricOptions, ParametricResult, Segment
from headrace._local import CannotStart, Local, local
from headrace._matchings import Cover, Matching, MatchingResult
from headrace._min_cost import CostCertificate, CostField, Dual, MinCostFlowResult, MinCostOptions
from headrace._moves import Drained, Move
from headrace._pairs import (
    CutTree,
    CutTreeOptions,
    GlobalCut,
    GlobalCutOptions,
    Pair,
    PairsOptions,
    PairsResult,
)
from headrace._partitions import PartitionOptions, PartitionResult
from headrace._power import from_pandapower
from headrace._records import Estimate, JobEvent, JobInfo, ServiceStatus, Snapshot
from headrace._results import Capacities, Certificate, EdgeId, FlowState, GraphInfo, PatchResult, Rounded, Vertex
from headrace._roads import from_osmnx, lanes
from headrace._row_stream import RowStream
from headrace._sequences import AmountColumn, Column, Names, Side
from headrace._signed import verify_webhook
from headrace._structures import NewEdges, StructureResult
from headrace._vertices import VertexCapacities
from headrace._watching import Events
from headrace._what_if import Scenario, WhatIfOptions, WhatIfResult, WhatIfRow

__all__ = [
    "AlreadyExists",
    "AmbiguousEdge",
    "Amount",
    "AmountColumn",
    "Amounts",
    "ApiError",
    "AsyncClient",
    "AsyncEvents",
    "AsyncGraph",
    "AsyncJob",
    "AsyncRowStream",
    "Barrier",
    "Bottlenecks",
    "Cancelled",
    "CannotStart",
    "Capacities",
    "CapacityOverflow",
    "Caps",
    "Certificate",
    "CirculationOptions",
    "CirculationResult",
    "Client",
    "Closure",
    "ClosureOptions",
    "ClosureStudy",
    "Column",
    "ConnectionFailed",
    "CostCertificate",
    "CostField",
    "CostOverflow",
    "Cover",
    "Cut",
    "CutTree",
    "CutTreeOptions",
    "Delivery",
    "Drained",
    "Dual",
    "EdgeId",
    "End",
    "Estimate",
    "Event",
    "EventType",
    "Events",
    "Exact",
    "ExpansionOptions",
    "ExpansionResult",
    "Factor",
    "Flow",
    "FlowField",
    "FlowState",
    "Forbidden",
    "GlobalCut",
    "GlobalCutOptions",
    "Graph",
    "GraphColumns",
    "GraphFormat",
    "GraphInfo",
    "Grid",
    "HasLowerBounds",
    "HasVertexCapacities",
    "HeadraceError",
    "IdempotencyConflict",
    "Ids",
    "Infeasible",
    "InternalError",
    "InvalidBody",
    "InvalidInput",
    "InvalidRequest",
    "InvalidSignature",
    "Job",
    "JobEvent",
    "JobInfo",
    "Local",
    "Matching",
    "MatchingField",
    "MatchingOptions",
    "MatchingResult",
    "MaxFlowResult",
    "MethodNotAllowed",
    "MinCostFlowResult",
    "MinCostOptions",
    "Move",
    "Names",
    "NewEdges",
    "NoCosts",
    "NotAcceptable",
    "NotBipartite",
    "NotDirected",
    "NotFound",
    "NotUndirected",
    "OutOfMemory",
    "Pair",
    "PairsOptions",
    "PairsResult",
    "ParametricOptions",
    "ParametricResult",
    "PartitionOptions",
    "PartitionResult",
    "PatchOptions",
    "PatchResult",
    "Path",
    "Paths",
    "RateLimited",
    "RestoreOptions",
    "Retry",
    "Rounded",
    "Rounding",
    "RowStream",
    "Scenario",
    "Segment",
    "ServiceStatus",
    "Side",
    "Snapshot",
    "SolveOptions",
    "SourceIsSink",
    "StructureResult",
    "TerminalAmounts",
    "Terminals",
    "TimedOut",
    "TooLarge",
    "TransportError",
    "Unauthorised",
    "Unbounded",
    "UnexpectedAnswer",
    "UnknownEdge",
    "UnknownGraph",
    "UnknownJob",
    "UnknownVertex",
    "UnknownWatch",
    "UnknownWebhook",
    "UnknownWorker",
    "UnsupportedMediaType",
    "Update",
    "VersionConflict",
    "VersionUnavailable",
    "Vertex",
    "VertexCapacities",
    "WaitTimeout",
    "Watch",
    "WatchOptions",
    "Watched",
    "Webhook",
    "WhatIfOptions",
    "WhatIfResult",
    "WhatIfRow",
    "WorkerDrained",
    "WorkerUnavailable",
    "from_osmnx",
    "from_pandapower",
    "lanes",
    "local",
    "verify_webhook",
]
