"""What the service refuses, and the HTTP status each stable code is answered with.

ServiceError carries one code of `STATUS`; `gpu_engine.errors.EngineError` codes are in the same table, so that
`service.api.replies.problems` answers both alike. Nothing here imports HTTP: the worker raises these too.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gpu_engine.errors import Where, bounded

RETRY_AFTER_S: Final = 1.0
"""How soon a caller may try again what could not be done because Redis or a worker was away."""

STATUS: Final[Mapping[str, int]] = {
    "invalid_body": 422,
    "unsupported_media_type": 415,
    "too_large": 413,
    "unknown_graph": 404,
    "unknown_job": 404,
    "unknown_watch": 404,
    "unknown_webhook": 404,
    "unknown_worker": 404,
    "unknown_edge": 422,
    "unknown_vertex": 422,
    "ambiguous_edge": 422,
    "source_is_sink": 422,
    "not_bipartite": 422,
    "not_undirected": 422,
    "not_directed": 422,
    "unbounded": 422,
    "capacity_overflow": 422,
    "cost_overflow": 422,
    "no_costs": 422,
    "has_vertex_capacities": 422,
    "has_lower_bounds": 422,
    "infeasible": 422,
    "already_exists": 409,
    "worker_drained": 409,
    "version_conflict": 412,
    "version_unavailable": 409,
    "idempotency_conflict": 409,
    "cancelled": 409,
    "timeout": 504,
    "out_of_memory": 507,
    "rate_limited": 429,
    "worker_unavailable": 503,
    "data_gone": 503,
    "unauthorised": 401,
    "forbidden": 403,
    # Not about the body: the request's own shape, and our faults.
    "invalid_request": 400,
    "not_found": 404,
    "method_not_allowed": 405,
    "not_acceptable": 406,
    "internal_error": 500,
}

TITLES: Final[Mapping[str, str]] = {
    "invalid_body": "The body is not valid",
    "unsupported_media_type": "The body is of a kind this resource does not read",
    "too_large": "Over a stated limit",
    "unknown_graph": "No such graph",
    "unknown_job": "No such job",
    "unknown_watch": "No such watch",
    "unknown_webhook": "No such webhook",
    "unknown_worker": "No such worker",
    "unknown_edge": "No such edge",
    "unknown_vertex": "No such vertex",
    "ambiguous_edge": "Several parallel edges join these vertices",
    "source_is_sink": "A vertex is both source and sink",
    "not_bipartite": "An edge does not lead from one side to the other",
    "not_undirected": "Some edges are directed",
    "not_directed": "Some edges are undirected",
    "unbounded": "The flow has no bound",
    "capacity_overflow": "The capacities are too large for exact sums",
    "cost_overflow": "The costs are too large for exact sums",
    "no_costs": "The edges have no costs",
    "has_vertex_capacities": "This question cannot handle capacities of vertices",
    "has_lower_bounds": "Edges have lower bounds, which this does not keep",
    "infeasible": "More flow is asked for than the graph can carry",
    "already_exists": "There is one of this name",
    "worker_drained": "The worker is drained, or it is the last one that may have graphs",
    "version_conflict": "The graph is at another version",
    "version_unavailable": "This version of the graph cannot be had",
    "idempotency_conflict": "The Idempotency-Key was used for another request",
    "cancelled": "The job was cancelled",
    "timeout": "The time limit passed",
    "out_of_memory": "Not enough memory",
    "rate_limited": "Too much work is waiting",
    "worker_unavailable": "No worker can answer now",
    "data_gone": "The files of Redis are gone",
    "unauthorised": "An API key is needed",
    "forbidden": "This caller may not do this",
    "invalid_request": "A header or a parameter is not valid",
    "not_found": "No such resource",
    "method_not_allowed": "The resource does not know this method",
    "not_acceptable": "The answer has no such form",
    "internal_error": "An error of the service itself",
}


OTHER_REQUEST: Final = (
    "the Idempotency-Key was used for another request: its path, query, body, If-Match or form of answer was another"
)
"""Detail of an idempotency_conflict."""

DATA_GONE: Final = (
    "the files of Redis were removed or replaced while the service runs. Everything is lost when Redis stops. Changes "
    "of graphs and webhooks are refused. Export the graphs, then start the service again"
)
"""Detail of data_gone, which is answered to /readyz and to changes then, and a hint in the log."""


class ServiceError(Exception):
    """A refusal with a stable code.

    Args:
        code: a key of `STATUS`.
        detail: one sentence for the caller.
        rows: rows of the columns that are at fault; at most ten are kept.
        retry_after_s: when to try again, for rate_limited and worker_unavailable.
        unread: the rest of the request's body is not read, and the connection ends with the answer.
        where: any other members of `gpu_engine.errors.Where`.
    """

    def __init__(
        self,
        code: str,
        detail: str,
        rows: Sequence[object] = (),
        retry_after_s: float | None = None,
        *,
        unread: bool = False,
        **where: Any,
    ) -> None:
        if code not in STATUS:
            raise ValueError(f"{code!r} is no code of the API")
        detail = bounded(detail)
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.where = Where.of(rows, **where)
        self.retry_after_s = retry_after_s
        self.unread = unread

    @property
    def rows(self) -> Sequence[object]:
        return self.where.rows

    @property
    def status(self) -> int:
        return STATUS[self.code]

    def __reduce__(self) -> tuple[type["ServiceError"], tuple[str, str], dict[str, Any]]:
        return type(self), (self.code, self.detail), self.__dict__
