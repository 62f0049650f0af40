"""SciPy's own tests of `maximum_flow`, with `headrace.csgraph.maximum_flow` in its place.

pytest finds those that are imported here. Each of the others stands in `NOT_APPLICABLE` with the reason.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from headrace import Client
from headrace.csgraph import maximum_flow
from scipy.sparse import csgraph
from scipy.sparse.csgraph.tests import test_flow
from scipy.sparse.csgraph.tests.test_flow import (
    test_add_reverse_edges_large_graph,
    test_backwards_flow,
    test_bottle_neck_graph,
    test_disconnected_graph,
    test_example_from_clrs_chapter_26_1,
    test_raises_on_dense_input,
    test_raises_on_non_square_input,
    test_raises_when_sink_is_out_of_bounds,
    test_raises_when_source_is_out_of_bounds,
    test_raises_when_source_is_sink,
    test_return_type,
    test_simple_graph,
)

THEIRS = (
    test_add_reverse_edges_large_graph,
    test_backwards_flow,
    test_bottle_neck_graph,
    test_disconnected_graph,
    test_example_from_clrs_chapter_26_1,
    test_raises_on_dense_input,
    test_raises_on_non_square_input,
    test_raises_when_sink_is_out_of_bounds,
    test_raises_when_source_is_out_of_bounds,
    test_raises_when_source_is_sink,
    test_return_type,
    test_simple_graph,
)
NOT_APPLICABLE: Mapping[str, str] = {
    "test_raises_on_csc_input": "ours takes every kind of sparse matrix",
    "test_raises_on_floating_point_input": "ours takes fractions, exact to nine places",
    "test_add_reverse_edges": "a function within SciPy's solver",
    "test_make_edge_pointers": "a function within SciPy's solver",
    "test_make_tails": "a function within SciPy's solver",
}


@pytest.fixture(autouse=True)
def ours_in_place_of_theirs(service_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_URL", service_url)
    monkeypatch.setattr(test_flow, "maximum_flow", maximum_flow)


def test_none_is_forgotten() -> None:
    """A later SciPy may bring more tests, or drop some that are listed here."""
    names = {name for name in vars(test_flow) if name.startswith("test_")}
    assert names == {test.__name__ for test in THEIRS} | set(NOT_APPLICABLE)


@pytest.mark.parametrize("seed", range(8))
def test_random_matrices(seed: int) -> None:
    """Values are SciPy's; the flow is one that the matrix lets through, and it is antisymmetric."""
    random = np.random.default_rng(seed)
    matrix = sp.random_array((12, 12), density=0.3, rng=random, data_sampler=lambda size: random.integers(1, 50, size))
    matrix = matrix.tocsr().astype(np.int32)
    ours, theirs = maximum_flow(matrix, 0, 11), csgraph.maximum_flow(matrix, 0, 11)
    flow = ours.flow.toarray()
    assert ours.flow_value == theirs.flow_value
    assert ours.flow.dtype == np.int64
    assert (flow == -flow.T).all()
    assert (flow <= matrix.toarray()).all()
    assert flow.sum(axis=1).tolist() == [ours.flow_value, *[0] * 10, -ours.flow_value]


def test_amounts_that_scipy_has_not() -> None:
    """Beyond 32 bits SciPy's own overflow; fractions it refuses."""
    wide = sp.csr_array(([2**40, 2**41], ([0, 1], [1, 2])), shape=(3, 3))
    assert maximum_flow(wide, 0, 2).flow_value == 2**40
    tenths = maximum_flow(sp.csr_array(([0.1, 0.25], ([0, 1], [1, 2])), shape=(3, 3)), 0, 2)
    assert tenths.flow_value == 0.1
    assert tenths.flow[0, 1] == 0.1
    assert maximum_flow(wide, 1, 0).flow.nnz == 0


def test_short_floats_are_the_decimals_that_they_show() -> None:
    matrix = sp.csr_array(np.array([[0, 0.1], [0, 0]], np.float32))
    assert maximum_flow(matrix, 0, 1).flow_value == 0.1


def test_entries_that_stand_twice_are_two_edges() -> None:
    twice = sp.coo_array(([2, 3], ([0, 0], [1, 1])), shape=(2, 2))
    found = maximum_flow(twice, 0, 1)
    assert (found.flow_value, found.flow[0, 1]) == (5, 5)


def test_a_matrix_that_is_asked_about_again_is_in_the_service(service_url: str) -> None:
    matrix = sp.csr_array(([7], ([0], [1])), shape=(2, 2))
    maximum_flow(matrix, 0, 1)
    with Client(service_url) as client:
        before = {graph.name: graph.updated_at for graph in client.graphs()}
        matrix.data[0] = 8  # in place: it counts in the next call
        assert maximum_flow(matrix, 0, 1).flow_value == 8
        matrix.data[0] = 7
        maximum_flow(matrix, 0, 1)
        after = {graph.name: graph.updated_at for graph in client.graphs()}
    assert before.items() <= after.items()
    assert all(name.startswith("csgraph-") for name in after)


@pytest.mark.parametrize(
    ("matrix", "method", "error"),
    [([[0, 1], [0, 0]], "dinic", TypeError), (sp.csr_array(np.eye(2)), "simplex", ValueError)],
)
def test_mistakes(matrix: Any, method: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        maximum_flow(matrix, 0, 1, method=method)
