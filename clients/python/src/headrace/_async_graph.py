"""Handles to what lives in the service: `AsyncGraph` and `AsyncJob`."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, Unpack, overload

from headrace import _calls as calls
from headrace import _exchange as exchange
from headrace import _exported as exported
from headrace import _min_cost as min_cost
from headrace import _records as records
from headrace import _results as results
from headrace import _what_if as what_if
from headrace._amounts import Amounts
from headrace._async_caller import AsyncCaller
from headrace._calls import (
    Call,
    Column,
    GraphFormat,
    Ids,
    MatchingOptions,
    PatchOptions,
    RestoreOptions,
    SolveOptions,
    Terminals,
    Update,
)
from headrace._errors import ConnectionFailed, HeadraceError
from headrace._exchange import Deadline
from headrace._files import format_of, whole_file
from headrace._flows import MaxFlowResult
from headrace._matchings import MatchingResult
from headrace._progress import job_bar
from headrace._sse import EventReader

T = TypeVar("T")


class AsyncJob(Generic[T]):
    """Work that goes on in the service. `wait` gives what the waiting call would have returned."""

    def __init__(self, caller: AsyncCaller, info: records.JobInfo, parse: Callable[[Any], T]) -> None:
        self._caller = caller
        self._parse = parse
        self.info = info
        """The job as last heard of; `refresh` asks again."""

    def __repr__(self) -> str:
        return f"<AsyncJob {self.id} {self.info.kind} of {self.info.graph}: {self.info.status}>"

    @property
    def id(self) -> str:
        return self.info.id

    @property
    def progress(self) -> results.Json:
        """The solver's counters as last heard of."""
        return self.info.progress

    async def refresh(self) -> records.JobInfo:
        """Ask how the job stands."""
        self.info = await self._caller.ask(calls.job(self.id))
        return self.info

    async def wait(self, timeout_s: float | None = None) -> T:
        """The result as soon as it is there. Raises the job's error, or `WaitTimeout`; the job then goes on."""
        steps = exchange.follow(self.id, self._parse, self._caller.retry, Deadline.after(timeout_s))
        return await self._caller.drive(steps)

    async def cancel(self) -> bool:
        """Stop it. True: in time, nothing of it is or will be applied, and `wait` raises `Cancelled`; a question that
        was answered just then keeps its answer. False: it has committed, or is over, and goes on to its result."""
        self.info = await self._caller.ask(calls.cancel_job(self.id))
        return self.info.cancelling or self.info.status == "cancelled"

    async def events(self, timeout_s: float | None = None) -> AsyncIterator[records.JobEvent]:
        """Its events as they happen; the last one is named `done`. Raises `ConnectionFailed` when cut off."""
        reader = EventReader()
        deadline = Deadline.after(timeout_s)
        async with self._caller.lines(calls.job_path(self.id) + "/events", deadline) as lines:
            async for line in lines:
                event = reader.feed(line)
                if event is not None:
                    yield event
                if event is not None and event.name == "done":
                    return
        raise ConnectionFailed(f"the events of job {self.id} broke off")

    async def _shown(self, title: str, deadline: Deadline) -> T:
        """`wait`, with a line on the terminal of how far it is."""
        with job_bar(title) as show, suppress(HeadraceError):  # `wait` has the last word
            async for event in self.events(deadline.remaining_s):
                show(event.data if event.name == "progress" else {})
        return await self.wait(deadline.remaining_s)


class AsyncGraph:
    """A graph in the service. Every method is one request; the handle keeps no columns."""

    def __init__(self, caller: AsyncCaller, info: results.GraphInfo) -> None:
        self._caller = caller
        self.info = info
        """The graph as of `put_graph`, `AsyncClient.graph` or the last `refresh`."""

    def __repr__(self) -> str:
        return f"<AsyncGraph {self.name}: {self.info.n_vertices} vertices, {self.info.n_edges} edges>"

    @property
    def name(self) -> str:
        return self.info.name

    async def refresh(self) -> results.GraphInfo:
        """Read `info` again."""
        self.info = await self._caller.ask(calls.graph(self.name))
        return self.info

    async def delete(self, timeout_s: float | None = None, *, if_version: int | str | None = None) -> None:
        """Remove the graph and all its versions from the service; at another version, `VersionConflict`."""
        await self._caller.command(calls.delete_graph(self.name, if_version, self.info.generation), timeout_s)

    @overload
    async def max_flow(
        self,
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        wait: Literal[True] = True,
        timeout_s: float | None = None,
        progress: bool = False,
        **options: Unpack[SolveOptions],
    ) -> MaxFlowResult: ...

    @overload
    async def max_flow(
        self,
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        wait: Literal[False],
        **options: Unpack[SolveOptions],
    ) -> AsyncJob[MaxFlowResult]: ...

    async def max_flow(
        self,
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        wait: bool = True,
        timeout_s: float | None = None,
        progress: bool = False,
        **options: Unpack[SolveOptions],
    ) -> MaxFlowResult | AsyncJob[MaxFlowResult]:
        """Max flow between one or many sources and sinks; those of the graph by default.

        `wait=False` gives an `AsyncJob` at once. See `SolveOptions` for the options. Disconnected terminals are no
        error, the value is 0. Raises `Unbounded`, `SourceIsSink`, `WaitTimeout`, ...
        """
        call = calls.solve("max-flow", self.name, source, sink, options)
        if not wait:
            return AsyncJob(self._caller, await self._caller.submit(call), call.parse)
        return await self._solve(call, timeout_s, progress)

    async def min_cut(
        self,
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        timeout_s: float | None = None,
        progress: bool = False,
        **options: Unpack[SolveOptions],
    ) -> MaxFlowResult:
        """As `max_flow`, with the value and the cut by default."""
        return await self._solve(calls.solve("min-cut", self.name, source, sink, options), timeout_s, progress)

    @overload
    async def min_cost_flow(
        self,
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        wait: Literal[True] = True,
        timeout_s: float | None = None,
        progress: bool = False,
        **options: Unpack[min_cost.MinCostOptions],
    ) -> min_cost.MinCostFlowResult: ...

    @overload
    async def min_cost_flow(
        self,
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        wait: Literal[False],
        **options: Unpack[min_cost.MinCostOptions],
    ) -> AsyncJob[min_cost.MinCostFlowResult]: ...

    async def min_cost_flow(
        self,
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        wait: bool = True,
        timeout_s: float | None = None,
        progress: bool = False,
        **options: Unpack[min_cost.MinCostOptions],
    ) -> min_cost.MinCostFlowResult | AsyncJob[min_cost.MinCostFlowResult]:
        """The cheapest flow of `value`, or of as much as can flow, with potentials that prove it.

        The graph needs costs: `put_graph(cost=...)`, else `NoCosts`. `wait=False` gives a `AsyncJob` at once. Raises
        `Infeasible` for more than can flow, `Unbounded` for a cycle of unlimited edges that costs less than nothing.
        """
        call = min_cost.question(self.name, source, sink, options)
        if not wait:
            return AsyncJob(self._caller, await self._caller.submit(call), call.parse)
        return await self._solve(call, timeout_s, progress)

    @overload
    async def matching(
        self,
        left: Ids | None = None,
        *,
        wait: Literal[True] = True,
        timeout_s: float | None = None,
        progress: bool = False,
        **options: Unpack[MatchingOptions],
    ) -> MatchingResult: ...

    @overload
    async def matching(
        self, left: Ids | None = None, *, wait: Literal[False], **options: Unpack[MatchingOptions]
    ) -> AsyncJob[MatchingResult]: ...

    async def matching(
        self,
        left: Ids | None = None,
        *,
        wait: bool = True,
        timeout_s: float | None = None,
        progress: bool = False,
        **options: Unpack[MatchingOptions],
    ) -> MatchingResult | AsyncJob[MatchingResult]:
        """A maximum matching, and a vertex cover of the same size that proves it.

        Tails of edges are left and heads are right. `left` names the left vertices where edges are undirected or drawn
        the other way; such a graph is solved from zero each time. Edges of capacity 0 are closed, others have 1 or
        more. `wait=False` gives an `AsyncJob` at once. Raises `NotBipartite`, `InvalidBody`, `WaitTimeout`, ...
        """
        call = calls.matching(self.name, left, options)
        if not wait:
            return AsyncJob(self._caller, await self._caller.submit(call), call.parse)
        return await self._solve(call, timeout_s, progress)

    async def what_if(
        self,
        scenarios: Sequence[what_if.Scenario],
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        timeout_s: float | None = None,
        progress: bool = False,
        **options: Unpack[what_if.WhatIfOptions],
    ) -> what_if.WhatIfResult:
        """The max flow in each scenario, row by row; the graph changes in none, and updates do not wait for it.

        What is wrong with a scenario is the `error` of its row. Raises as `max_flow` for the question itself.
        """
        return await self._solve(what_if.question(self.name, scenarios, source, sink, options), timeout_s, progress)

    async def patch(
        self,
        *,
        edges: Ids,
        set: Amounts | None = None,
        add: Amounts | None = None,
        scale: Amounts | None = None,
        column: Column = "capacity",
        timeout_s: float | None = None,
        **options: Unpack[PatchOptions],
    ) -> results.PatchResult:
        """Set, add to or scale capacities of edges by id, or with `column="cost"` their costs: one amount for all, or
        one each. All or nothing."""
        return await self.apply(
            [Update(edges=edges, set=set, add=add, scale=scale)], column=column, timeout_s=timeout_s, **options
        )

    async def patch_endpoints(
        self,
        *,
        tail: Ids,
        head: Ids,
        set: Amounts | None = None,
        add: Amounts | None = None,
        scale: Amounts | None = None,
        column: Column = "capacity",
        timeout_s: float | None = None,
        **options: Unpack[PatchOptions],
    ) -> results.PatchResult:
        """As `patch`, edges by their end points. Raises `AmbiguousEdge` where parallel edges match."""
        update = Update(tail=tail, head=head, set=set, add=add, scale=scale)
        return await self.apply([update], column=column, timeout_s=timeout_s, **options)

    async def close(
        self, edges: Ids, *, timeout_s: float | None = None, **options: Unpack[PatchOptions]
    ) -> results.PatchResult:
        """Let nothing through these edges until they are reopened; their capacities are kept."""
        return await self.apply([Update(edges=edges, op="close")], timeout_s=timeout_s, **options)

    async def reopen(
        self, edges: Ids, *, timeout_s: float | None = None, **options: Unpack[PatchOptions]
    ) -> results.PatchResult:
        """Undo `close`."""
        return await self.apply([Update(edges=edges, op="reopen")], timeout_s=timeout_s, **options)

    async def apply(
        self,
        updates: Sequence[Update],
        *,
        column: Column = "capacity",
        timeout_s: float | None = None,
        **options: Unpack[PatchOptions],
    ) -> results.PatchResult:
        """Several operations in order, as one version: all or nothing. Raises `UnknownEdge`, `VersionConflict`."""
        call = calls.patch(self.name, updates, options, column, self.info.generation)
        return await self._caller.command(call, timeout_s)

    async def capacities(
        self,
        offset: int = 0,
        limit: int = 10_000,
        timeout_s: float | None = None,
        *,
        if_version: int | str | None = None,
    ) -> results.Capacities:
        """A page of edges with their present capacities; `limit` is at most 100,000. With `if_version` it is of that
        version, else `VersionConflict`."""
        call = calls.capacities(self.name, offset, limit, if_version, self.info.generation)
        return await self._caller.command(call, timeout_s)

    async def copy(self, to: str, timeout_s: float | None = None) -> "AsyncGraph":
        """A new graph of this name with the present edges of this one, closed ones too. Raises `AlreadyExists`."""
        return AsyncGraph(self._caller, await self._caller.command(calls.copy(self.name, to), timeout_s))

    async def restore(
        self, version: int, *, timeout_s: float | None = None, **options: Unpack[RestoreOptions]
    ) -> results.PatchResult:
        """A new version with the capacities and closed edges of an earlier one. Raises `VersionUnavailable`."""
        call = calls.restore(self.name, version, options, self.info.generation)
        return await self._caller.command(call, timeout_s)

    async def export(
        self,
        path: str | Path,
        *,
        format: GraphFormat | None = None,
        version: int | None = None,
        timeout_s: float | None = None,
    ) -> int:
        """Write the graph to a file that `put_graph` reads, and give the version that is in it: the present one, or the
        `version` that is asked for, as far as `restore` reaches.

        The format is told by the suffix (.npz, .arrow, .max) unless it is named. npz and Arrow hold everything:
        capacities, closed edges, names, terminals. The file is there whole, or as it was before. Raises
        `VersionUnavailable`.
        """
        path = Path(path)
        wanted = format or format_of(path)
        with whole_file(path) as file:
            return await self._caller.download(calls.export(self.name, wanted, version, file), timeout_s)

    async def to_networkx(self, *, page: int = 100_000, timeout_s: float | None = None) -> Any:
        """The graph with its present capacities for NetworkX, which must be installed; `page` edges at a time.

        A `DiGraph`, or a `Graph` if all edges are undirected, or their multigraphs if there are parallel edges. Edges
        have `id`, `capacity` and, if there are any, `cost`, each an `int` or `Decimal`; unlimited ones have no
        `capacity`, as NetworkX means it, closed ones have 0 and ``closed=True``. Beside directed edges an undirected
        one is two with ``undirected=True``. Vertices with a label and without edges are left out.

        Raises `VersionConflict` if the graph changes meanwhile.
        """
        pages = exported.Pages(await self._caller.ask(calls.graph(self.name)))
        while pages.missing:
            pages.add(await self.capacities(pages.rows, page, timeout_s, if_version=pages.etag))
        return pages.networkx()

    async def write_snapshot(self, timeout_s: float | None = None) -> records.Snapshot:
        """Write the present version to the store now."""
        return await self._caller.command(calls.write_snapshot(self.name), timeout_s)

    async def snapshots(self) -> tuple[records.Snapshot, ...]:
        """The snapshots the store has."""
        return await self._caller.ask(calls.snapshots(self.name))

    async def _solve(self, call: Call[T], timeout_s: float | None, progress: bool) -> T:
        if not progress:
            return await self._caller.command(call, timeout_s)
        deadline = Deadline.after(timeout_s)
        job = AsyncJob(self._caller, await self._caller.submit(call, deadline), call.parse)
        return await job._shown(f"solve {self.name}", deadline)
