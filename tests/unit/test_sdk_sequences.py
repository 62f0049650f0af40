"""Columns of the client: sequences of exact values, and arrays."""

import io
import json
import pickle
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from headrace import AmountColumn, Column, Names, Side, UnexpectedAnswer, Update
from headrace._amounts import INFINITY
from headrace._bodies import json_body
from headrace._calls import named
from headrace._files_of_columns import read_npz
from headrace._flows import Cut
from headrace._sequences import SHOWN, Texts

WORDS = ["a", "", 'é"\n', "long one"]


def texts(words: list[str]) -> Texts:
    raw = [word.encode() for word in words]
    return Texts(np.frombuffer(b"".join(raw), np.uint8), np.cumsum([0, *map(len, raw)]))


@pytest.mark.parametrize(
    "column", [Names.of(WORDS), Names.of(texts(WORDS)), pickle.loads(pickle.dumps(Names.of(texts(WORDS))))]
)
def test_names_are_a_sequence(column: Names[Any]) -> None:
    assert list(column) == WORDS
    assert column == WORDS == column
    assert column == tuple(WORDS)
    assert column != WORDS[:-1]
    assert column != [*WORDS[:-1], "x"]
    assert column != "a"
    assert (column[0], column[-1], len(column), column[1:3]) == ("a", "long one", 4, WORDS[1:3])
    assert "a" in column
    assert "b" not in column
    assert np.asarray(column).tolist() == WORDS
    assert repr(column) == repr(tuple(WORDS))
    with pytest.raises(IndexError):
        column[4]


def test_numbers_are_python_s_own() -> None:
    column: Names[int] = Names.of(np.array([3, 2**40], np.int64))
    assert [type(name) for name in column] == [int, int]
    assert json.dumps(list(column)) == "[3, 1099511627776]"
    assert (2**40 in column, 4 in column, np.asarray(column).dtype) == (True, False, np.int64)
    assert repr(Names.of(list(range(100)))) == f"({', '.join(map(str, range(SHOWN)))}, ... 100 in all)"


def test_labels_are_made_when_they_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    decoded = Texts.decoded
    monkeypatch.setattr(Texts, "decoded", lambda self, rows=None: made.append(rows) or decoded(self, rows))  # type: ignore[func-returns-value]  # None is wanted
    side: Side[str] = Side.of_mask(np.array([True, False, True, False]), texts(WORDS))
    assert (len(side), made) == (2, [])
    assert list(side) == ["a", 'é"\n']
    assert side[1] == 'é"\n'
    assert len(made) == 1
    again = pickle.loads(pickle.dumps(side))
    assert (again, again.mask.tolist()) == (side, [True, False, True, False])


def test_amounts_are_exact() -> None:
    column = AmountColumn(np.array([25, 30, -1, 0]), 1, np.array([False, False, False, True]))
    assert list(column) == [Decimal("2.5"), 3, Decimal("-0.1"), INFINITY]
    assert list(map(type, column)) == [Decimal, int, Decimal, Decimal]
    assert np.asarray(column).tolist() == [2.5, 3.0, -0.1, np.inf]
    assert column[:2] == [Decimal("2.5"), 3]
    assert np.asarray(column[1:2]).tolist() == [3]
    assert np.asarray(column[1:2]).dtype == np.int64
    narrow = AmountColumn.of(np.array([100, 27], np.int8), 9)
    assert list(narrow) == [Decimal("0.0000001"), Decimal("0.000000027")]
    assert np.asarray(narrow).tolist() == [1e-7, 2.7e-8], "no narrow integer has overflowed"
    largest = AmountColumn(np.array([2**60 + 1]), 9)
    with localcontext() as context:
        context.prec = 3
        assert list(largest) == [Decimal("1152921504.606846977")], "whatever the caller's context is"


def test_amounts_of_json_are_exact() -> None:
    received = [3, Decimal("2.25"), "inf", Decimal("1152921504606846975.123456789")]
    column = AmountColumn.of(received, 0)
    assert list(column) == [3, Decimal("2.25"), INFINITY, received[3]]
    assert (column.decimals, column.units.tolist()[0]) == (9, 3_000_000_000)
    assert AmountColumn.of([1, Decimal("0.5")], 0).units.dtype == np.int64
    assert list(AmountColumn.of(None, 0)) == []
    for wrong in (True, "x", None, 0.5):
        with pytest.raises(ValueError, match="no amount"):
            AmountColumn.of([wrong], 0)


def test_a_cut_in_json_has_no_mask() -> None:
    cut = Cut.from_json({"value": 1, "edges": [0], "pays": [1], "source_side": [0], "sink_side": [1]})
    assert (cut.source_side, cut.sink_side) == ((0,), (1,))
    with pytest.raises(UnexpectedAnswer, match="lists of names"):
        _ = cut.mask


def archive(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


SAID = np.frombuffer(b'{"value": 1.5, "paths": {"of": 2}}', np.uint8)


def test_an_archive_becomes_the_body_of_the_answer() -> None:
    names = {"flow.edges.utf8": np.frombuffer(b"abc", np.uint8), "flow.edges.offsets": np.array([0, 1, 3])}
    body = read_npz(archive(answer=SAID, **names, **{"paths.offsets": np.array([0, 2])}))
    assert body["value"] == Decimal("1.5")
    assert Names.of(body["flow"]["edges"]) == ["a", "bc"]
    assert (body["paths"]["of"], body["paths"]["offsets"].tolist()) == (2, [0, 2])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK",
        archive(answer=SAID)[:-30],
        archive(flow=SAID),
        archive(answer=SAID[:-1]),
        archive(answer=SAID, **{"flow.edges.utf8": SAID}),
        archive(answer=np.frombuffer(b"[]", np.uint8), flow=SAID),
        archive(answer=SAID, **{"value.of": SAID}),
        b"\x93NUMPY" + bytes(20),
    ],
)
def test_what_is_no_answer_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="npz"):
        read_npz(content)


@pytest.mark.filterwarnings("ignore")  # of NumPy and zipfile, about headers that are odd and names that are there twice
@pytest.mark.parametrize("flipped", [0xFF, 0x01, 0x80])
def test_a_damaged_archive_is_read_or_refused(flipped: int) -> None:
    """Whatever the libraries raise for it: so a broken proxy gets a program the error that it looks out for."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, answer=SAID, flow=np.arange(50))
    whole, refused = buffer.getvalue(), 0
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= flipped
        try:
            read_npz(bytes(damaged))
        except ValueError:
            refused += 1
    assert refused > len(whole) / 2


def test_slices_are_columns() -> None:
    column: Column[bool] = Column(np.array([True, False, True]))
    assert column[1:] == [False, True]
    assert [type(flag) for flag in column] == [bool] * 3


def test_columns_of_an_answer_may_be_sent_back() -> None:
    """As in: close the first edges of a cut."""
    edges: Names[int] = Names.of([60, 67, 225])
    assert Update(edges=edges[:2], op="close").as_json() == {"edges": [60, 67], "op": "close"}
    names: Names[str] = Names.of(["a", "b"])
    amounts = AmountColumn.of(np.array([150, 200]), 2)
    sent = json_body(Update(edges=names, set=amounts).as_json()).data
    assert isinstance(sent, bytes)
    assert json.loads(sent) == {"edges": ["a", "b"], "set": [1.5, 2]}
    assert Update(edges=range(3), op="reopen").as_json()["edges"] == [0, 1, 2]


@pytest.mark.parametrize("column", [Names.of(["a", "b"]), AmountColumn.of([1, 2], 0)])
@pytest.mark.parametrize("rows", [[0, 1], np.array([True, False]), (0, 1), 1.5, "a", None])
def test_what_picks_rows_of_a_column(column: Any, rows: Any) -> None:
    with pytest.raises(TypeError, match=r"for a list or a mask of rows use numpy\.asarray\(column\)\[rows\]"):
        column[rows]
    for row in (2, -3, np.int64(7)):
        with pytest.raises(IndexError, match=f"there is no row {row} in a column of 2 rows"):
            column[row]
    assert column[np.int64(1)] == column[np.array(1)] == column[-1]
    assert json.dumps(list(column)) in ('["a", "b"]', "[1, 2]")


def test_a_vertex_as_numpy_computes_it_is_one() -> None:
    """An array without an axis."""
    for given, sent in ((np.array(3), [3]), (np.array("a"), ["a"]), (np.int64(3), [3])):
        assert named(given, "supply") == sent  # type: ignore[arg-type]  # no axis, which the types cannot say
