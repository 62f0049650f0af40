"""The conditions of a network, checked on its columns alone: no CSR, no compiler, fit for an API process."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gpu_engine.errors import CapacityOverflow, CostOverflow, InvalidNetwork, NotDirected, TooLarge
from gpu_engine.networks.coordinates import check_coordinates
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.text.counted import counted
from gpu_engine.types import (
    INFINITE,
    MAX_ARCS,
    MAX_DECIMALS,
    MAX_TOTAL,
    MAX_VERTICES,
    BoolArray,
    EdgeArray,
    UnitArray,
    VertexArray,
)


def exact_total(capacity: UnitArray, undirected: BoolArray) -> int:
    """Sum of the finite capacities as an exact integer, an undirected edge counted twice.

    Split in 32-bit halves so that no int64 sum can wrap for up to 2**31 edges.
    """
    finite = np.where(capacity == INFINITE, 0, capacity)
    low, high = finite & 0xFFFFFFFF, finite >> 32
    twice = np.broadcast_to(undirected, finite.shape)
    total = (int(high.sum()) << 32) + int(low.sum())
    return total + (int(high[twice].sum()) << 32) + int(low[twice].sum())


def check(edges: EdgeList) -> None:
    """Raise unless the columns describe a network within the stated limits; names at most ten rows."""
    m = edges.n_edges
    columns: Sequence[tuple[str, NDArray[np.generic]]] = (
        ("head", edges.head),
        ("capacity", edges.capacity),
        *([] if edges.closed is None else [("closed", edges.closed)]),
        *([] if edges.cost is None else [("cost", edges.cost)]),
        *([] if edges.lower is None else [("lower", edges.lower)]),
    )
    for name, column in columns:
        if len(column) != m:
            raise InvalidNetwork(f"column {name} has {len(column)} rows, tail has {m}")
    if np.ndim(edges.undirected) and np.size(edges.undirected) != m:
        raise InvalidNetwork(f"column undirected has {np.size(edges.undirected)} rows, tail has {m}")
    if not 0 <= edges.decimals <= MAX_DECIMALS:
        raise InvalidNetwork(f"decimals must lie between 0 and {MAX_DECIMALS}, not {edges.decimals}")
    if not 0 <= edges.n_vertices <= MAX_VERTICES:
        raise TooLarge(f"{edges.n_vertices} vertices; the limit is {MAX_VERTICES}")
    if 2 * m > MAX_ARCS:
        raise TooLarge(f"{m} edges; the limit is {MAX_ARCS // 2}")
    for name, column in (("tail", edges.tail), ("head", edges.head)):
        if column.dtype.kind not in "iu":
            raise InvalidNetwork(f"column {name} must hold integers, not {column.dtype}")
        bad = np.flatnonzero((column < 0) | (column >= edges.n_vertices))
        if len(bad):
            raise InvalidNetwork(
                f"column {name} names {counted(len(bad), 'vertex', 'vertices')} outside 0..{edges.n_vertices - 1}",
                bad.tolist(),
            )
    if edges.capacity.dtype != np.int64:
        raise InvalidNetwork(f"column capacity must hold int64 units, not {edges.capacity.dtype}")
    bad = np.flatnonzero(edges.capacity < 0)
    if len(bad):
        raise InvalidNetwork(f"{len(bad)} negative capacities", bad.tolist(), field="/capacity")
    capacity = edges.effective
    total = exact_total(capacity, np.atleast_1d(np.asarray(edges.undirected, dtype=np.bool_)))
    if total > MAX_TOTAL:
        finite = np.where(capacity == INFINITE, 0, capacity)
        largest = np.argsort(finite)[::-1][:10]
        detail = f"the capacities add up to {total} units; the limit is {MAX_TOTAL}"
        raise CapacityOverflow(detail, largest.tolist(), field="/capacity")
    check_cost(edges)
    check_lower(edges)
    check_vertices(edges, total)
    check_coordinates(edges.coordinates, edges.n_vertices)
    for name, terminal in (("source", edges.source), ("sink", edges.sink)):
        if terminal is not None and not 0 <= terminal < edges.n_vertices:
            raise InvalidNetwork(f"the default {name} {terminal} is no vertex")


def check_vertices(edges: EdgeList, total: int) -> None:
    """Raise unless no vertex has a capacity, or the network can be split (`gpu_engine.vertices`). ``total``: the sum of
    the capacities of edges, an undirected one counted twice."""
    limited, capacity = edges.limited, edges.vertex_capacity
    if limited is None or capacity is None:
        return
    if len(limited) != len(capacity):
        raise InvalidNetwork(f"there are {len(capacity)} capacities for {len(limited)} vertices")
    if len(limited) and (limited[0] < 0 or limited[-1] >= edges.n_vertices or (np.diff(limited) <= 0).any()):
        raise InvalidNetwork("the vertices with a capacity are to be vertices of the network, rising")
    if (capacity < 0).any():
        raise InvalidNetwork("a vertex has a negative capacity", vertices=limited[capacity < 0][:10].tolist())
    twofold = int(np.count_nonzero(np.broadcast_to(edges.undirected, edges.n_edges)))
    if edges.n_vertices + len(limited) > MAX_VERTICES:
        raise TooLarge(f"with a second half for each of {len(limited)} vertices there are more than {MAX_VERTICES}")
    if 2 * (edges.n_edges + twofold + len(limited)) > MAX_ARCS:
        raise TooLarge(f"with capacities of vertices there are more than {MAX_ARCS // 2} edges inside")
    total += exact_total(capacity, np.zeros(1, np.bool_))
    if total > MAX_TOTAL:
        raise CapacityOverflow(
            f"the capacities of edges and vertices add up to {total} units; the limit is {MAX_TOTAL}",
            field="/vertex_capacity",
        )


def check_lower(edges: EdgeList) -> None:
    """Raise unless the edges have no lower bounds, or such as a circulation can be asked to keep."""
    lower = edges.lower
    if lower is None:
        return
    if lower.dtype != np.int64:
        raise InvalidNetwork(f"column lower must hold int64 units, not {lower.dtype}")
    bad = np.flatnonzero(lower < 0)
    if len(bad):
        raise InvalidNetwork(counted(len(bad), "negative lower bound"), bad.tolist(), field="/lower")
    bound = np.flatnonzero((lower > 0) & np.asarray(edges.undirected, dtype=np.bool_))
    if len(bound):
        several = counted(len(bound), "undirected edge has", "undirected edges have")
        raise NotDirected(f"{several} a lower bound, which only directed ones may have", bound.tolist(), field="/lower")
    total = exact_total(lower, np.zeros(1, np.bool_))
    if total > MAX_TOTAL or (lower > MAX_TOTAL).any():
        detail = f"the lower bounds add up to more than {MAX_TOTAL} units"
        raise CapacityOverflow(detail, np.argsort(lower)[::-1][:10].tolist(), field="/lower")


def largest_cost(n_vertices: int) -> int:
    """The largest cost of an edge, either way, in units: with it no path, and no potential, reaches 2**61."""
    return MAX_TOTAL // (n_vertices + 2)


def check_cost(edges: EdgeList) -> None:
    """Raise unless the edges have no costs, or such as a question for the cheapest flow can be answered with."""
    if edges.cost is None:
        return
    if not 0 <= edges.cost_decimals <= MAX_DECIMALS:
        raise InvalidNetwork(f"cost_decimals must lie between 0 and {MAX_DECIMALS}, not {edges.cost_decimals}")
    if edges.cost.dtype != np.int64:
        raise InvalidNetwork(f"column cost must hold int64 units, not {edges.cost.dtype}")
    limit = largest_cost(edges.n_vertices)
    beyond = np.flatnonzero((edges.cost > limit) | (edges.cost < -limit))
    if len(beyond):
        several = counted(len(beyond), "cost is", "costs are")
        detail = f"{several} beyond {limit} units either way, the limit for {edges.n_vertices} vertices"
        raise CostOverflow(detail, beyond.tolist(), field="/cost")
    below = np.flatnonzero((edges.cost < 0) & np.asarray(edges.undirected, dtype=np.bool_))
    if len(below):
        several = counted(len(below), "undirected edge costs", "undirected edges cost")
        detail = f"{several} less than nothing: going back and forth on one would be paid for"
        raise InvalidNetwork(detail, below.tolist(), field="/cost")


def twice(values: EdgeArray | VertexArray) -> list[int]:
    """The rows of what stands in several rows of a column, in their order; -1 is nothing, as often as it stands.

    O(k log k), and a sort alone where nothing does.
    """
    rising = np.sort(values)
    again = rising[1:][rising[1:] == rising[:-1]]
    rows: list[int] = np.flatnonzero(np.isin(values, again[again >= 0])).tolist() if len(again) else []
    return rows
