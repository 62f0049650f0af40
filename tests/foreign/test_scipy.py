"""SciPy's own tests of `maximum_flow`, with the service in its place.

pytest finds those that are imported here. Each of the others stands in `NOT_APPLICABLE` with the reason.
"""

from collections.abc import Iterator, Mapping

import pytest
from headrace import Client
from scipy.sparse.csgraph.tests import test_flow
from scipy.sparse.csgraph.tests.test_flow import (
    test_add_reverse_edges_large_graph,
    test_backwards_flow,
    test_bottle_neck_graph,
    test_disconnected_graph,
    test_example_from_clrs_chapter_26_1,
    test_raises_on_non_square_input,
    test_raises_when_sink_is_out_of_bounds,
    test_raises_when_source_is_out_of_bounds,
    test_raises_when_source_is_sink,
    test_return_type,
    test_simple_graph,
)

from service.host.sandbox import serving
from tests.foreign.scipy_flow import SciPyFlow

THEIRS = (
    test_add_reverse_edges_large_graph,
    test_backwards_flow,
    test_bottle_neck_graph,
    test_disconnected_graph,
    test_example_from_clrs_chapter_26_1,
    test_raises_on_non_square_input,
    test_raises_when_sink_is_out_of_bounds,
    test_raises_when_source_is_out_of_bounds,
    test_raises_when_source_is_sink,
    test_return_type,
    test_simple_graph,
)
NOT_APPLICABLE: Mapping[str, str] = {
    "test_raises_on_dense_input": "the client takes a square array",
    "test_raises_on_csc_input": "the client takes every kind of sparse matrix",
    "test_raises_on_floating_point_input": "the service takes decimals",
    "test_add_reverse_edges": "a function within SciPy's solver",
    "test_make_edge_pointers": "a function within SciPy's solver",
    "test_make_tails": "a function within SciPy's solver",
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("scipy")
    with serving(folder, folder / "serve.log") as url, Client(url) as client:
        yield client


@pytest.fixture(autouse=True)
def ours_in_place_of_theirs(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_flow, "maximum_flow", SciPyFlow(client, "scipy").maximum_flow)


def test_none_is_forgotten() -> None:
    """A later SciPy may bring more tests, or drop some that are listed here."""
    names = {name for name in vars(test_flow) if name.startswith("test_")}
    assert names == {test.__name__ for test in THEIRS} | set(NOT_APPLICABLE)
