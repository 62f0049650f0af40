"""Columns beside a JSON text, as npz and Arrow: NumPy and pyarrow read back what was written."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gpu_engine.errors import Cancelled
from gpu_engine.formats import Part, arrow_columns, npz_columns
from gpu_engine.text.names import Names
from gpu_engine.text.texts import Texts
from gpu_engine.types import INFINITE
from service.worker.columns import STEP, AmountColumn, Column, FlagColumn, IntegerColumn, NameColumn, each, listed
from service.worker.file_writer import pieces
from service.worker.json_writer import dumps
from service.worker.result_writer import unless_cancelled

TEXT = b'{"version":1}'


@dataclass(frozen=True)
class Parted:
    """A column whose parts have so many rows."""

    values: Any
    kind: str
    step: int = 8
    table: str = "t"

    def count(self) -> int:
        return len(self.values)

    def parts(self) -> Iterator[Part]:
        for at in range(0, len(self.values), self.step):
            some = self.values[at : at + self.step]
            yield (
                Texts.of(some).copy()
                if self.kind == "text"
                else np.array(some, self.kind if self.kind != "bits" else bool)
            )


def npz_of(**columns: Parted) -> dict[str, NDArray[Any]]:
    return dict(np.load(io.BytesIO(b"".join(npz_columns(TEXT, columns)))))


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), max_size=30),
    st.lists(st.booleans(), max_size=30),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=30),
)
def test_columns_come_back_from_npz(words: list[str], flags: list[bool], integers: list[int]) -> None:
    found = npz_of(
        words=Parted(words, "text"),
        flags=Parted(flags, "bool"),
        bits=Parted(flags, "bits"),
        integers=Parted(integers, "int64"),
    )
    assert found["answer"].tobytes() == TEXT
    ends, raw = found["words.offsets"], found["words.utf8"].tobytes()
    assert [raw[ends[i] : ends[i + 1]].decode() for i in range(len(words))] == words
    assert len(ends) == len(words) + 1
    assert found["flags"].tolist() == flags
    assert [bool(found["bits"][i // 8] >> i % 8 & 1) for i in range(len(flags))] == flags
    assert len(found["bits"]) == (len(flags) + 7) // 8
    assert found["integers"].tolist() == integers


@pytest.mark.parametrize("bits", [7, 8, 15, 16, 31, 32, 63])
def test_integers_of_every_width_come_back(bits: int) -> None:
    for values in ([2**bits - 1], [-(2**bits)], [-(2**bits), 2**bits - 1, 0], [0, 2**bits] if bits < 63 else [0]):
        column = npz_of(integers=Parted(values, "int64"))["integers"]
        assert column.tolist() == values
        assert column.dtype == np.min_scalar_type(-max(max(values) + 1, -min(values))), "the narrowest signed integer"


def test_tables_of_arrow() -> None:
    columns = {
        "a.words": Parted(["x", "y"] * 9, "text", table="a"),
        "a.numbers": Parted(list(range(18)), "int64", table="a"),
        "b.on": Parted([True] * 3, "bits", table="b"),
    }
    content = b"".join(arrow_columns(TEXT, columns, {"decimals": "2"}))
    reader, tables = pa.BufferReader(content), []
    while reader.tell() < len(content):
        tables.append(pa.ipc.open_stream(reader).read_all())
    first, second = tables
    assert first.to_pydict() == {"words": ["x", "y"] * 9, "numbers": list(range(18))}
    assert first.schema.metadata == {b"table": b"a", b"answer": TEXT, b"decimals": b"2"}
    assert second.to_pydict() == {"on": [True] * 3}
    assert second.schema.metadata == {b"table": b"b"}
    bare = pa.ipc.open_stream(b"".join(arrow_columns(TEXT, {}, {}))).read_all()
    assert (bare.num_columns, bare.schema.metadata[b"answer"]) == (0, TEXT)


def test_what_shrinks_to_a_fourth_is_compressed() -> None:
    noise = np.random.default_rng(1).integers(-(2**62), 2**62, 9000).tolist()
    columns = {"same": Parted([7] * 9000, "int64", 5000), "noise": Parted(noise, "int64", 5000)}
    archive = np.load(io.BytesIO(b"".join(npz_columns(TEXT, columns))))
    assert {info.filename: info.compress_type for info in archive.zip.infolist()} == {
        "answer.npy": 0,
        "same.npy": 8,
        "noise.npy": 0,
    }


def columns_of_an_answer(count: int) -> dict[str, Column]:
    names = Names([f"v{i}" for i in range(count)], count, "label")
    rows = np.arange(count)
    return {
        "names": NameColumn(names, listed(rows[::-1].copy())),
        "amounts": AmountColumn(rows * 3 - 7, 2, each(rows)),
        "flags": FlagColumn(rows % 3 == 0),
        "integers": IntegerColumn(rows**2),
    }


@pytest.mark.parametrize("count", [0, 1, STEP, 2 * STEP + 3])
def test_columns_of_an_answer_in_parts(count: int) -> None:
    found = dict(np.load(io.BytesIO(b"".join(pieces("npz", {"version": 1, **columns_of_an_answer(count)}, 2)))))
    rows = np.arange(count)
    assert found["amounts"].tolist() == (rows * 3 - 7).tolist()
    assert found["flags"].tolist() == (rows % 3 == 0).tolist()
    assert found["integers"].tolist() == (rows**2).tolist()
    assert found["names.utf8"].tobytes() == "".join(f"v{i}" for i in range(count)[::-1]).encode()
    assert found["answer"].tobytes() == b'{"version":1,"decimals":2}'


def test_flags_are_json() -> None:
    assert dumps({"on": FlagColumn(np.array([True, False])), "none": FlagColumn(np.zeros(0, bool))}) == (
        '{"on":[true,false],"none":[]}'
    )


def test_an_unlimited_amount_is_no_number() -> None:
    column = AmountColumn(np.array([5, INFINITE]), 0, each(np.zeros(2)))
    assert [part.tolist() for part in column.parts()] == [[5, 0]]  # type: ignore[union-attr]  # an array
    assert b"".join(column.texts()) == b'5,"inf"'


def test_a_cancel_ends_the_writing() -> None:
    class Stopped:
        cancelled = True

    with pytest.raises(Cancelled):
        list(unless_cancelled(pieces("npz", {"version": 1, **columns_of_an_answer(3)}, 0), Stopped()))  # type: ignore[arg-type]  # all that is looked at
