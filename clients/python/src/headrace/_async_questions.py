"""Questions about one graph: they change nothing."""

from collections.abc import Sequence
from typing import Any, Literal, Unpack, overload

from headrace import _calls as calls
from headrace import _circulations as circulations
from headrace import _min_cost as min_cost
from headrace import _what_if as what_if
from headrace._async_handle import AsyncHandle
from headrace._async_job import AsyncJob
from headrace._async_row_stream import AsyncRowStream
from headrace._calls import (
    Ids,
    MatchingOptions,
    SolveOptions,
    Terminals,
)
from headrace._flows import MaxFlowResult
from headrace._matchings import MatchingResult
from headrace._mistakes import flag, refuse_beside
from headrace._what_if import Scenario, WhatIfOptions, WhatIfResult, WhatIfRow


class AsyncQuestions(AsyncHandle):
    """The questions that a graph is asked."""

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
        if not flag(wait, "wait"):
            return await self._begin(call, timeout_s, progress)
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

    async def flow_map(
        self,
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        timeout_s: float | None = None,
        **options: Unpack[SolveOptions],
    ) -> dict[str, Any]:
        """The max flow as GeoJSON, for `json.dump`: a line for each edge with flow, with `id`, `flow`, `capacity` and
        `in_cut`. Raises `NotAcceptable` where vertices have no longitudes and latitudes.
        """
        return await self._caller.command(calls.flow_map(self.name, source, sink, options), timeout_s)

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

        The graph needs costs: `put_graph(cost=...)`, else `NoCosts`. `wait=False` gives an `AsyncJob` at once. Raises
        `Infeasible` for more than can flow, `Unbounded` for a cycle of unlimited edges that costs less than nothing,
        `HasLowerBounds` for a graph that has some, unless `lower="ignore"`.
        """
        call = min_cost.question(self.name, source, sink, options)
        if not flag(wait, "wait"):
            return await self._begin(call, timeout_s, progress)
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
        if not flag(wait, "wait"):
            return await self._begin(call, timeout_s, progress)
        return await self._solve(call, timeout_s, progress)

    @overload
    async def circulation(
        self,
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        wait: Literal[True] = True,
        timeout_s: float | None = None,
        progress: bool = False,
        **options: Unpack[circulations.CirculationOptions],
    ) -> circulations.CirculationResult: ...

    @overload
    async def circulation(
        self,
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        wait: Literal[False],
        **options: Unpack[circulations.CirculationOptions],
    ) -> AsyncJob[circulations.CirculationResult]: ...

    async def circulation(
        self,
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        wait: bool = True,
        timeout_s: float | None = None,
        progress: bool = False,
        **options: Unpack[circulations.CirculationOptions],
    ) -> circulations.CirculationResult | AsyncJob[circulations.CirculationResult]:
        """A flow in which edges carry at least their `lower` bounds, sources supply at least `min_supply` and sinks
        take at least `min_demand`; or the `proof` that there is none, which is an answer and raises nothing.

        Terminals are those of the graph by default; `source=[]` and `sink=[]` say that there are none. `wait=False`
        gives an `AsyncJob` at once. Raises `NotDirected` for a lower bound of an undirected edge.
        """
        call = circulations.question(self.name, source, sink, options)
        if not flag(wait, "wait"):
            return await self._begin(call, timeout_s, progress)
        return await self._solve(call, timeout_s, progress)

    @overload
    async def what_if(
        self,
        scenarios: Sequence[Scenario],
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        stream: Literal[False] = False,
        timeout_s: float | None = None,
        progress: bool = False,
        **options: Unpack[WhatIfOptions],
    ) -> WhatIfResult: ...

    @overload
    async def what_if(
        self,
        scenarios: Sequence[Scenario],
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        stream: Literal[True],
        timeout_s: float | None = None,
        **options: Unpack[WhatIfOptions],
    ) -> AsyncRowStream[WhatIfRow]: ...

    async def what_if(
        self,
        scenarios: Sequence[Scenario],
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        stream: bool = False,
        timeout_s: float | None = None,
        progress: bool = False,
        **options: Unpack[WhatIfOptions],
    ) -> WhatIfResult | AsyncRowStream[WhatIfRow]:
        """The max flow in each scenario, row by row; the graph changes in none, and updates do not wait for it.

        What is wrong with a scenario is the `error` of its row. `stream=True` gives the rows one by one, while others
        are solved. Raises as `max_flow` for the question itself.
        """
        call = what_if.question(self.name, scenarios, source, sink, options)
        if flag(stream, "stream"):
            refuse_beside("stream=True", progress=progress)
            return await AsyncRowStream.opened(self._caller, call, WhatIfRow.from_json, timeout_s)
        return await self._solve(call, timeout_s, progress)
