"""Families drawn in the plane: random geometric, Delaunay, road-like with long chains, and vehicles near requests."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpu_engine.generators._columns import (
    Columns,
    Indices,
    draw_capacities,
    edge_list,
    require,
    star_from,
    star_to,
)
from gpu_engine.generators._near import pairs_within
from gpu_engine.networks.edgelist import EdgeList

DISC_RADIUS = 0.07
SOURCE_DISC, SINK_DISC = (0.2, 0.5), (0.8, 0.5)
"""Centres in the unit square: source and sink are joined to all points of one disc each."""

LANE_CAPACITY = np.array([300, 600, 1000, 2000], dtype=np.int64)
"""Vehicles per hour and lane, from a service road to a motorway."""


def geometric(*, seed: int, n_vertices: int = 100_000, degree: float = 10.0, max_capacity: int = 100) -> EdgeList:
    """Random points of the unit square, an undirected edge between any two closer than a radius.

    The radius gives `degree` neighbours on average. Capacities are uniform on ``1 .. max_capacity``; the
    source (``n - 2``) and sink (``n - 1``) are joined by infinite edges to all points of two discs.
    """
    require(n_vertices >= 2, f"two points are needed: {n_vertices}")
    require(0 < degree < n_vertices, f"degree must be positive and below the points: {degree}")
    require(max_capacity >= 1, f"max_capacity must be positive: {max_capacity}")
    rng = np.random.default_rng(seed)
    points = rng.random((n_vertices, 2))
    lower, upper = pairs_within(points, float(np.sqrt(degree / (np.pi * n_vertices))))
    links = lower, upper, draw_capacities(rng, 1, max_capacity, len(lower))
    return _between_discs(points, links)


def delaunay(*, seed: int, n_vertices: int = 170_000, max_capacity: int = 100) -> EdgeList:
    """The Delaunay triangulation of random points, undirected, between two discs; needs SciPy."""
    try:
        from scipy.spatial import Delaunay
    except ImportError as error:
        raise ImportError("the family 'delaunay' needs SciPy: pip install scipy") from error
    require(n_vertices >= 4, f"a triangulation needs four points: {n_vertices}")
    require(max_capacity >= 1, f"max_capacity must be positive: {max_capacity}")
    rng = np.random.default_rng(seed)
    points = rng.random((n_vertices, 2))
    corners = np.sort(Delaunay(points).simplices.astype(np.int64), axis=1)
    sides = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]])
    lower, upper = np.divmod(np.unique(sides[:, 0] * n_vertices + sides[:, 1]), n_vertices)
    links = lower, upper, draw_capacities(rng, 1, max_capacity, len(lower))
    return _between_discs(points, links)


def road(
    *,
    seed: int,
    rows: int = 250,
    columns: int = 250,
    kept: float = 0.72,
    mean_chain: float = 2.0,
    terminals: int = 200,
) -> EdgeList:
    """A road-like network: junctions of a thinned grid, joined by chains of links of one capacity.

    Each grid street stays with probability `kept` and becomes a chain of geometrically distributed length
    with mean `mean_chain`; the average degree is about 2.4. Capacity is vehicles an hour: lane capacity of a
    random road class times 1 to 3 lanes, either direction. The source and sink (the last two vertices) are
    joined by infinite edges to `terminals` random junctions of the westmost and the eastmost tenth.
    """
    require(rows >= 1 and columns >= 2, f"junctions on two sides are needed: {rows} x {columns}")
    require(0 < kept <= 1, f"kept must be a probability above zero: {kept}")
    require(mean_chain >= 1, f"a chain has at least one link: {mean_chain}")
    side = min(max(1, columns // 10), columns // 2)
    require(1 <= terminals <= rows * side, f"{terminals} terminals, but {rows * side} junctions a side")
    rng = np.random.default_rng(seed)
    streets = _streets(rng, rows, columns, kept, mean_chain)
    n_junctions = rows * columns
    n = n_junctions + int(np.sum(streets.length - 1))
    column = np.arange(n_junctions, dtype=np.int64) % columns
    west = rng.choice(np.flatnonzero(column < side), terminals, replace=False)
    east = rng.choice(np.flatnonzero(column >= columns - side), terminals, replace=False)
    ends = [star_from(n, west), star_to(east, n + 1)]
    return edge_list(n + 2, ends, source=n, sink=n + 1, undirected=_chains(streets, n_junctions))


def dispatch(
    *, seed: int, requests: int = 50_000, vehicles: int = 50_000, within_reach: float = 4.0, most: int = 1
) -> EdgeList:
    """Requests and vehicles at random points, each request joined to all vehicles within a radius, to be assigned.

    The radius gives `within_reach` vehicles on average. The source (``n - 2``) offers each request's amount and the
    sink (``n - 1``) takes each vehicle's, both uniform on ``1 .. most``, which is what fits over any other edge.
    """
    require(min(requests, vehicles) >= 1, f"a request and a vehicle are needed: {requests}, {vehicles}")
    require(0 < within_reach <= vehicles, f"within_reach must be positive and at most the vehicles: {within_reach}")
    require(most >= 1, f"most must be positive: {most}")
    rng = np.random.default_rng(seed)
    n = requests + vehicles
    lower, upper = pairs_within(rng.random((n, 2)), float(np.sqrt(within_reach / (np.pi * vehicles))))
    apart = (lower < requests) & (upper >= requests)
    tail, head = lower[apart], upper[apart]
    offers = *star_from(n, np.arange(requests))[:2], draw_capacities(rng, 1, most, requests)
    takes = *star_to(np.arange(requests, n), n + 1)[:2], draw_capacities(rng, 1, most, vehicles)
    return edge_list(n + 2, [(tail, head, np.full_like(tail, most)), offers, takes], source=n, sink=n + 1)


@dataclass(frozen=True, slots=True)
class _Streets:
    """Columns, one row per street between two junctions."""

    start: Indices
    end: Indices
    length: Indices
    """Links of its chain, at least 1."""
    capacity: Indices


def _streets(rng: np.random.Generator, rows: int, columns: int, kept: float, mean_chain: float) -> _Streets:
    junction = np.arange(rows * columns, dtype=np.int64).reshape(rows, columns)
    start = np.concatenate([junction[:, :-1].ravel(), junction[:-1, :].ravel()])
    end = np.concatenate([junction[:, 1:].ravel(), junction[1:, :].ravel()])
    stays = rng.random(len(start)) < kept
    start, end = start[stays], end[stays]
    length = rng.geometric(1 / mean_chain, size=len(start)).astype(np.int64)
    capacity = rng.choice(LANE_CAPACITY, len(start)) * rng.integers(1, 4, size=len(start))
    return _Streets(start, end, length, capacity)


def _chains(streets: _Streets, n_junctions: int) -> Columns:
    """Every street as ``length`` links; the vertices between them are numbered after the junctions."""
    stop = np.cumsum(streets.length)
    first, last = stop - streets.length, stop - 1
    # Each link before link k made one new vertex, but for the first of each street.
    street = np.repeat(np.arange(len(stop)), streets.length)
    before = n_junctions + np.arange(len(street)) - street - 1
    tail, head = before.copy(), before + 1
    tail[first], head[last] = streets.start, streets.end
    return tail, head, np.repeat(streets.capacity, streets.length)


def _between_discs(points: NDArray[np.float64], links: Columns) -> EdgeList:
    n = len(points)
    inside = [_in_disc(points, centre) for centre in (SOURCE_DISC, SINK_DISC)]
    terminals = [star_from(n, inside[0]), star_to(inside[1], n + 1)]
    return edge_list(n + 2, terminals, source=n, sink=n + 1, undirected=links)


def _in_disc(points: NDArray[np.float64], centre: tuple[float, float]) -> Indices:
    distance = np.hypot(points[:, 0] - centre[0], points[:, 1] - centre[1])
    return np.flatnonzero(distance <= DISC_RADIUS).astype(np.int64)
