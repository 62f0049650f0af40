"""Matrix Market files and adjacency matrices, dense and sparse."""

import io
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from gpu_engine.errors import CapacityOverflow, InvalidNetwork, TooLarge
from gpu_engine.formats import Limits, from_matrix, read_adjacency, read_matrix_market, read_npy
from gpu_engine.types import INFINITE

MARKET = b"""%%MatrixMarket matrix coordinate real general
% a comment

3 3 3
1 2 1.5
  2 3 4

3 1 1e1
"""


def test_reads_entries_as_edges() -> None:
    edges = read_matrix_market(MARKET)
    assert edges.tail.tolist() == [0, 1, 2]
    assert edges.head.tolist() == [1, 2, 0]
    assert (edges.capacity.tolist(), edges.decimals) == ([15, 40, 100], 1)
    assert edges.undirected is False


def test_symmetric_entries_are_undirected_and_patterns_have_capacity_one() -> None:
    edges = read_matrix_market(b"%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 3\n")
    assert edges.undirected is True
    assert edges.capacity.tolist() == [1, 1]


@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
def test_reads_what_scipy_writes(symmetry: str) -> None:
    matrix = scipy.sparse.random(20, 20, density=0.2, rng=np.random.default_rng(2), format="coo")
    matrix.data = np.ceil(matrix.data * 100)
    if symmetry == "symmetric":
        matrix = scipy.sparse.coo_matrix(matrix.maximum(matrix.T))
    text = io.BytesIO()
    scipy.io.mmwrite(text, matrix.astype(np.int64), symmetry=symmetry)
    edges = read_matrix_market(text.getvalue())
    dense = np.zeros((20, 20))
    dense[edges.tail, edges.head] = edges.capacity
    if edges.undirected:
        dense[edges.head, edges.tail] = edges.capacity
    np.testing.assert_array_equal(dense, matrix.toarray())


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ((b"real", b"complex"), 1),
        ((b"general", b"hermitian"), 1),
        ((b"coordinate", b"array"), 1),
        ((b"%%", b"%"), 1),
        ((b"3 3 3", b"3 4 3"), 4),
        ((b"3 3 3", b"3 3"), 4),
        ((b"3 3 3", b"3 3 x"), 4),
        ((b"1 2 1.5", b"1 2"), 5),
        ((b"1 2 1.5", b"1 2 -1.5"), 5),
        ((b"1 2 1.5", b"1 2 nan"), 5),
        ((b"1 2 1.5", b"1 4 1.5"), 5),
        ((b"1 2 1.5", b"0 2 1.5"), 5),
        ((b"1 2 1.5", b"1.0 2 1.5"), 5),
        ((b"1 2 1.5", b"1 2\x001.5"), 5),
        ((b"3 1 1e1\n", b""), 7),
        ((b"3 1 1e1\n", b"3 1 1e1\n1 1 1\n"), 9),
    ],
)
def test_market_refused_with_the_line(change: tuple[bytes, bytes], line: int) -> None:
    with pytest.raises(InvalidNetwork) as refusal:
        read_matrix_market(MARKET.replace(*change, 1))
    assert refusal.value.where.lines == [line]


@pytest.mark.parametrize("word", [b"real", b"general"])
def test_a_refusal_quotes_little_of_a_long_banner(word: bytes) -> None:
    with pytest.raises(InvalidNetwork, match="only integer, real, pattern") as refusal:
        read_matrix_market(MARKET.replace(word, 100_000 * b"x"))
    assert len(refusal.value.message) < 200


def test_market_limits_and_overflow() -> None:
    with pytest.raises(TooLarge):
        read_matrix_market(MARKET, Limits(max_vertices=2))
    with pytest.raises(TooLarge):
        read_matrix_market(MARKET, Limits(max_edges=2))
    with pytest.raises(CapacityOverflow, match="line 5"):
        read_matrix_market(MARKET.replace(b"1.5", b"1e25"))
    for text in (b"", b"%%MatrixMarket matrix coordinate real general\n"):
        with pytest.raises(InvalidNetwork):
            read_matrix_market(text)


@pytest.mark.parametrize(
    "text", [b"0 1.5 0\n0 0 inf\n\n2 0 0\n", b"0,1.5, 0\r\n0,0,inf\r\n2,0,0", b"0 1.5 0\n0 0 Infinity\n2 0 0"]
)
def test_dense_text(text: bytes) -> None:
    edges = read_adjacency(text)
    assert edges.n_vertices == 3
    assert edges.tail.tolist() == [0, 1, 2]
    assert edges.head.tolist() == [1, 2, 0]
    assert (edges.capacity.tolist(), edges.decimals) == ([15, INFINITE, 20], 1)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (b"0 1\n0\n", [2]),
        (b"0 1\n0 0 0\n", [2]),
        (b"0 1\n\n0 x\n", [3]),
        (b"0 -1\n0 0\n", [1]),
        (b"", []),
        (b"0 1\n0 0\0\0", [2]),
    ],
)
def test_dense_text_refused(text: bytes, rows: list[int]) -> None:
    with pytest.raises(InvalidNetwork) as refusal:
        read_adjacency(text)
    assert refusal.value.where.lines == rows


DENSE = np.array([[0, 3, 0], [0, 0, 4], [5, 0, 0]])


@pytest.mark.parametrize(
    "matrix", [DENSE, DENSE.astype(float), scipy.sparse.csr_array(DENSE), scipy.sparse.csc_matrix(DENSE)]
)
def test_arrays_and_sparse_matrices(matrix: Any) -> None:
    edges = from_matrix(matrix)
    assert edges.tail.tolist() == [0, 1, 2]
    assert edges.head.tolist() == [1, 2, 0]
    assert edges.capacity.tolist() == [3, 4, 5]


def test_fractions_of_arrays_are_kept_exactly() -> None:
    edges = from_matrix(np.array([[0, 1.5], [0.25, 0]]))
    assert (edges.capacity.tolist(), edges.decimals) == ([150, 25], 2)


def test_npy() -> None:
    buffer = io.BytesIO()
    np.save(buffer, np.asfortranarray(DENSE))
    assert read_npy(buffer.getvalue()).capacity.tolist() == [3, 4, 5]
    for cut in range(0, len(buffer.getvalue()), 7):
        with pytest.raises(InvalidNetwork):
            read_npy(buffer.getvalue()[:cut])


def test_undirected_matrices_are_symmetric() -> None:
    edges = from_matrix(DENSE + DENSE.T, undirected=True)
    assert edges.tail.tolist() == [0, 0, 1]
    assert edges.capacity.tolist() == [3, 5, 4]
    assert edges.undirected is True
    with pytest.raises(InvalidNetwork, match="symmetric"):
        from_matrix(DENSE, undirected=True)
    with pytest.raises(InvalidNetwork, match="symmetric"):
        from_matrix(np.array([[0, 1], [2, 0]]), undirected=True)


@pytest.mark.parametrize("matrix", [np.zeros((2, 3)), np.zeros(4), np.array([[0, -1], [0, 0]]), [[1]]])
def test_matrices_refused(matrix: Any) -> None:
    with pytest.raises(InvalidNetwork):
        from_matrix(matrix)
