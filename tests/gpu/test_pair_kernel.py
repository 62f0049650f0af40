"""Many pairs on a device: the values that the host has, and nothing left behind."""

import numpy as np
import pytest

from gpu_engine.control import Control
from gpu_engine.errors import Cancelled, OutOfMemory, SourceIsSink
from gpu_engine.generators import generate
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.pairs.solver import PairSolver
from gpu_engine.select import missing_device
from tests.random_networks import random_network

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(bool(missing_device()), reason="no CUDA device"),
    pytest.mark.filterwarnings("default"),
]

ENOUGH = 1 << 30
SEEDS_A_CASE = 50


def check(edges: EdgeList, rng: np.random.Generator, count: int, nbytes: int = ENOUGH) -> int:
    """Ask for pairs twice; returns how many the host had to solve."""
    from gpu_engine.cuda.pairs import DeviceSeat

    n = edges.n_vertices
    sources = rng.integers(0, n, count)
    sinks = (sources + rng.integers(1, n, count)) % n
    sources, sinks = sources.astype(np.int32), sinks.astype(np.int32)
    solver = PairSolver.of(Network(edges), np.unique(np.concatenate((sources, sinks))))
    host = solver.seat()
    wanted = host.values(sources, sinks, Control()).tolist()
    seat = DeviceSeat(solver, host, nbytes)
    for _ in range(2):  # the first round leaves nothing behind
        assert seat.values(sources, sinks, Control()).tolist() == wanted
    return seat.left


@pytest.mark.parametrize("first", range(0, 400, SEEDS_A_CASE))
def test_values_of_the_host(first: int) -> None:
    for seed in range(first, first + SEEDS_A_CASE):
        rng = np.random.default_rng(seed)
        left = check(random_network(seed, 40), rng, int(rng.integers(1, 60)))
        assert left == 0, f"seed {seed}"


@pytest.mark.parametrize(
    ("family", "options"),
    [("genrmf-wide", {"a": 6}), ("rmat", {"scale": 10}), ("delaunay", {"n_vertices": 2000}), ("road", {})],
)
def test_larger_networks(family: str, options: dict[str, int]) -> None:
    try:
        edges = generate(family, seed=3, **options)
    except (TypeError, ValueError) as error:
        pytest.fail(f"{family}: {error}")
    check(edges, np.random.default_rng(1), 300)


def test_capacities_of_more_than_32_bits() -> None:
    rng = np.random.default_rng(5)
    edges = generate("genrmf-wide", seed=3, a=5)
    wide = EdgeList(edges.n_vertices, edges.tail, edges.head, edges.capacity << 30, edges.undirected)
    check(wide, rng, 100)


def test_one_block_is_enough() -> None:
    from gpu_engine.cuda.launch.pairs import warp_words
    from gpu_engine.cuda.pairs import DeviceSeat, seat_nbytes

    edges = generate("genrmf-wide", seed=3, a=5)
    network = Network(edges)
    n, arcs = network.n_vertices, network.n_arcs
    check(edges, np.random.default_rng(6), 40, seat_nbytes(n, arcs, 4))
    solver = PairSolver.of(network, np.arange(n, dtype=np.int32))
    with pytest.raises(OutOfMemory, match="hold no search"):
        DeviceSeat(solver, solver.seat(), seat_nbytes(n, arcs, 4) - 8 * warp_words(n, arcs))


def test_a_vertex_is_not_both_ends() -> None:
    from gpu_engine.cuda.pairs import DeviceSeat

    solver = PairSolver.of(Network(generate("genrmf-wide", seed=3, a=4)), np.arange(4, dtype=np.int32))
    seat = DeviceSeat(solver, solver.seat(), ENOUGH)
    with pytest.raises(SourceIsSink):
        seat.values(np.array([1, 2], np.int32), np.array([0, 2], np.int32), Control())


def test_a_cancel_ends_it() -> None:
    from gpu_engine.cuda.pairs import DeviceSeat

    edges = generate("rmat", seed=3, scale=14)
    vertices = np.arange(edges.n_vertices, dtype=np.int32)
    solver = PairSolver.of(Network(edges), vertices)
    seat = DeviceSeat(solver, solver.seat(), ENOUGH)
    control = Control()
    control.cancel()
    with pytest.raises(Cancelled):
        seat.values(np.repeat(vertices, 8), np.roll(np.repeat(vertices, 8), 9), control)
