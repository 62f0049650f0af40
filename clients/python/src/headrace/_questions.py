# Made by scripts/synchronous_client.py from _async_questions.py: change that one.
"""Questions about one graph: they change nothing."""

from collections.abc import Sequence
from typing import Any, Literal, Unpack, overload

from headrace import _calls as calls
from headrace import _circulations as circulations
from headrace import _min_cost as min_cost
from headrace import _what_if as what_if
from headrace._calls import (
    Ids,
    MatchingOptions,
    SolveOptions,
    Terminals,
)
from headrace._flows import MaxFlowResult
from headrace._handle import Handle
from headrace._job import Job
from headrace._matchings import MatchingResult
from headrace._mistakes import flag, refuse_beside
from headrace._row_stream import RowStream
from headrace._what_if import Scenario, WhatIfOptions, WhatIfResult, WhatIfRow


class Questions(Handle):
    """The questions that a graph is asked."""

    @overload
    def max_flow(
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
    def max_flow(
        self,
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        wait: Literal[False],
        **options: Unpack[SolveOptions],
    ) -> Job[MaxFlowResult]: ...

    def max_flow(
        self,
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        wait: bool = True,
        timeout_s: float | None = None,
        progress: bool = False,
        **options: Unpack[SolveOptions],
    ) -> MaxFlowResult | Job[MaxFlowResult]:
        """Max flow between one or many sources and sinks; those of the graph by default.

        `wait=False` gives a `Job` at once. See `SolveOptions` for the options. Disconnected terminals are no
        error, the value is 0. Raises `Unbounded`, `SourceIsSink`, `WaitTimeout`, ...
        """
        call = calls.solve("max-flow", self.name, source, sink, options)
        if not flag(wait, "wait"):
            return self._begin(call, timeout_s, progress)
        return self._solve(call, timeout_s, progress)

    def min_cut(
        self,
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        timeout_s: float | None = None,
        progress: bool = False,
        **options: Unpack[SolveOptions],
    ) -> MaxFlowResult:
        """As `max_flow`, with the value and the cut by default."""
        return self._solve(calls.solve("min-cut", self.name, source, sink, options), timeout_s, progress)

    def flow_map(
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
        return self._caller.command(calls.flow_map(self.name, source, sink, options), timeout_s)

    @overload
    def min_cost_flow(
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
    def min_cost_flow(
        self,
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        wait: Literal[False],
        **options: Unpack[min_cost.MinCostOptions],
    ) -> Job[min_cost.MinCostFlowResult]: ...

    def min_cost_flow(
        self,
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        wait: bool = True,
        timeout_s: float | None = None,
        progress: bool = False,
        **options: Unpack[min_cost.MinCostOptions],
    ) -> min_cost.MinCostFlowResult | Job[min_cost.MinCostFlowResult]:
        """The cheapest flow of `value`, or of as much as can flow, with potentials that prove it.

        The graph needs costs: `put_graph(cost=...)`, else `NoCosts`. `wait=False` gives a `Job` at once. Raises
        `Infeasible` for more than can flow, `Unbounded` for a cycle of unlimited edges that costs less than nothing,
        `HasLowerBounds` for a graph that has some, unless `lower="ignore"`.
        """
        call = min_cost.question(self.name, source, sink, options)
        if not flag(wait, "wait"):
            return self._begin(call, timeout_s, progress)
        return self._solve(call, timeout_s, progress)

    @overload
    def matching(
        self,
        left: Ids | None = None,
        *,
        wait: Literal[True] = True,
        timeout_s: float | None = None,
        progress: bool = False,
        **options: Unpack[MatchingOptions],
    ) -> MatchingResult: ...

    @overload
    def matching(
        self, left: Ids | None = None, *, wait: Literal[False], **options: Unpack[MatchingOptions]
    ) -> Job[MatchingResult]: ...

    def matching(
        self,
        left: Ids | None = None,
        *,
        wait: bool = True,
        timeout_s: float | None = None,
        progress: bool = False,
        **options: Unpack[MatchingOptions],
    ) -> MatchingResult | Job[MatchingResult]:
        """A maximum matching, and a vertex cover of the same size that proves it.

        Tails of edges are left and heads are right. `left` names the left vertices where edges are undirected or drawn
        the other way; such a graph is solved from zero each time. Edges of capacity 0 are closed, others have 1 or
        more. `wait=False` gives a `Job` at once. Raises `NotBipartite`, `InvalidBody`, `WaitTimeout`, ...
        """
        call = calls.matching(self.name, left, options)
        if not flag(wait, "wait"):
            return self._begin(call, timeout_s, progress)
        return self._solve(call, timeout_s, progress)

    @overload
    def circulation(
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
    def circulation(
        self,
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        wait: Literal[False],
        **options: Unpack[circulations.CirculationOptions],
    ) -> Job[circulations.CirculationResult]: ...

    def circulation(
        self,
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        wait: bool = True,
        timeout_s: float | None = None,
        progress: bool = False,
        **options: Unpack[circulations.CirculationOptions],
    ) -> circulations.CirculationResult | Job[circulations.CirculationResult]:
        """A flow in which edges carry at least their `lower` bounds, sources supply at least `min_supply` and sinks
        take at least `min_demand`; or the `proof` that there is none, which is an answer and raises nothing.

        Terminals are those of the graph by default; `source=[]` and `sink=[]` say that there are none. `wait=False`
        gives a `Job` at once. Raises `NotDirected` for a lower bound of an undirected edge.
        """
        call = circulations.question(self.name, source, sink, options)
        if not flag(wait, "wait"):
            return self._begin(call, timeout_s, progress)
        return self._solve(call, timeout_s, progress)

    @overload
    def what_if(
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
    def what_if(
        self,
        scenarios: Sequence[Scenario],
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        stream: Literal[True],
        timeout_s: float | None = None,
        **options: Unpack[WhatIfOptions],
    ) -> RowStream[WhatIfRow]: ...

    def what_if(
        self,
        scenarios: Sequence[Scenario],
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        stream: bool = False,
        timeout_s: float | None = None,
        progress: bool = False,
        **options: Unpack[WhatIfOptions],
    ) -> WhatIfResult | RowStream[WhatIfRow]:
        """The max flow in each scenario, row by row; the graph changes in none, and updates do not wait for it.

        What is wrong with a scenario is the `error` of its row. `stream=True` gives the rows one by one, while others
        are solved. Raises as `max_flow` for the question itself.
        """
        call = what_if.question(self.name, scenarios, source, sink, options)
        if flag(stream, "stream"):
            refuse_beside("stream=True", progress=progress)
            return RowStream.opened(self._caller, call, WhatIfRow.from_json, timeout_s)
        return self._solve(call, timeout_s, progress)
