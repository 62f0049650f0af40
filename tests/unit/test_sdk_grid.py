"""Images as graphs: the edges are those of a loop over pixels, and the mask is a minimum of the energy."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from headrace import Grid, InvalidInput
from headrace._bodies import graph_body
from headrace._flows import MaxFlowResult
from numpy.typing import NDArray
from scipy.sparse.csgraph import maximum_flow

RNG = np.random.default_rng(5)
SHAPES = [((4, 5), 4), ((4, 5), 8), ((1, 6), 8), ((3, 2, 4), 6), ((3, 2, 4), 26), ((1, 1), 4)]


def neighbours(shape: tuple[int, ...], neighbourhood: int) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Each pair of neighbours, the earlier pixel first, by a loop."""
    along_axes = neighbourhood == 2 * len(shape)
    found = set()
    for p in np.ndindex(shape):
        for step in product((-1, 0, 1), repeat=len(shape)):
            q = tuple(a + b for a, b in zip(p, step, strict=True))
            inside = all(0 <= a < n for a, n in zip(q, shape, strict=True))
            if inside and p < q and (not along_axes or sum(map(abs, step)) == 1):
                found.add((p, q))
    return found


@pytest.mark.parametrize(("shape", "neighbourhood"), SHAPES)
@pytest.mark.parametrize("kind", ["number", "by pixel", "by direction"])
def test_the_edges_of_an_image(shape: tuple[int, ...], neighbourhood: int, kind: str) -> None:
    source, sink = RNG.integers(0, 50, (2, *shape))
    directions = Grid(source, sink, 1, neighbourhood=neighbourhood).directions
    links = {
        "number": 7,
        "by pixel": RNG.integers(1, 9, shape),
        "by direction": RNG.integers(1, 9, (len(directions), *shape)),
    }
    grid = Grid(source, sink, links[kind], neighbourhood=neighbourhood)
    columns: dict[str, Any] = dict(grid.columns)
    n = source.size
    assert (columns["n_vertices"], columns["source"], columns["sink"]) == (n + 2, n, n + 1)
    edges = list(zip(*(columns[name].tolist() for name in ("tail", "head", "capacity", "undirected")), strict=True))
    assert edges[:n] == [(n, i, c, False) for i, c in enumerate(source.ravel().tolist())]
    assert edges[n : 2 * n] == [(i, n + 1, c, False) for i, c in enumerate(sink.ravel().tolist())]
    expected = set()
    for p, q in neighbours(shape, neighbourhood):
        step = tuple(b - a for a, b in zip(p, q, strict=True))
        given = np.broadcast_to(np.asarray(links[kind]), (len(directions), *shape))
        weight = given[(directions.index(step), *p)]
        expected.add((int(np.ravel_multi_index(p, shape)), int(np.ravel_multi_index(q, shape)), int(weight), True))
    assert set(edges[2 * n :]) == expected
    assert len(edges) == 2 * n + len(expected)
    assert graph_body(grid, {}).media_type == "application/x-npz"


def energy(mask: NDArray[np.bool_], grid: Grid) -> int:
    """What the edges from True to False cost, over the columns alone."""
    columns: dict[str, Any] = dict(grid.columns)
    side = np.append(mask.ravel(), [True, False])
    tail, head = side[columns["tail"]], side[columns["head"]]
    cut = (tail & ~head) | (columns["undirected"] & head & ~tail)
    return int(columns["capacity"][cut].sum())


def answered(grid: Grid) -> tuple[int, MaxFlowResult]:
    """The value by SciPy, and an answer with its source side, as the service would give it."""
    columns: dict[str, Any] = dict(grid.columns)
    tail, head, capacity = (columns[name].astype(np.int32) for name in ("tail", "head", "capacity"))
    both = columns["undirected"]
    ends = np.r_[tail, head[both]], np.r_[head, tail[both]]
    n = columns["n_vertices"]
    matrix = sp.csr_array((np.r_[capacity, capacity[both]], ends), shape=(n, n), dtype=np.int32)
    found = maximum_flow(matrix, n - 2, n - 1)
    residual = sp.csr_array(matrix - found.flow)
    residual.eliminate_zeros()
    reached = np.zeros(n, bool)
    reached[sp.csgraph.breadth_first_order(residual, n - 2, return_predecessors=False)] = True
    body = {
        "graph": "g",
        "version": 1,
        "value": int(found.flow_value),
        "mode": "cold",
        "engine": "scipy",
        "decimals": 0,
        "certificate": {"valid": True, "value": 0, "flow_across_cut": 0},
        "cut": {"value": 0, "edges": [], "n_vertices": n, "source_side": np.packbits(reached, bitorder="little")},
    }
    return int(found.flow_value), MaxFlowResult.from_json(body)


@pytest.mark.parametrize(("shape", "neighbourhood"), SHAPES)
def test_the_mask_is_a_minimum(shape: tuple[int, ...], neighbourhood: int) -> None:
    grid = Grid(*RNG.integers(0, 9, (2, *shape)), links=3, neighbourhood=neighbourhood)
    value, answer = answered(grid)
    mask = grid.mask(answer)
    assert (mask.shape, mask.dtype) == (shape, np.bool_)
    assert answer.cut is not None
    assert np.array_equal(grid.mask(answer.cut), mask)
    assert energy(mask, grid) == value
    if np.prod(shape) <= 12:
        assert value == min(
            energy(np.reshape(flags, shape), grid) for flags in product((True, False), repeat=int(np.prod(shape)))
        )


def test_an_update_by_arrays_makes_the_same_graph() -> None:
    shape = (4, 5)
    old, new = RNG.integers(0, 50, (2, 3, *shape))
    grid, wanted = Grid(old[0], old[1], old[2]), Grid(new[0], new[1], new[2])
    update = grid.update(source=new[0], sink=new[1], links=new[2])
    capacity: Any = dict(grid.columns)["capacity"].copy()
    capacity[update.edges] = update.set
    assert np.array_equal(capacity, dict(wanted.columns)["capacity"])  # type: ignore[arg-type]  # an array it is


def test_an_update_of_some_pixels() -> None:
    grid = Grid(np.zeros((3, 3)), np.zeros((3, 3)), 1)
    where = np.zeros((3, 3), bool)
    where[1, 1] = True
    columns: dict[str, Any] = dict(grid.columns)
    update = grid.update(source=np.full((3, 3), 5), links=2.5, where=where)
    pairs = list(zip(columns["tail"][update.edges].tolist(), columns["head"][update.edges].tolist(), strict=True))
    assert sorted(pairs) == [(4, 5), (4, 7), (9, 4)]
    assert np.asarray(update.set).tolist() == [5.0, 2.5, 2.5]


def test_amounts_stay_what_they_are() -> None:
    narrow = Grid(np.full((2, 2), 0.1, np.float32), np.zeros((2, 2), np.uint8), 1)
    assert set(dict(narrow.columns)["capacity"].tolist()) == {0.1, 0.0, 1.0}  # type: ignore[attr-defined]  # an array
    bytes_of = Grid(np.full((2, 2), 200, np.uint8), np.full((2, 2), 100, np.uint8), 100)
    assert dict(bytes_of.columns)["capacity"].dtype == np.int64  # type: ignore[attr-defined]  # an array


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (((4,), (4,), 1), "two or three dimensions"),
        (((0, 4), (0, 4), 1), "some pixels"),
        (((2, 3), (3, 2), 1), r"sink has the shape \(3, 2\), the image \(2, 3\)"),
        (((2, 3), (2, 3), np.ones((3, 2, 3))), r"or \(2, 2, 3\), not \(3, 2, 3\)"),
        (((2, 3), (2, 3), "1"), "links is a number|weights are numbers"),
    ],
)
def test_what_is_no_image_is_refused(arguments: Any, said: str) -> None:
    source, sink, links = arguments
    with pytest.raises(InvalidInput, match=said):
        Grid(np.zeros(source), np.zeros(sink), links)


def test_other_refusals() -> None:
    image = np.zeros((2, 3))
    grid = Grid(image, image, 1)
    for neighbourhood in (6, 5):
        with pytest.raises(InvalidInput, match="4 or 8"):
            Grid(image, image, 1, neighbourhood=neighbourhood)
    with pytest.raises(InvalidInput, match="rounded"):
        Grid(image + 0.5, np.full((2, 3), 2**60), 1)
    with pytest.raises(InvalidInput, match="below 2"):
        Grid(np.full((2, 3), 2**63, np.uint64), image.astype(int), 1)
    with pytest.raises(InvalidInput, match="sets source="):
        grid.update()
    with pytest.raises(InvalidInput, match="where has the shape"):
        grid.update(source=image, where=np.ones(3, bool))
    _, answer = answered(Grid(np.ones((2, 2), int), np.ones((2, 2), int), 1))
    with pytest.raises(InvalidInput, match="6 vertices, this image has 6 pixels"):
        grid.mask(answer)


def test_what_is_masked_has_no_weight() -> None:
    image = np.ones((2, 3), int)
    masked = np.ma.array(image, mask=[[True, False, True], [False, False, False]])
    for arguments in ((masked, image, 1), (image, masked, 1), (image, image, masked)):
        with pytest.raises(InvalidInput, match="is a masked array, of which 2 of 6 have no value"):
            Grid(*arguments)
    grid = Grid(np.ma.array(image), image, 1)  # nothing of it is masked
    with pytest.raises(InvalidInput, match="where is a masked array"):
        grid.update(source=image, where=masked > 0)


@pytest.mark.parametrize("said", [{"capacity": 3}, {"undirected": True}, {"tail": 0}])
def test_what_an_image_says_itself_is_not_said_again(said: dict[str, Any]) -> None:
    image = Grid(np.ones((3, 3)), np.ones((3, 3)), links=1)
    with pytest.raises(InvalidInput, match=f"has its own {next(iter(said))}"):
        graph_body(image, said)  # type: ignore[arg-type]  # keywords of a caller
