# Made by scripts/synchronous_client.py from _async_pair_questions.py: change that one.
"""Questions about many pairs of vertices of one graph: they change nothing."""

from typing import Literal, Unpack, overload

from headrace import _pairs as many
from headrace._calls import Ids
from headrace._handle import Handle
from headrace._mistakes import flag, refuse_beside
from headrace._row_stream import RowStream


class PairQuestions(Handle):
    """The questions about all or many pairs of vertices."""

    @overload
    def pairs(
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
    def pairs(
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
    ) -> RowStream[many.Pair]: ...

    def pairs(
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
    ) -> many.PairsResult | RowStream[many.Pair]:
        """The max flow of each pair: of `source` and `sink` row by row, from each of `sources` to each of `sinks`, or
        of all pairs `among` some vertices, which are both ways if the graph has directed edges.

        What is wrong with a pair is the `error` of its row. No flow is kept, and updates do not wait. `stream=True`
        gives the rows one by one, while others are solved.
        """
        ends = {"source": source, "sink": sink, "sources": sources, "sinks": sinks, "among": among}
        call = many.pairs(self.name, ends, options)
        if flag(stream, "stream"):
            refuse_beside("stream=True", progress=progress)
            return RowStream.opened(self._caller, call, many.Pair.from_json, timeout_s)
        return self._solve(call, timeout_s, progress)

    def gomory_hu_tree(
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
        return self._solve(many.gomory_hu_tree(self.name, terminals, options), timeout_s, progress)

    def global_min_cut(
        self, *, timeout_s: float | None = None, progress: bool = False, **options: Unpack[many.GlobalCutOptions]
    ) -> many.GlobalCut:
        """The cheapest cut that divides the graph at all. Raises `Unbounded` if every cut has an edge without limit."""
        return self._solve(many.global_min_cut(self.name, options), timeout_s, progress)
