"""Names in columns: as the caller wrote them, found again, and written as JSON without a Python object for each."""

import json
import threading
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_engine.errors import InvalidNetwork
from gpu_engine.formats import pack, unpack
from gpu_engine.formats._names import as_arrow
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.units import write_units
from gpu_engine.text.index import TextIndex
from gpu_engine.text.json_text import write_amounts, write_integers, write_texts
from gpu_engine.text.names import Names
from gpu_engine.text.texts import STEP, Texts
from gpu_engine.types import INFINITE
from service.worker import json_writer
from service.worker.answers import labels
from service.worker.columns import STEP as WRITTEN_AT_ONCE
from service.worker.columns import listed, marked

PROPER = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
LOWEST, HIGHEST = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)
WAIT_S = 0.35
"""Ten times what a thread waits beside an answer of millions of rows here; of Python lists it waited 0.8 s."""


def column(count: int) -> Texts:
    """``count`` different names of eight bytes, made without a Python string each."""
    digits = (np.arange(count)[:, None] // 10 ** np.arange(7, -1, -1) % 10 + ord("0")).astype(np.uint8)
    return Texts(digits.ravel(), np.arange(0, 8 * count + 1, 8))


@settings(deadline=None)  # the first example loads the kernels
@given(st.lists(PROPER, max_size=30))
def test_a_column_is_a_sequence_of_its_strings(strings: list[str]) -> None:
    texts = Texts.of(strings)
    assert list(texts) == strings
    assert texts == strings
    assert [texts[row] for row in range(-len(texts), 0)] == strings
    assert texts[1:3] == strings[1:3]
    assert texts[1:].copy() == strings[1:]
    assert as_arrow(texts) == pa.array(strings, pa.large_string())
    with pytest.raises(IndexError):
        texts[len(strings)]


def test_more_than_a_step() -> None:
    count = 2 * STEP + 3
    assert list(column(count)) == [f"{row:08d}" for row in range(count)]
    assert Texts.of(f"{row:08d}" for row in range(count)) == column(count)


@settings(deadline=None)  # the first example loads the kernels
@given(st.lists(PROPER, max_size=30), st.data())
def test_written_texts_are_json(strings: list[str], data: st.DataObject) -> None:
    texts = Texts.of(strings)
    rows = data.draw(st.lists(st.integers(0, len(strings) - 1), max_size=30)) if strings else []
    written = write_texts(texts, np.array(rows, np.int64))
    assert json.loads(b"[" + written + b"]") == [strings[row] for row in rows]


@settings(deadline=None)  # the first example loads the kernels
@given(st.lists(st.integers(LOWEST, HIGHEST), max_size=30), st.integers(0, 9))
def test_written_amounts_are_those_of_one_by_one(units: list[int], decimals: int) -> None:
    units += [0, 1, -1, INFINITE, 10**decimals, -(10**decimals)]
    written = write_amounts(np.array(units), decimals)
    assert written.decode().split(",") == [write_units(amount, decimals) for amount in units]
    assert json.loads(b"[" + write_integers(np.array(units)) + b"]") == units


@settings(deadline=None)  # the first example loads the kernels
@given(st.lists(PROPER, max_size=40), st.lists(PROPER, max_size=10))
def test_an_index_finds_the_first_of_each(strings: list[str], others: list[str]) -> None:
    index = TextIndex(Texts.of(strings))
    first = {string: row for row, string in reversed(list(enumerate(strings)))}
    wanted = [*strings, *others]
    assert index.rows(Texts.of(wanted)).tolist() == [first.get(string, -1) for string in wanted]
    repeats = [row for row, string in enumerate(strings) if first[string] != row]
    assert (index.n_repeats, index.repeats) == (len(repeats), repeats[:10])


def test_names_that_repeat_are_refused_with_their_rows() -> None:
    with pytest.raises(InvalidNetwork, match="2 edge ids stand more than once") as refusal:
        Names(["a", "b", "a", "a"], 4, "edge id")
    assert refusal.value.rows == [2, 3]
    with pytest.raises(InvalidNetwork, match="3 vertex labels for 4 rows"):
        Names(["a", "b", "c"], 4, "vertex label")


def test_what_no_name_can_be_is_not_found() -> None:
    names = Names(["a", "7"], 2, "edge id")
    assert names.rows(["\ud800", "b", "a", 7]).tolist() == [-1, -1, 0, 1]  # type: ignore[list-item]
    assert names.of(np.array([1, 0])) == ["7", "a"]


def test_names_keep_no_larger_buffer_alive() -> None:
    """A column read from a body is a part of it."""
    whole = column(1000)
    names = Names(whole[10:20], 10, "edge id")
    assert names.nbytes == 80 + 88 + 80
    assert names.of(np.array([0])) == ["00000010"]


def test_packed_names_come_back_as_columns() -> None:
    ends = np.zeros(3, np.int32), np.ones(3, np.int32)
    edges = EdgeList(2, *ends, np.ones(3, np.int64), edge_ids=["a", "é", ""], vertex_labels=["s", "t"])
    again = unpack(pack(edges))
    assert isinstance(again.edge_ids, Texts)
    assert (again.edge_ids, again.vertex_labels) == (edges.edge_ids, edges.vertex_labels)


def test_columns_of_an_answer_are_written_row_by_row() -> None:
    names = Names(column(3 * WRITTEN_AT_ONCE), 3 * WRITTEN_AT_ONCE, "edge id")
    flags = np.arange(names.count) % 3 == 0
    flags[WRITTEN_AT_ONCE : 2 * WRITTEN_AT_ONCE] = False  # a step without a row
    answer = {"on": labels(names, marked(flags)), "off": labels(names, marked(~flags)), "none": labels(names, list)}
    written = json.loads(json_writer.dumps(answer))
    assert written["on"] == [f"{row:08d}" for row in np.flatnonzero(flags)]
    assert written["off"] == [f"{row:08d}" for row in np.flatnonzero(~flags)]
    assert written["none"] == []


def test_an_answer_takes_no_more_memory_than_a_piece() -> None:
    names = Names(column(300_000), 300_000, "edge id")
    answer = {"edges": labels(names, listed(np.arange(names.count)))}
    list(json_writer.pieces(answer))
    tracemalloc.start()
    try:
        sizes = [len(piece) for piece in json_writer.pieces(answer)]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sum(sizes) == 11 * 300_000 + len('{"edges":[]}') - 1
    assert max(sizes) < 1 << 20
    assert peak < 4 << 20


def test_other_threads_run_while_an_answer_of_millions_of_rows_is_written() -> None:
    names = Names(column(4_000_000), 4_000_000, "edge id")
    answer = {"edges": labels(names, listed(np.arange(names.count)))}
    assert longest_wait_s(lambda: sum(map(len, json_writer.pieces(answer)))) < WAIT_S


def longest_wait_s(work: Callable[[], object]) -> float:
    """How long a thread that wakes every millisecond once had to wait beside ``work``."""
    done, waits = threading.Event(), [0.0]

    def wake() -> None:
        while not done.is_set():
            slept_at = time.perf_counter()
            time.sleep(0.001)
            waits.append(time.perf_counter() - slept_at)

    thread = threading.Thread(target=wake)
    thread.start()
    try:
        work()
    finally:
        done.set()
        thread.join()
    return max(waits)
