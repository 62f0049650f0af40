"""`scipy.sparse.csgraph.maximum_flow`, answered by the service that the environment names (`HEADRACE_URL`).

```python
from headrace.csgraph import maximum_flow

found = maximum_flow(matrix, 0, 3)
print(found.flow_value, found.flow)
```
Amounts have 64 bits, and a matrix that is asked about again is in the service already. Needs SciPy.
"""

from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np

from headrace import _errors as errors
from headrace._floats import rounded
from headrace._flows import Flow
from headrace._kept import Content, kept

METHODS = ("dinic", "edmonds_karp")
REFUSED = (
    errors.InvalidInput,
    errors.InvalidBody,
    errors.CapacityOverflow,
    errors.UnknownVertex,
    errors.SourceIsSink,
)


@dataclass(frozen=True, slots=True)
class MaximumFlowResult:
    flow_value: int | float
    """A float where the matrix has fractions."""
    flow: Any
    """CSR array, or matrix if a matrix was given, int64[n, n] or float64[n, n]: what flows from row to column, and its
    negative from column to row."""


def maximum_flow(csgraph: Any, source: int, sink: int, *, method: str = "dinic") -> MaximumFlowResult:
    """A maximum flow from vertex `source` to vertex `sink`; entry (i, j) is the capacity of an edge from i to j.

    Args:
        csgraph: a square sparse matrix or array of any format and of any numbers; entries that stand there twice are
            two edges. Fractions are kept to as many places as they have, nine at most.
        method: "dinic" or "edmonds_karp", SciPy's algorithms; the value does not depend on it.

    Raises `ValueError` as SciPy does, and `TypeError` for what is no sparse matrix.
    """
    if not hasattr(csgraph, "tocoo"):
        raise TypeError(f"csgraph is a sparse matrix or array, not {type(csgraph).__name__}")
    if method not in METHODS:
        raise ValueError(f"method is one of {', '.join(METHODS)}, not {method!r}")
    if len(csgraph.shape) != 2 or csgraph.shape[0] != csgraph.shape[1]:
        raise ValueError("graph must be specified as a square matrix")
    source, sink = index(source), index(sink)
    entries = csgraph.tocoo()
    amounts = entries.data.astype(np.int8) if entries.data.dtype.kind == "b" else entries.data
    # A float32 has a shortest decimal of its own, which is not that of the same number as a float64.
    floats = amounts.tolist() if amounts.dtype == np.float64 else list(amounts)
    capacity = amounts if amounts.dtype.kind in "iu" else rounded(floats)
    try:
        content = Content.of(
            {"n_vertices": csgraph.shape[0], "tail": entries.row, "head": entries.col, "capacity": capacity}
        )
        found = kept("csgraph").ask(csgraph, content, lambda graph: graph.max_flow(source, sink, fields=["flow"]))
    except REFUSED as error:
        raise ValueError(str(error)) from error
    assert found.flow is not None
    value = int(found.value) if found.value == int(found.value) else float(found.value)
    return MaximumFlowResult(value, _antisymmetric(csgraph, entries, found.flow))


def _antisymmetric(given: Any, entries: Any, flow: Flow) -> Any:
    import scipy.sparse as sp

    rows, amounts = np.asarray(flow.edges), np.asarray(flow.amount)
    sent = sp.coo_array((amounts, (entries.row[rows], entries.col[rows])), shape=entries.shape).tocsr()
    found = (sent - sent.transpose()).tocsr()
    return sp.csr_matrix(found) if sp.isspmatrix(given) else found
