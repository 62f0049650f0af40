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
from headrace._async_graph import AsyncGraph, AsyncJob
from headrace._bodies import GraphColumns
from headrace._calls import FlowField, Ids, PatchOptions, SolveOptions, Terminals, Update
from headrace._client import Client
from headrace._errors import (
    AmbiguousEdge,
    ApiError,
    Cancelled,
    CapacityOverflow,
    ConnectionFailed,
    HeadraceError,
    IdempotencyConflict,
    InternalError,
    InvalidBody,
    InvalidInput,
    InvalidRequest,
    MethodNotAllowed,
    NotFound,
    OutOfMemory,
    RateLimited,
    SourceIsSink,
    TimedOut,
    TooLarge,
    TransportError,
    Unbounded,
    UnexpectedAnswer,
    UnknownEdge,
    UnknownGraph,
    UnknownJob,
    UnsupportedMediaType,
    VersionConflict,
    VersionUnavailable,
    WaitTimeout,
    WorkerUnavailable,
)
from headrace._exchange import Retry
from headrace._graph import Graph, Job
from headrace._results import (
    Capacities,
    Certificate,
    Cut,
    EdgeId,
    Estimate,
    Flow,
    FlowState,
    GraphInfo,
    JobEvent,
    JobInfo,
    MaxFlowResult,
    PatchResult,
    ServiceStatus,
    Snapshot,
    Vertex,
)

__all__ = [
    "AmbiguousEdge",
    "Amount",
    "Amounts",
    "ApiError",
    "AsyncClient",
    "AsyncGraph",
    "AsyncJob",
    "Cancelled",
    "Capacities",
    "CapacityOverflow",
    "Certificate",
    "Client",
    "ConnectionFailed",
    "Cut",
    "EdgeId",
    "Estimate",
    "Exact",
    "Flow",
    "FlowField",
    "FlowState",
    "Graph",
    "GraphColumns",
    "GraphInfo",
    "HeadraceError",
    "IdempotencyConflict",
    "Ids",
    "InternalError",
    "InvalidBody",
    "InvalidInput",
    "InvalidRequest",
    "Job",
    "JobEvent",
    "JobInfo",
    "MaxFlowResult",
    "MethodNotAllowed",
    "NotFound",
    "OutOfMemory",
    "PatchOptions",
    "PatchResult",
    "RateLimited",
    "Retry",
    "ServiceStatus",
    "Snapshot",
    "SolveOptions",
    "SourceIsSink",
    "Terminals",
    "TimedOut",
    "TooLarge",
    "TransportError",
    "Unbounded",
    "UnexpectedAnswer",
    "UnknownEdge",
    "UnknownGraph",
    "UnknownJob",
    "UnsupportedMediaType",
    "Update",
    "VersionConflict",
    "VersionUnavailable",
    "Vertex",
    "WaitTimeout",
    "WorkerUnavailable",
]
