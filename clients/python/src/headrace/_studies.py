"""Studies of one graph: one question, solved many times; they change nothing."""

from typing import Unpack

from headrace import _closures as closures
from headrace._calls import Terminals
from headrace._handle import Handle


class Studies(Handle):
    """The studies that a graph is asked for."""

    def closure_study(
        self,
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        candidates: closures.Candidates = "all",
        timeout_s: float | None = None,
        progress: bool = False,
        **options: Unpack[closures.ClosureOptions],
    ) -> closures.ClosureStudy:
        """Which closure costs most: each candidate is closed by itself, in thought, and the worst are ranked.

        Candidates are all edges, those of the minimum cut (`"cut"`), the ones you name, or lists of edges that are
        closed together. Raises as `max_flow`, and `UnknownEdge`.
        """
        call = closures.question(self.name, candidates, source, sink, options)
        return self._solve(call, timeout_s, progress)
