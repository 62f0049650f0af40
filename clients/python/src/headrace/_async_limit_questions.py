"""Questions about what limits the flow of one graph: they change nothing."""

from typing import Literal, Unpack, overload

from headrace import _calls as calls
from headrace import _limits as limits
from headrace._amounts import Amount
from headrace._async_handle import AsyncHandle
from headrace._async_job import AsyncJob
from headrace._bottlenecks import Bottlenecks
from headrace._calls import SolveOptions, Terminals
from headrace._mistakes import flag


class AsyncLimitQuestions(AsyncHandle):
    """What limits a flow, and what it takes to let more flow."""

    async def bottlenecks(
        self,
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        timeout_s: float | None = None,
        progress: bool = False,
        **options: Unpack[SolveOptions],
    ) -> Bottlenecks:
        """The edges and caps that limit the max flow: those that some minimum cut pays, and whether each of them does.

        With `up_to=10` the first ten say what the flow would gain if that one had no limit. `max_flow` answers the same
        beside the value with `fields=["bottlenecks"]`.
        """
        call = calls.bottlenecks(self.name, source, sink, options)
        return await self._solve(call, timeout_s, progress)

    @overload
    async def parametric(
        self,
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        wait: Literal[True] = True,
        timeout_s: float | None = None,
        progress: bool = False,
        **options: Unpack[limits.ParametricOptions],
    ) -> limits.ParametricResult: ...

    @overload
    async def parametric(
        self,
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        wait: Literal[False],
        **options: Unpack[limits.ParametricOptions],
    ) -> AsyncJob[limits.ParametricResult]: ...

    async def parametric(
        self,
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        wait: bool = True,
        timeout_s: float | None = None,
        progress: bool = False,
        **options: Unpack[limits.ParametricOptions],
    ) -> limits.ParametricResult | AsyncJob[limits.ParametricResult]:
        """The max flow as a function of a factor from `start` to `to`, which multiplies the capacities of `edges`, or
        all caps of one side (`scale="supply"`). Breakpoints are exact fractions; updates do not wait for it.

        `wait=False` gives an `AsyncJob` at once. Raises `CapacityOverflow` where whole numbers have no room for a
        breakpoint.
        """
        call = limits.parametric(self.name, source, sink, options)
        if not flag(wait, "wait"):
            return await self._begin(call, timeout_s, progress)
        return await self._solve(call, timeout_s, progress)

    @overload
    async def capacity_expansion(
        self,
        raise_by: Amount,
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        wait: Literal[True] = True,
        timeout_s: float | None = None,
        progress: bool = False,
        **options: Unpack[limits.ExpansionOptions],
    ) -> limits.ExpansionResult: ...

    @overload
    async def capacity_expansion(
        self,
        raise_by: Amount,
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        wait: Literal[False],
        **options: Unpack[limits.ExpansionOptions],
    ) -> AsyncJob[limits.ExpansionResult]: ...

    async def capacity_expansion(
        self,
        raise_by: Amount,
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        wait: bool = True,
        timeout_s: float | None = None,
        progress: bool = False,
        **options: Unpack[limits.ExpansionOptions],
    ) -> limits.ExpansionResult | AsyncJob[limits.ExpansionResult]:
        """What to add to which of `edges` so that `raise_by` more can flow, at the least `price` in all.

        Nothing is widened: `patch` with its `edges` and `add` does. `wait=False` gives an `AsyncJob` at once. Raises
        `Infeasible` where that much cannot be had.
        """
        call = limits.expansion(self.name, raise_by, source, sink, options)
        if not flag(wait, "wait"):
            return await self._begin(call, timeout_s, progress)
        return await self._solve(call, timeout_s, progress)
