"""Requests without I/O: one function per operation of the API, each a `Call` that knows how to read its answer."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from numbers import Integral, Number
from typing import Any, BinaryIO, Generic, Literal, TypeAlias, TypedDict, TypeVar

import numpy as np
from numpy.typing import NDArray

from headrace import _records as records
from headrace import _results as results
from headrace._amounts import Amount, Amounts, Series, amount_column
from headrace._bodies import Body, graph_body, graph_params, json_body
from headrace._bottlenecks import Bottlenecks
from headrace._columns import GraphColumns, as_column
from headrace._errors import InvalidInput
from headrace._files_of_columns import ACCEPT
from headrace._flows import MaxFlowResult
from headrace._matchings import MatchingResult
from headrace._mistakes import (
    flag,
    graph_name,
    n_rows,
    one_or_many,
    refuse_index,
    refuse_missing,
    refuse_node,
    refuse_others,
    refuse_set,
    segment,
)
from headrace._options import check_options, suggesting
from headrace._places import GEOJSON, as_floats
from headrace._results import EdgeId, Vertex
from headrace._shown import refuse_shown, shown
from headrace._vertices import VertexCapacities

T = TypeVar("T")

FlowField: TypeAlias = Literal["value", "cut", "flow", "terminals", "paths", "bottlenecks"]
GraphFormat: TypeAlias = Literal["npz", "arrow", "dimacs", "dimacs-min"]
"""Files that hold a whole graph; DIMACS has neither names nor decimals, undirected or closed edges, and costs only as
`dimacs-min`."""
MatchingField: TypeAlias = Literal["size", "matching", "cover"]
Ids: TypeAlias = Sequence[EdgeId] | NDArray[Any] | Series
Terminals: TypeAlias = Vertex | Sequence[Vertex] | Set[Vertex] | NDArray[Any] | Series
"""One vertex or many."""
Caps: TypeAlias = Amounts | Mapping[Vertex, Amount]
"""One amount for all terminals, a column with one for each, or amounts by vertex."""
End: TypeAlias = Literal["sources", "sinks"]
Rounding: TypeAlias = Literal["error", "nearest", "down", "up"]
Column: TypeAlias = Literal["capacity", "cost", "lower"]
"""What an update changes of the edges."""

COLUMNS: Mapping[Column, str] = {"capacity": "/capacities", "cost": "/costs", "lower": "/lower"}
"""Where each is updated, below the graph."""

WAITING = ("wait", "timeout_s", "progress")
"""Parameters of the questions that do not travel in the body."""


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One operation. All may be repeated: those that change nothing by nature, the others by their key."""

    method: Literal["GET", "PUT", "PATCH", "POST", "DELETE"]
    path: str
    parse: Callable[[Any], T]
    """Reads the answer's JSON (None without a body), also when it comes as the result of a job."""
    body: Body | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    into: BinaryIO | None = None
    """Where the answer's body goes, if it is a file; else it is read as JSON."""


class SolveOptions(TypedDict, total=False):
    """Keyword arguments of `max_flow` and `min_cut`."""

    supply: Caps
    """At most this much out of each source; as a mapping, of the sources it names, which need not be named again."""
    demand: Caps
    """At most this much into each sink; or a mapping, as for `supply`."""
    rounding: Rounding
    """What becomes of supply and demand with more decimals than the graph's: refused by default."""
    fields: FlowField | Sequence[FlowField]
    """What to answer beside the certificate: "value", "cut", "flow", "terminals", "paths", "bottlenecks"."""
    near: End
    """Of several minimum cuts show the one nearest the "sources" (default) or the one nearest the "sinks"."""
    sides: bool
    """False: cuts come without the vertices on either side, so that `source_side` and `sink_side` are empty."""
    zeros: bool
    """List edges without flow too."""
    acyclic: bool
    """False: the flow as it was found, with its cycles and detours, a little sooner."""
    top: int
    """How many paths are listed at most, those that carry most first; 100 by default."""
    up_to: int
    """Of so many bottlenecks what the flow would gain without that limit; 0 by default."""
    min_version: int
    """Refuse to answer for an older version of the graph."""
    time_limit_s: float
    """Stop the solver after so many seconds."""


class MatchingOptions(TypedDict, total=False):
    """Keyword arguments of `matching`."""

    fields: MatchingField | Sequence[MatchingField]
    """What to answer beside the certificate: "size", "matching", "cover"; all by default."""
    min_version: int
    """Refuse to answer for an older version of the graph."""
    time_limit_s: float
    """Stop the solver after so many seconds."""


class PatchOptions(TypedDict, total=False):
    """Keyword arguments of all updates."""

    on_missing: Literal["error", "skip"]
    """Whether an unknown edge refuses the whole update (default) or is left out."""
    rounding: Rounding
    """What becomes of a result with more decimals than the graph's: refused ("error", the default), or rounded to the
    "nearest" (a tie to the even one), "down" or "up"."""
    if_version: int | str
    """Refuse unless the graph is at this version, of the load that the handle knows; or the text of an ETag."""
    solve: Literal["all", "none"]
    """Whether flows kept solved are re-solved before the answer (default) or at their next question."""
    idempotency_key: str
    """Apply it once, however often it is sent with this key within an hour: the first answer comes again. For one that
    may have been sent before: by a process that ended, or a call that was given up. Each request has a key of its own
    else."""
    dry_run: bool
    """Say what the update would do, and change nothing: the answer has the version that the graph has and keeps."""


class RestoreOptions(TypedDict, total=False):
    """Keyword arguments of `restore`, as those of updates."""

    if_version: int | str
    """Refuse unless the graph is at this version, of the load that the handle knows; or the text of an ETag."""
    solve: Literal["all", "none"]
    """Whether flows kept solved are re-solved before the answer (default) or at their next question."""
    idempotency_key: str
    """Apply it once, however often it is sent with this key within an hour: the first answer comes again. For one that
    may have been sent before: by a process that ended, or a call that was given up. Each request has a key of its own
    else."""


@suggesting
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Update:
    """One operation of an update: edges by `edges` or by `tail` and `head`, or `vertices`; and one of set, add, scale,
    op, which is for edges.

    An amount is one for all of them, or a column with one for each.
    """

    edges: Ids | None = None
    tail: Ids | None = None
    head: Ids | None = None
    set: Amounts | None = None
    add: Amounts | None = None
    scale: Amounts | None = None
    op: Literal["close", "reopen"] | None = None
    vertices: Ids | None = None

    def as_json(self) -> dict[str, object]:
        refuse_set(self.tail, "tail")
        refuse_set(self.head, "head")
        named = {"edges": self.edges, "tail": self.tail, "head": self.head, "vertices": self.vertices}
        operation: dict[str, Any] = {name: as_column(ids) for name, ids in named.items() if ids is not None}
        ids = operation.get("edges", operation.get("tail", operation.get("vertices")))
        if ids is None or ("vertices" in operation and (len(operation) > 1 or self.op is not None)):
            raise InvalidInput("an update names edges by `edges`, or by `tail` and `head`, or `vertices` alone")
        for name, amounts in (("set", self.set), ("add", self.add), ("scale", self.scale)):
            if amounts is not None:
                refuse_set(amounts, name)
                column = as_column(amounts)
                if not isinstance(amounts, Number):  # one for all may go with edges in any order
                    refuse_set(self.edges, "edges")
                    refuse_set(self.vertices, "vertices")
                    refuse_missing(column, name)
                of = ("edge",) if self.vertices is None else ("vertex", "vertices")
                operation[name] = amount_column(column, n_rows(ids, next(iter(operation))), name, of)
        return operation if self.op is None else operation | {"op": self.op}


def updates_of(given: Update | Iterable[Update], taker: str) -> list[Update]:
    """One update or many, for the ``taker``. Raises `InvalidInput` for what is neither."""
    updates = [given] if isinstance(given, Update) else list(given)
    refuse_others(updates, Update, f"{taker} takes updates, as in Update(edges=[3], set=[5])")
    return updates


def put_graph(
    name: str, graph: object, columns: GraphColumns, if_version: int | str | None, must_be_new: bool
) -> Call[results.GraphInfo]:
    if flag(must_be_new, "must_be_new") and if_version is not None:
        raise InvalidInput("if_version= wants a graph that is there, must_be_new=True wants none")
    headers = {"If-None-Match": "*"} if must_be_new else _if_match(if_version)
    body, params = graph_body(graph, columns), graph_params(columns)
    return Call("PUT", graph_path(name), results.GraphInfo.from_json, body, params, headers)


def graph(name: str) -> Call[results.GraphInfo]:
    return Call("GET", graph_path(name), results.GraphInfo.from_json)


def graphs(after: str | None = None) -> Call[results.GraphPage]:
    return Call("GET", "/v1/graphs", results.GraphPage.from_json, params={} if after is None else {"after": after})


def delete_graph(name: str, if_version: int | str | None = None, generation: str | None = None) -> Call[None]:
    return Call("DELETE", graph_path(name), _nothing, headers=_if_match(if_version, generation))


def estimate(n_vertices: int, n_edges: int, known: Mapping[str, int | bool | None]) -> Call[records.Estimate]:
    body = json_body({"n_vertices": n_vertices, "n_edges": n_edges, **known})
    return Call("POST", "/v1/graphs:estimate", records.Estimate.from_json, body)


def capacities(
    name: str, offset: int, limit: int, if_version: int | str | None, generation: str | None
) -> Call[results.Capacities]:
    params = {"offset": str(offset), "limit": str(limit)}
    headers = ACCEPT | _if_match(if_version, generation)
    return Call("GET", graph_path(name) + "/capacities", results.Capacities.from_json, params=params, headers=headers)


def vertex_capacities(
    name: str, offset: int, limit: int, if_version: int | str | None, generation: str | None, *, every: bool = False
) -> Call[VertexCapacities]:
    params = {"offset": str(offset), "limit": str(limit)} | ({"all": "true"} if every else {})
    headers = ACCEPT | _if_match(if_version, generation)
    return Call("GET", graph_path(name) + "/vertices", VertexCapacities.from_json, params=params, headers=headers)


def patch(
    name: str, updates: Sequence[Update], options: PatchOptions, column: Column, generation: str | None
) -> Call[results.PatchResult]:
    columns = ("edges", "vertices", "set", "add", "scale", "column", "timeout_s")
    check_options("an update", options, PatchOptions.__annotations__, columns)
    if column not in COLUMNS:
        raise InvalidInput(f"column is one of {', '.join(COLUMNS)}, not {column!r}")
    if column != "capacity" and "solve" in options:
        told = "costs" if column == "cost" else "lower bounds"
        raise InvalidInput(f"solve= is for capacities: a change of {told} leaves every flow as it is")
    given = updates_of(updates, "apply()")
    of_vertices = {update.vertices is not None for update in given}
    if len(of_vertices) > 1 or (True in of_vertices and column != "capacity"):
        raise InvalidInput("an update is of capacities of vertices, or of capacities, costs or lower bounds of edges")
    operations = [update.as_json() for update in given]
    body: dict[str, object] = operations[0] if len(operations) == 1 else {"batch": operations}
    for key in ("on_missing", "rounding"):
        if key in options:
            body = body | {key: options[key]}
    params: dict[str, str] = {"solve": options["solve"]} if "solve" in options else {}
    if flag(options.get("dry_run", False), "dry_run"):
        params["dry_run"] = "true"
    return Call(
        "PATCH",
        graph_path(name) + ("/vertices" if True in of_vertices else COLUMNS[column]),
        results.PatchResult.from_json,
        json_body(body),
        params=params,
        headers=of_change(options, generation),
    )


def solve(
    kind: Literal["max-flow", "min-cut"],
    name: str,
    source: Terminals | None,
    sink: Terminals | None,
    options: SolveOptions,
) -> Call[MaxFlowResult]:
    check_options(kind.replace("-", "_") + "()", options, SolveOptions.__annotations__, WAITING)
    body = ends(source, sink, options.get("supply"), options.get("demand"))
    for key in ("min_version", "time_limit_s", "rounding"):
        if key in options:
            body[key] = options[key]
    if "fields" in options:
        body["fields"] = one_or_many(options["fields"])
    body |= shown(options)
    wanted = one_or_many(options.get("fields", ("value", "cut") if kind == "min-cut" else ("value",)))
    headers = ACCEPT if set(wanted) - {"value"} else {}
    return Call("POST", f"{graph_path(name)}/{kind}", MaxFlowResult.from_json, json_body(body), headers=headers)


def flow_map(
    name: str, source: Terminals | None, sink: Terminals | None, options: SolveOptions
) -> Call[dict[str, Any]]:
    refuse_shown("flow_map() shows the flow and the cut", options, ("fields", "sides", "top", "up_to"))
    call = solve("max-flow", name, source, sink, options)
    return Call(call.method, call.path, as_floats, call.body, headers=GEOJSON)


def bottlenecks(
    name: str, source: Terminals | None, sink: Terminals | None, options: SolveOptions
) -> Call[Bottlenecks]:
    refuse_shown("bottlenecks() has bottlenecks alone", options, ("fields", "zeros", "acyclic", "near", "sides", "top"))
    call = solve("max-flow", name, source, sink, options | {"fields": ["bottlenecks"]})
    return Call(call.method, call.path, _bottlenecks_of, call.body, headers=call.headers)


def _bottlenecks_of(body: Any) -> Bottlenecks:
    return Bottlenecks.from_json(body["bottlenecks"], body.get("decimals", 0))


def matching(name: str, left: Ids | None, options: MatchingOptions) -> Call[MatchingResult]:
    check_options("matching()", options, MatchingOptions.__annotations__, ("left", *WAITING))
    body: dict[str, object] = {**options} if left is None else {"left": as_column(left), **options}
    wanted = one_or_many(options.get("fields", ("size", "matching", "cover")))
    if "fields" in options:
        body["fields"] = wanted
    headers = ACCEPT if set(wanted) - {"size"} else {}
    return Call("POST", graph_path(name) + "/matching", MatchingResult.from_json, json_body(body), headers=headers)


def copy(name: str, to: str) -> Call[results.GraphInfo]:
    return Call("POST", graph_path(name) + ":copy", results.GraphInfo.from_json, json_body({"to": graph_name(to)}))


def restore(name: str, version: int, options: RestoreOptions, generation: str | None) -> Call[results.PatchResult]:
    check_options("restore()", options, RestoreOptions.__annotations__, ("timeout_s",))
    return Call(
        "POST",
        graph_path(name) + ":restore",
        results.PatchResult.from_json,
        json_body({"version": version}),
        params={"solve": options["solve"]} if "solve" in options else {},
        headers=of_change(options, generation),
    )


def export(name: str, format: GraphFormat, version: int | None, into: BinaryIO) -> Call[int]:
    params = {"format": str(format)} | ({} if version is None else {"version": str(version)})
    return Call("GET", graph_path(name) + "/export", _version_of, params=params, into=into)


def write_snapshot(name: str) -> Call[records.Snapshot]:
    return Call("POST", graph_path(name) + "/snapshots", records.Snapshot.from_json)


def snapshots(name: str) -> Call[tuple[records.Snapshot, ...]]:
    return Call("GET", graph_path(name) + "/snapshots", _each("snapshots", records.Snapshot.from_json))


def jobs() -> Call[tuple[records.JobInfo, ...]]:
    return Call("GET", "/v1/jobs", _each("jobs", records.JobInfo.from_json))


def job(job_id: str) -> Call[records.JobInfo]:
    return Call("GET", job_path(job_id), records.JobInfo.from_json)


def job_result(job_id: str, parse: Callable[[Any], T]) -> Call[T]:
    """The result of a job that has ended, in the form in which it lies there."""
    return Call("GET", job_path(job_id) + "/result", parse, headers={"Accept": "*/*"})


def cancel_job(job_id: str) -> Call[records.JobInfo]:
    return Call("DELETE", job_path(job_id), records.JobInfo.from_json)


def status() -> Call[records.ServiceStatus]:
    return Call("GET", "/status", records.ServiceStatus.from_json)


def graph_path(name: str) -> str:
    return "/v1/graphs/" + graph_name(name)


def job_path(job_id: str) -> str:
    return "/v1/jobs/" + segment(job_id)


def ends(
    source: Terminals | None, sink: Terminals | None, supply: Caps | None, demand: Caps | None
) -> dict[str, object]:
    """The members of a question that say from where to where, and how much at most."""
    body: dict[str, object] = {}
    for key, cap, given, caps in (("sources", "supply", source, supply), ("sinks", "demand", sink, demand)):
        terminals, amounts = capped(given, caps, cap)
        body |= {name: column for name, column in ((key, terminals), (cap, amounts)) if column is not None}
    return body


def named(given: Terminals | None, cap: str) -> Sequence[Vertex] | NDArray[Any] | None:
    """One vertex or many as a column.

    Raises `InvalidInput` for a mapping, which is what ``cap`` takes, and for a node that is a tuple.
    """
    refuse_node(given)
    if isinstance(given, Mapping):
        raise InvalidInput(f"amounts by vertex are what {cap}= takes; its keys need not be named again")
    column: Sequence[Vertex] | NDArray[Any] | Vertex | None = as_column(given)
    if isinstance(column, np.ndarray) and not column.ndim:  # one vertex, as NumPy computes it
        return [column.item()]
    if column is None or (isinstance(column, Sequence | np.ndarray) and not isinstance(column, str)):
        return column
    return [column]


def capped(
    given: Terminals | None, caps: Caps | None, name: str, rest: Amount = math.inf
) -> tuple[Sequence[Vertex] | NDArray[Any] | None, Any]:
    """The terminals with one cap for each. Those that a mapping does not have get the `rest`, which is unlimited."""
    terminals = named(given, name)
    if isinstance(caps, Mapping):
        vertices = list(caps) if terminals is None else np.asarray(terminals, object).tolist()
        known = set(vertices)
        unknown = [vertex for vertex in caps if vertex not in known]
        if unknown:
            raise InvalidInput(f"{name} names {unknown[0]!r}, which is not among the terminals given beside it")
        return vertices, [caps.get(vertex, rest) for vertex in vertices]
    if caps is None:
        return terminals, None
    refuse_index(caps, terminals, name)
    if terminals is None:
        raise InvalidInput(f"{name} needs its terminals named: beside it, or in a mapping of vertices to amounts")
    if not isinstance(caps, Number):  # one for all may go with terminals in any order
        refuse_set(given, f"what {name}= goes with")
        refuse_set(caps, name)
    return terminals, amount_column(as_column(caps), len(terminals), name, ("terminal",))


def _if_match(version: int | str | None, generation: str | None = None) -> dict[str, str]:
    """A number is a version of the load that has the ``generation``, or of any load where none is known.

    Raises `InvalidInput` for what is neither a number nor text that a header can hold.
    """
    if version is None:
        return {}
    is_text = isinstance(version, str) and version.isascii() and version.isprintable()
    if isinstance(version, bool) or not (is_text or isinstance(version, Integral)):
        raise InvalidInput(f"if_version is a whole number, or the text of an ETag, not {version!r:.80}")
    tag = version if is_text or not generation else f"{generation}-{version}"
    return {"If-Match": f'"{tag}"'}


def of_change(options: Mapping[str, Any], generation: str | None) -> dict[str, str]:
    """The headers of a change: which version it is for, and its key. Raises `InvalidInput`."""
    headers, key = _if_match(options.get("if_version"), generation), options.get("idempotency_key")
    if key is None:
        return headers
    if not (isinstance(key, str) and key.isascii() and key.isprintable() and 0 < len(key.strip()) == len(key) <= 256):
        raise InvalidInput(f"idempotency_key is 1 to 256 printable ASCII characters, not {key!r:.80}")
    if options.get("dry_run"):
        raise InvalidInput("idempotency_key= is for what is applied, and a dry run is not")
    return headers | {"Idempotency-Key": key}


def _each(key: str, parse: Callable[[Any], T]) -> Callable[[Any], tuple[T, ...]]:
    return lambda body: tuple(map(parse, body[key]))


def _version_of(etag: str) -> int:
    return int(etag.rpartition("-")[2])


def _nothing(_: Any) -> None:
    return None
