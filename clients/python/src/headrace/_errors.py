"""Everything the client raises. `except HeadraceError` catches all of it; nothing of httpx escapes.

HeadraceError
 +-- InvalidInput               an argument cannot be sent (also a ValueError)
 +-- ClientClosed               the client was closed before the call (also a RuntimeError)
 +-- InvalidSignature           a delivery to a webhook is not of the service, or old (also a ValueError)
 +-- WaitTimeout                your `timeout_s` passed; the job goes on, `job_id` names it (also a TimeoutError)
 +-- TransportError             no usable answer came back
 |    +-- ConnectionFailed      refused, lost, or silent for too long (also a ConnectionError)
 |    +-- UnexpectedAnswer      an answer that is not of this API
 +-- ApiError                   the service refused: code, status, detail, what is at fault; of new codes the plain one
      +-- InvalidBody           invalid_body
      +-- UnsupportedMediaType  unsupported_media_type
      +-- TooLarge              too_large
      +-- UnknownGraph          unknown_graph
      +-- UnknownJob            unknown_job
      +-- UnknownWatch          unknown_watch
      +-- UnknownWebhook        unknown_webhook
      +-- UnknownWorker         unknown_worker
      +-- WorkerDrained         worker_drained
      +-- UnknownEdge           unknown_edge
      +-- UnknownVertex         unknown_vertex
      +-- AmbiguousEdge         ambiguous_edge
      +-- SourceIsSink          source_is_sink
      +-- NotBipartite          not_bipartite
      +-- NotUndirected         not_undirected
      +-- NotDirected           not_directed
      +-- Unbounded             unbounded
      +-- CapacityOverflow      capacity_overflow
      +-- CostOverflow          cost_overflow
      +-- NoCosts               no_costs
      +-- HasVertexCapacities   has_vertex_capacities
      +-- HasLowerBounds        has_lower_bounds
      +-- Infeasible            infeasible
      +-- AlreadyExists         already_exists
      +-- VersionConflict       version_conflict
      +-- VersionUnavailable    version_unavailable
      +-- IdempotencyConflict   idempotency_conflict
      +-- Cancelled             cancelled
      +-- TimedOut              timeout
      +-- OutOfMemory           out_of_memory
      +-- RateLimited           rate_limited
      +-- WorkerUnavailable     worker_unavailable
      +-- DataGone              data_gone
      +-- Unauthorised          unauthorised
      +-- Forbidden             forbidden
      +-- InvalidRequest        invalid_request
      +-- NotFound              not_found
      +-- MethodNotAllowed      method_not_allowed
      +-- NotAcceptable         not_acceptable
      +-- InternalError         internal_error
"""

import copyreg
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

NOWHERE: Final[Mapping[str, Any]] = MappingProxyType({})


class HeadraceError(Exception):
    """Base of everything the client raises."""


class InvalidInput(HeadraceError, ValueError):
    """An argument cannot be sent: nothing left this process."""


class ClientClosed(HeadraceError, RuntimeError):
    """The client was closed before the call: nothing left this process."""


class InvalidSignature(HeadraceError, ValueError):
    """A delivery to a webhook is not of the service, was changed on its way, or is too old."""


class WaitTimeout(HeadraceError, TimeoutError):
    """The answer did not come within `timeout_s`. The job goes on; `job_id` names it, if it got that far."""

    def __init__(self, message: str, job_id: str | None = None) -> None:
        super().__init__(message)
        self.job_id = job_id


class TransportError(HeadraceError):
    """No usable answer came back; after the retries it is not known whether the request was carried out."""


class ConnectionFailed(TransportError, ConnectionError):
    """The service refused the connection, lost it, or was silent for too long."""


class UnexpectedAnswer(TransportError):
    """What answered does not speak this API (a proxy, another service, a newer version)."""

    status: int | None = None
    """Of the answer; None if it is not known."""
    retry_after_s: float | None = None


class ApiError(HeadraceError):
    """The service refused the request, with a stable `code`.

    What is at fault, at most ten of each: `rows` of the columns as they were sent, from 0; `lines` of a file, from 1;
    `edges` by their ids; `vertices` by their names. `field` is the member or the column, as a JSON pointer (``/set``),
    `operation` the place of the update in an `apply`. `retry_after_s` is when the service asks to be called again.
    `request_id` finds the call in the service's log.
    """

    code: str = ""

    def __init__(
        self,
        detail: str,
        *,
        code: str,
        status: int,
        rows: Sequence[object] = (),
        retry_after_s: float | None = None,
        request_id: str | None = None,
        where: Mapping[str, Any] = NOWHERE,
    ) -> None:
        self.rows: list[object] = list(rows)
        self.lines: list[object] = list(where.get("lines") or ())
        self.edges: list[object] = list(where.get("edges") or ())
        self.vertices: list[object] = list(where.get("vertices") or ())
        self.field: str | None = where.get("field")
        self.operation: int | None = where.get("operation")
        told = {name: getattr(self, name) for name in ("edges", "vertices", "rows")}
        named = next((f" ({name} {values})" for name, values in told.items() if values), "")
        super().__init__(f"{code}: {detail}{named}")
        self.detail = detail
        self.code = code
        self.status = status
        self.retry_after_s = retry_after_s
        self.request_id = request_id

    def __reduce__(self) -> tuple[Any, ...]:
        """As it is. `Exception` would call `__init__` with the message alone where another process unpacks it."""
        return copyreg.__newobj__, (type(self), *self.args), vars(self)  # type: ignore[attr-defined]  # not in its stub


class InvalidBody(ApiError):
    """Malformed columns or numbers, unknown fields."""

    code = "invalid_body"


class UnsupportedMediaType(ApiError):
    """The service does not read this kind of body."""

    code = "unsupported_media_type"


class TooLarge(ApiError):
    """The body, its rows or its vertices are over a stated limit."""

    code = "too_large"


class UnknownGraph(ApiError):
    """No graph has this name."""

    code = "unknown_graph"


class UnknownJob(ApiError):
    """No job has this id, or it is no longer kept: by default jobs are kept for an hour after their end."""

    code = "unknown_job"


class UnknownWatch(ApiError):
    """The graph has no watch of this name."""

    code = "unknown_watch"


class UnknownWebhook(ApiError):
    """There is no webhook of this name, or it has no such delivery."""

    code = "unknown_webhook"


class UnknownWorker(ApiError):
    """There is no worker of this name."""

    code = "unknown_worker"


class WorkerDrained(ApiError):
    """The worker is drained, or it is the last one that may have graphs."""

    code = "worker_drained"


class UnknownEdge(ApiError):
    """The update names an edge the graph does not have; `edges` holds the ids."""

    code = "unknown_edge"


class UnknownVertex(ApiError):
    """The graph has no vertex of this name; `vertices` holds the names."""

    code = "unknown_vertex"


class AmbiguousEdge(ApiError):
    """Several parallel edges join these end points; name the edge by its id."""

    code = "ambiguous_edge"


class SourceIsSink(ApiError):
    """A vertex is both source and sink."""

    code = "source_is_sink"


class NotBipartite(ApiError):
    """An edge does not lead from one side of a matching to the other; `vertices` holds ends of such edges."""

    code = "not_bipartite"


class NotDirected(ApiError):
    """A lower bound is asked for of an undirected edge; `edges` names some."""

    code = "not_directed"


class NotUndirected(ApiError):
    """The question is of undirected graphs only; `edges` holds directed ones."""

    code = "not_undirected"


class Unbounded(ApiError):
    """The flow, or its cost, has no bound: a path of unlimited edges leads from a source to a sink, a cycle of
    unlimited edges costs less than nothing (`vertices` has either in order), or every cut holds an unlimited edge."""

    code = "unbounded"


class CapacityOverflow(ApiError):
    """The capacities are too large for exact sums."""

    code = "capacity_overflow"


class AlreadyExists(ApiError):
    """A name is taken: that of the graph a copy is to have, or the id of an edge or the name of a vertex to insert.
    Those of deleted edges and vertices stay taken."""

    code = "already_exists"


class VersionConflict(ApiError):
    """The graph is not at the version `if_version`, as somebody has changed it; or `must_be_new` was given and the
    graph exists."""

    code = "version_conflict"


class CostOverflow(ApiError):
    """The costs are too large for exact sums."""

    code = "cost_overflow"


class NoCosts(ApiError):
    """The edges of the graph have no costs: load it with `put_graph(cost=...)`."""

    code = "no_costs"


class HasVertexCapacities(ApiError):
    """Vertices of the graph have capacities, which the question cannot handle."""

    code = "has_vertex_capacities"


class HasLowerBounds(ApiError):
    """Edges of the graph have lower bounds, which a cheapest flow does not keep: `lower="ignore"` asks for one without
    them. `edges` names some."""

    code = "has_lower_bounds"


class Infeasible(ApiError):
    """More flow is asked for than there is; the message has the maximum."""

    code = "infeasible"


class VersionUnavailable(ApiError):
    """The version is not there: `min_version` is newer than the graph, or the earlier version that was asked for is not
    kept any more."""

    code = "version_unavailable"


class IdempotencyConflict(ApiError):
    """The Idempotency-Key was used for another request, or its answer is no longer kept."""

    code = "idempotency_conflict"


class Cancelled(ApiError):
    """The job was cancelled."""

    code = "cancelled"


class TimedOut(ApiError):
    """`time_limit_s` passed, or a page or a file was not ready in time. The graph is unharmed."""

    code = "timeout"


class OutOfMemory(ApiError):
    """There is not enough memory for the graph, a solve or an answer: of a worker's host or device, or of Redis. The
    message says which."""

    code = "out_of_memory"


class RateLimited(ApiError):
    """Too much work is waiting."""

    code = "rate_limited"


class WorkerUnavailable(ApiError):
    """No worker can answer now; one may be restarting."""

    code = "worker_unavailable"


class DataGone(ApiError):
    """The files of Redis were removed under the service: it answers questions and refuses changes. No call is tried
    again, as only whoever runs the service can mend that."""

    code = "data_gone"


class Unauthorised(ApiError):
    """The service asks for an API key, and got none or one that is unknown or revoked."""

    code = "unauthorised"


class Forbidden(ApiError):
    """The API key's scope or its graph-name prefix does not cover this."""

    code = "forbidden"


class InvalidRequest(ApiError):
    """A header or a parameter is not valid."""

    code = "invalid_request"


class NotFound(ApiError):
    """The service has no such resource."""

    code = "not_found"


class MethodNotAllowed(ApiError):
    """The resource does not know this method."""

    code = "method_not_allowed"


class NotAcceptable(ApiError):
    """The answer has no form that `Accept` names."""

    code = "not_acceptable"


class InternalError(ApiError):
    """An error of the service itself."""

    code = "internal_error"
