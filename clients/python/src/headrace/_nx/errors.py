"""What the service refuses, as the exceptions that NetworkX raises."""

from collections.abc import Iterator
from contextlib import contextmanager

import networkx as nx

from headrace import _errors as errors

REFUSED = (
    errors.UnknownVertex,
    errors.SourceIsSink,
    errors.InvalidInput,
    errors.InvalidBody,
    errors.CapacityOverflow,
    errors.CostOverflow,
    errors.NotBipartite,
)
"""What is wrong with the graph or the question. That the service is busy, full or gone is no error of NetworkX's."""


@contextmanager
def their_errors() -> Iterator[None]:
    try:
        yield
    except errors.Unbounded as error:
        raise nx.NetworkXUnbounded(str(error)) from error
    except errors.Infeasible as error:
        raise nx.NetworkXUnfeasible(str(error)) from error
    except REFUSED as error:
        raise nx.NetworkXError(str(error)) from error
