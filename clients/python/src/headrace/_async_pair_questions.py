"""Questions about many pairs of vertices of one graph: they change nothing."""

from typing import Literal, Unpack, overload

from headrace import _pairs as many
from headrace._async_handle import AsyncHandle
from headrace._async_row_stream import AsyncRowStream
from headrace._calls import Ids
from headrace._mistakes import flag, refuse_beside


class AsyncPairQuestions(AsyncHandle):
    """The questions about all or many pairs of vertices."""

    @overload
    async def pairs(
        self,
        source: Ids | None = None,
        sink: Ids | None = None,
        *,
        sources: Ids | None = None,
        sinks: Ids | None = None,
        among: Ids | None = None,
        stream: Literal[False] = False,
        timeout_s: float | None = None,
        progress: bool = False,
        **options: Unpack[many.PairsOptions],
    ) -> many.PairsResult: ...

    @overload
    async def pairs(
        self,
        source: Ids | None = None,
        sink: Ids | None = None,
        *,
        sources: Ids | None = None,
        sinks: Ids | None = None,
        among: Ids | None = None,
        stream: Literal[True],
        timeout_s: float | None = None,
        **options: Unpack[many.PairsOptions],
    ) -> AsyncRowStream[many.Pair]: ...

    async def pairs(
        self,
        source: Ids | None = None,
        sink: Ids | None = None,
        *,
        sources: Ids | None = None,
        sinks: Ids | None = None,
        among: Ids | None = None,
        stream: bool = False,
        timeout_s: float | None = None,
        progress: bool = False,
        **options: Unpack[many.PairsOptions],
    ) -> many.PairsResult | AsyncRowStream[many.Pair]:
        """The max flow of each pair: of `source` and `sink` row by row, from each of `sources` to each of `sinks`, or
        of all pairs `among` some vertices, which are both ways if the graph has directed edges.

        What is wrong with a pair is the `error` of its row. No flow is kept, and updates do not wait. `stream=True`
        gives the rows one by one, while others are solved.
        """
        ends = {"source": source, "sink": sink, "sources": sources, "sinks": sinks, "among": among}
        call = many.pairs(self.name, ends, options)
        if flag(stream, "stream"):
            refuse_beside("stream=True", progress=progress)
            return await AsyncRowStream.opened(self._caller, call, many.Pair.from_json, timeout_s)
        return await self._solve(call, timeout_s, progress)

    async def gomory_hu_tree(
        self,
        terminals: Ids | None = None,
        *,
        timeout_s: float | None = None,
        progress: bool = False,
        **options: Unpack[many.CutTreeOptions],
    ) -> many.CutTree:
        """A tree that holds a minimum cut of every two of the `terminals`, of all vertices by default.

        Raises `NotUndirected` if the graph has a directed edge.
        """
        return await self._solve(many.gomory_hu_tree(self.name, terminals, options), timeout_s, progress)

    async def global_min_cut(
        self, *, timeout_s: float | None = None, progress: bool = False, **options: Unpack[many.GlobalCutOptions]
    ) -> many.GlobalCut:
        """The cheapest cut that divides the graph at all. Raises `Unbounded` if every cut has an edge without limit."""
        return await self._solve(many.global_min_cut(self.name, options), timeout_s, progress)
