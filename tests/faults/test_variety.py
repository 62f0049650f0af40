"""That the checker knows lower bounds, coordinates and partitions, and that what is never done is noticed."""

import io
import json
import random
import struct
from typing import Any

import numpy as np
import pytest
import zstandard

from tests.faults.answers import answer_faults, page_faults
from tests.faults.circulations import circulation_faults
from tests.faults.entries import Commit, Structure, read_entry
from tests.faults.exports import export_faults, read_arrow
from tests.faults.growth import Growth, random_change
from tests.faults.history import CRS, Edges, Op, spare_vertices
from tests.faults.limits import random_limits
from tests.faults.model import State
from tests.faults.parts import partition_faults
from tests.faults.questions import KINDS, draw_shapes, fitting, random_edges
from tests.faults.structure import Values, back_to, bound, doomed, expected, n_applied, restructure
from tests.faults.variety import COUNTED, ENOUGH, never_done, wanted

EDGES = Edges(5, [0, 0, 0, 1, 2, 1], [4, 4, 1, 2, 4, 4], [1000, 0, 30, 20, 25, 5], lower=[0, 0, 3, 0, 0, 0])
"""s=0 to 1 30, of which 3 have to flow, 1 to 2 20, 2 to t=4 25, 1 to t 5, and 1000 from s to t."""


def squeezed(plain: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(plain)


def state(values: Values) -> State:
    return State(0, 1, values, Op(0, "put", "g", 0.0))


def test_lower_bounds_of_a_graph() -> None:
    """A batch, what the log says of it, and the way back, on which an edge that is gone keeps its own."""
    first = Values.of(EDGES)
    batch = [{"edges": [3, 4], "set": [2, 7]}, {"edges": [3], "scale": [2]}, {"edges": [2, 9], "add": [1, 1]}]
    after = bound(first, batch)
    assert after.lower is not None
    assert after.lower.tolist() == [0, 0, 4, 4, 7, 0]
    right = expected(first, after, is_structural=False)
    assert (right.lower_rows, right.lowers, right.is_bounded, n_applied(right)) == ([2, 3, 4], [4, 4, 7], True, 3)
    said = json.dumps({"key": "k", "applied": 3}).encode()
    rows = squeezed(struct.pack("<6q", 2, 3, 4, 4, 4, 7))
    words = [b"XADD", b"log", b"5-0", b"applied", said, b"bounded", squeezed(b""), b"lower", rows]
    commit = read_entry(words)
    assert commit == Commit(5, "k", [], [], [], lower_rows=[2, 3, 4], lowers=[4, 4, 7], is_bounded=True)
    with pytest.raises(ValueError, match="of lower bounds `bounded`"):
        read_entry([b"change" if word == b"bounded" else word for word in words])
    gone = restructure(after, [{"op": "delete", "edges": [3]}])
    back = back_to(gone, first)
    assert back.lower is not None
    assert back.lower.tolist() == [0, 0, 3, 0, 0, 0]
    assert expected(gone, back, is_structural=False).lower_rows == [2, 3, 4]
    assert bound(Values.of(Edges(2, [0], [1], [5])), []).lower is not None


def test_what_is_inserted_with_lower_bounds_and_coordinates() -> None:
    first = Values.of(Edges(2, [0, 0], [1, 1], [5, 6], x=[0.5, 1.0], y=[0.0, 2.5]))
    inserted = {"op": "insert", "tail": [0], "head": [2], "capacity": [9], "lower": [4]}
    after = restructure(first, [{"op": "insert", "count": 1, "x": [7.5], "y": [-1.0]}, inserted])
    commit = expected(first, after, is_structural=True)
    assert commit.structure == Structure(1, [0], [2], lower=[4], x=[7.5], y=[-1.0])
    assert (commit.lower_rows, commit.is_bounded, after.seen.x, after.seen.lower) == (
        [],
        False,
        [0.5, 1, 7.5],
        [0, 0, 4],
    )
    columns = {"n_beside": np.int64(1), "tail": [0], "head": [2], "undirected": [False], "lower": [4]}
    columns |= {"deleted": [], "revived": [], "deleted_vertices": [], "revived_vertices": [], "x": [7.5], "y": [-1.0]}

    def read(arrays: dict[str, Any]) -> Commit:
        plain = io.BytesIO()
        np.savez(plain, **{name: np.array(column) for name, column in arrays.items()})
        values = squeezed(struct.pack("<qq?", 2, 9, False))
        said = json.dumps({"key": "k", "applied": 2}).encode()
        fields = [b"applied", said, b"values", values, b"structure", squeezed(plain.getvalue())]
        return read_entry([b"XADD", b"log", b"5-0", *fields])

    assert read(columns).structure == commit.structure
    with pytest.raises(ValueError, match="an earlier release"):
        read({"n_vertices" if name == "n_beside" else name: column for name, column in columns.items()})


def test_answers_about_lower_bounds_and_coordinates() -> None:
    placed = Edges(5, EDGES.tail, EDGES.head, EDGES.capacity, lower=EDGES.lower, x=[0.5] * 5, y=[1.5] * 5)
    about = state(Values.of(placed))
    page = {name: getattr(about.values.seen, name) for name in ("tail", "head", "capacity", "closed", "lower")}
    page |= {"edge_ids": [*range(6)], "next": None}
    assert page_faults(page, about) == []
    assert page_faults(page | {"lower": [0] * 6}, about)
    assert page_faults(page, state(Values.of(Edges(5, EDGES.tail, EDGES.head, EDGES.capacity)))) == [
        "the graph has no lower"
    ]
    ends = {"n_vertices": 5, "source": 0, "sink": 4, "version": 1, "limits": {}, "crs": CRS}
    file = {name: page[name] for name in ("tail", "head", "capacity", "closed", "lower")} | ends
    assert export_faults(file | {"x": placed.x, "y": placed.y}, about) == []
    assert export_faults(file | {"x": placed.y, "y": placed.y}, about)
    assert export_faults({name: column for name, column in file.items() if name != "lower"}, about)
    told = {"feasible": True, "certificate": {"valid": True}}
    carries = {"flow": {"edges": [2, 5], "amount": [3, 3]}}
    assert circulation_faults(told | carries, None, about) == []
    assert circulation_faults(told | {"flow": {"edges": [2, 5], "amount": [2, 2]}}, None, about)
    assert circulation_faults(told | {"feasible": False}, None, about)


def test_a_file_of_arrow_has_coordinates() -> None:
    pa = pytest.importorskip("pyarrow")
    said = {"n_vertices": "2", "decimals": "0", "undirected": "false", "source": "0", "sink": "1", "crs": CRS}
    edges = pa.table({"tail": [0], "head": [1], "capacity": [7], "lower": [3]}).replace_schema_metadata(said)
    content = b""
    for table in (edges, pa.table({"x": [0.5, 1.5], "y": [2.5, 3.5]})):
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        content += sink.getvalue()
    columns = read_arrow(content)
    assert (columns["x"], columns["y"], columns["crs"], columns["lower"]) == ([0.5, 1.5], [2.5, 3.5], CRS, [3])


PARTS = {"vertices": [*range(5)], "part": [0, 1, 1, 2, 0]}
RIGHT: dict[str, Any] = {
    "value": 30 + 25 + 5,
    "cut_edges": 3,
    "part_weight": [2, 2, 1],
    "n_vertices": [2, 2, 1],
    "limit": 2,
    "balanced": True,
    "certificate": {"valid": True},
    "parts": PARTS,
    "cut": {"edges": [2, 4, 5], "weight": [30, 25, 5]},
}


@pytest.mark.parametrize(
    "harm",
    [
        {"value": 61},
        {"cut_edges": 4},
        {"part_weight": [2, 1, 2]},
        {"limit": 3},
        {"balanced": False},
        {"certificate": {"valid": False}},
        {"parts": {"vertices": [*range(4)], "part": [0, 1, 1, 2]}},
        {"parts": {"vertices": [*range(5)], "part": [0, 1, 1, 3, 0]}},
        {
            "parts": {"vertices": [*range(5)], "part": [0, 1, 1, 1, 0]},
            "part_weight": [2, 3, 0],
            "n_vertices": [2, 3, 0],
        },
        {"cut": {"edges": [2, 4], "weight": [30, 25]}},
        {"cut": {"edges": [2, 4, 5], "weight": [30, 25, 6]}},
    ],
)
def test_harm_to_a_partition_is_seen(harm: dict[str, Any]) -> None:
    about = state(Values.of(EDGES))
    assert partition_faults(RIGHT, about) == []
    assert answer_faults(Op(0, "partition", "g", 0.0, body=RIGHT | harm), about)


def test_a_partition_leaves_out_vertices_that_are_gone() -> None:
    about = state(restructure(Values.of(EDGES), [{"op": "delete", "vertices": [3]}]))
    assert partition_faults(RIGHT, about)
    parts = {"vertices": [0, 1, 2, 4], "part": [0, 1, 1, 2]}
    cut = {"edges": [0, 2, 4, 5], "weight": [1000, 30, 25, 5]}
    body = RIGHT | {"parts": parts, "part_weight": [1, 2, 1], "n_vertices": [1, 2, 1], "value": 1060, "cut_edges": 4}
    assert partition_faults(body | {"cut": cut}, about) == []


def test_what_is_never_done_is_noticed() -> None:
    counts = dict.fromkeys(wanted(), 1)
    assert never_done(counts) == []
    assert never_done(counts | {"vertices deleted": 0}) == ["vertices deleted"]
    assert "acknowledged partition" in never_done({})
    assert {*COUNTED} <= {*never_done({})}


def test_all_kinds_are_drawn_for_so_many_histories() -> None:
    """Each kind of question can be asked of some graph, and each kind of change of structure is drawn."""
    rng, asked, drawn, named = random.Random(1), set(), set(), set()
    for seed in range(ENOUGH):
        for shape in draw_shapes(random.Random(f"{seed} shapes"), seed + 1 - seed % 2):  # none is large
            asked |= {fitting(kind, shape) for kind in KINDS}
            edges, growth = random_edges(rng, 1, shape), Growth()
            assert (edges.x is not None) == shape.is_placed
            assert len(spare_vertices(shape)) + edges.sink + 1 == edges.n_vertices
            for number in range(2, 12):
                batch, _ = random_change(rng, number, shape, growth)
                drawn |= {(each["op"], *sorted(each.keys() - {"op"})) for each in batch}
                gone = {*doomed(batch)}
                assert gone <= {*spare_vertices(shape)}
                assert (not gone) or shape.is_pruned
                growth.lost |= gone
            named |= {shape.is_pruned and v >= 8 for each in random_limits(rng, shape) for v in each["vertices"]}
    assert asked == {*KINDS}
    assert {("delete", "vertices"), ("delete", "edges"), ("insert", "capacity", "count")} <= drawn
    assert {("insert", "capacity", "count", "x", "y"), ("insert", "count", "x", "y"), ("insert", "count")} <= drawn
    assert any("lower" in kind for kind in drawn)
    assert named == {True, False}
