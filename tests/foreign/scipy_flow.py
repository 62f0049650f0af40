"""Max flows of SciPy's sparse matrices, found by the service and answered as `scipy.sparse.csgraph` answers them."""

from dataclasses import dataclass
from typing import Any

import headrace
import numpy as np
import scipy.sparse as sp
from headrace import Client


@dataclass(frozen=True, slots=True)
class MaximumFlow:
    flow_value: int
    flow: Any
    """Matrix of the graph's own kind, int32[n, n]: what flows from row to column, negative in the other direction."""


class SciPyFlow:
    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name

    def maximum_flow(self, csgraph: Any, source: int, sink: int, *, method: str = "dinic") -> MaximumFlow:
        """`method` names an algorithm of SciPy and changes no value. Raises `ValueError` as SciPy does."""
        try:
            answer = self._client.put_graph(self._name, csgraph).max_flow(source, sink, fields=["flow"])
        except (headrace.InvalidInput, headrace.InvalidBody, headrace.UnknownVertex, headrace.SourceIsSink) as error:
            raise ValueError(str(error)) from error
        assert answer.flow is not None
        entries, used = csgraph.tocoo(), np.array(answer.flow.edges, np.int64)
        amounts = np.array(answer.flow.flow, np.int32)
        sent = type(csgraph)(sp.coo_array((amounts, (entries.row[used], entries.col[used])), shape=csgraph.shape))
        return MaximumFlow(int(answer.value), sent - sent.transpose())
