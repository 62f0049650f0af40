# Made by scripts/synchronous_client.py from _async_studies.py: change that one.
"""Studies of one graph: one question, solved many times; they change nothing."""

from typing import Literal, Unpack, overload

from headrace import _closures as closures
from headrace._calls import Terminals
from headrace._handle import Handle
from headrace._mistakes import flag, refuse_beside
from headrace._row_stream import RowStream


class Studies(Handle):
    """The studies that a graph is asked for."""

    @overload
    def closure_study(
        self,
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        candidates: closures.Candidates = "all",
        stream: Literal[False] = False,
        timeout_s: float | None = None,
        progress: bool = False,
        **options: Unpack[closures.ClosureOptions],
    ) -> closures.ClosureStudy: ...

    @overload
    def closure_study(
        self,
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        candidates: closures.Candidates = "all",
        stream: Literal[True],
        timeout_s: float | None = None,
        **options: Unpack[closures.ClosureOptions],
    ) -> RowStream[closures.Closure]: ...

    def closure_study(
        self,
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        candidates: closures.Candidates = "all",
        stream: bool = False,
        timeout_s: float | None = None,
        progress: bool = False,
        **options: Unpack[closures.ClosureOptions],
    ) -> closures.ClosureStudy | RowStream[closures.Closure]:
        """Which closure costs most: each candidate is closed by itself, in thought, and the worst are ranked.

        Candidates are all edges, those of the minimum cut (`"cut"`), the ones you name, or lists of edges that are
        closed together. With `close="vertices"` they are all vertices but the terminals, the ends of the cut, or the
        vertices you name. `stream=True` gives the rows one by one, from when all are ranked. Raises as `max_flow`,
        `UnknownEdge`, and `UnknownVertex`.
        """
        call = closures.question(self.name, candidates, source, sink, options)
        if flag(stream, "stream"):
            refuse_beside("stream=True", progress=progress)
            return RowStream.opened(self._caller, call, closures.Closure.from_json, timeout_s)
        return self._solve(call, timeout_s, progress)
