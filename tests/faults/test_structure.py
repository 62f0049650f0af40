"""The checker's part in changes of structure: a clean history of them passes, and each kind of harm to them is seen."""

import io
import json
import random
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import zstandard

from tests.faults import answers
from tests.faults.entries import Commit, Structure, read_entry
from tests.faults.growth import FEW_DELETABLE, FIRST_ID, Growth, random_change
from tests.faults.history import LOAD_UNIT, Edges, Op, Shape
from tests.faults.limits import UNLIMITED
from tests.faults.model import State
from tests.faults.questions import random_edges
from tests.faults.stories import RESTORED, Later, change, page, see
from tests.faults.structure import Values, apply, back_to, expected, n_applied, n_missing, restructure


class Grown(Later):
    """As `Later`, then of h: edge 3 goes, and vertex 4 comes with edge 5 to it and edge 6 on (7); version 1 comes back
    (8); h, whose edge 5 is gone by then, is copied to k (9), which gets an edge by the id 900 (10).
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        inserted = {"op": "insert", "tail": [0, 4], "head": [4, 3], "capacity": [6, 2]}
        batch = [{"op": "delete", "edges": [3, 77]}, inserted, {"op": "insert", "count": 1}]
        self.edges = self._change("h", 7, batch, 2)
        self.edges.body |= {"applied": 4, "skipped": 1, "deleted": {"edges": 1, "vertices": 0}}
        self.edges.body["inserted"] = {"vertices": 1, "edges": 2, "first_vertex": 4, "first_edge": 5}
        structure = Structure(1, [0, 4], [4, 3], [3], [])
        self.commit = self._log(7, 2, [3, 5, 6], [0, 6, 2], structure, (5, 6))
        marks = [LOAD_UNIT, 20000]
        self.grown = Edges(
            5, [0, 0, 0, 2, 0, 4], [3, 3, 1, 3, 4, 3], [*marks, 4, 5, 6, 2], ids=[0, 1, 2, 4, 5, 6], sink=3
        )
        self.page = self._asked("capacities", "h", page(self.grown, 2))
        self.flow_of_h = self._asked("max-flow", "h", self.flow(2, 2, 2) | {"cut": {"edges": [0, 1, 6]}})
        self.file_of_h = self._asked("export", "h", self._file_of(self.grown, 2), format="npz")
        self.back = self._asked("restore", "h", RESTORED | {"version": 3, "applied": 3}, number=8, target=1)
        change(self.back, key="key-8", request="r8")
        self.undone = self._log(8, 3, [3, 5, 6], [5, 0, 0], Structure(deleted=[5, 6], revived=[3]), (5, 5))
        self.copy_of_h = self._asked("copy", "k", {"version": 1}, number=9, source="h")
        change(self.copy_of_h, key="key-9", request="r9")
        self.committed.requests["job-9"] = "r9"
        now = Edges(5, [0, 0, 0, 2, 2], [3, 3, 1, 1, 3], [*marks, 4, 5, 5], [False] * 5, ids=[0, 1, 2, 3, 4], sink=3)
        self.k = replace(self.copied, graph="k", graph_id="job-9", edges=now, commits=[], order=20)
        self.committed.loads.append(self.k)
        named = [{"op": "insert", "edge_ids": [900], "tail": [0], "head": [4], "capacity": [1]}]
        self.named = self._change("k", 10, named, 2)
        self.named.body |= {"applied": 1, "inserted": {"vertices": 0, "edges": 1}}
        self._log(10, 2, [5], [1], Structure(0, [0], [4], [], [], [900]), (5, 6), self.k.commits)
        more = Edges(5, [*now.tail, 0], [*now.head, 4], [*now.capacity, 1], ids=[0, 1, 2, 3, 4, 900], sink=3)
        self.page_of_k = self._asked("capacities", "k", page(more, 2))

    def _asked(self, kind: str, graph: str, body: dict[str, Any], **fields: Any) -> Op:
        op = self._op(kind, body, **fields)
        op.graph = graph
        return op

    def _change(self, graph: str, number: int, batch: list[dict[str, Any]], version: int) -> Op:
        body = {"version": version, "flow_states": [], "skipped": 0, "deleted": {"edges": 0, "vertices": 0}}
        op = self._asked("edges", graph, body, number=number, batch=batch, skips=True, key=f"key-{number}")
        op.request = f"r{number}"
        return op

    def _log(
        self,
        number: int,
        version: int,
        rows: list[int],
        own: list[int],
        structure: Structure,
        size: tuple[int, int],
        commits: list[Commit] | None = None,
    ) -> Commit:
        """The entry of a change, in the log of h if no other is named."""
        closed, name = [False] * len(rows), f"job-{number}"
        self.committed.requests[name] = f"r{number}"
        commit = Commit(version, f"key-{number}", rows, own, closed, name, order=10 + number)
        commit.structure, commit.size = structure, size
        commit.order += 10 if commits is not None else 0
        (self.copied.commits if commits is None else commits).append(commit)
        return commit

    def _file_of(self, edges: Edges, version: int) -> dict[str, Any]:
        columns = {"tail": edges.tail, "head": edges.head, "capacity": edges.capacity, "edge_ids": edges.ids}
        ends = {"n_vertices": edges.n_vertices, "source": 0, "sink": edges.sink}
        return {name: list(column or ()) for name, column in columns.items()} | ends | self._flags(edges, version)

    def _flags(self, edges: Edges, version: int) -> dict[str, Any]:
        return {"closed": [False] * len(edges.tail), "version": version, "limits": {}}

    def lose(self) -> None:
        """The change of structure, and all that came after it."""
        self.copied.commits.clear()
        self.committed.loads.remove(self.k)

    def twice(self) -> None:
        """Committed a second time, with edges of the next rows."""
        again = replace(self.commit, version=4, order=19, rows=[7, 8], own=[6, 2], closed=[False] * 2, size=(6, 7))
        again.structure = Structure(1, [0, 4], [4, 3], [], [])
        self.copied.commits.append(again)

    def refuse(self, op: Op, code: str, *, keep: bool = False) -> None:
        """Of the change of h: refused, though it was possible."""
        change(op, status=422, body={"code": code})


HARMS: dict[str, tuple[Callable[[Grown], object], str | None]] = {
    "clean": (lambda story: None, None),
    "a change is lost": (Grown.lose, "lost: edges 7"),
    "a change is there twice": (Grown.twice, "doubled: batch 7"),
    "a change is nobody's": (lambda story: story.committed.requests.pop("job-7"), "wrong: batch -1"),
    "a change has another key": (lambda story: change(story.commit, key="k"), "wrong: batch 7"),
    "an inserted edge is another": (lambda story: story.commit.structure.head.__setitem__(0, 2), "wrong: version 2"),
    "an inserted edge is lost": (lambda story: story.commit.structure.tail.pop(), "wrong: version 2"),
    "an inserted capacity is another": (lambda story: story.commit.own.__setitem__(1, 7), "wrong: version 2"),
    "a vertex is lost": (lambda story: change(story.commit.structure, n_vertices=0), "wrong: version 2"),
    "another edge is deleted": (lambda story: change(story.commit.structure, deleted=[4]), "wrong: version 2"),
    "a deletion is lost": (lambda story: change(story.commit.structure, deleted=[]), "wrong: version 2"),
    "the catalogue has another size": (lambda story: change(story.commit, size=(5, 7)), "wrong: version 2"),
    "the catalogue has no new size": (lambda story: change(story.commit, size=None), "wrong: version 2"),
    "what there is not is not passed over": (lambda story: change(story.edges, skips=False), "wrong: batch 7"),
    "an answer counts other edges": (lambda story: story.edges.body.update(applied=3), "wrong: edges 7"),
    "an answer passes over none": (lambda story: story.edges.body.update(skipped=0), "wrong: edges 7"),
    "an answer deletes more": (lambda story: story.edges.body.update(deleted={"edges": 2}), "wrong: edges 7"),
    "an answer gives another number": (
        lambda story: story.edges.body["inserted"].update(first_edge=6),
        "wrong: edges 7",
    ),
    "an answer numbers edges that have ids": (
        lambda story: story.named.body["inserted"].update(first_edge=5),
        "wrong: edges 10",
    ),
    "an answer solves a flow wrongly": (
        lambda story: story.edges.body.update(flow_states=[{"kind": "max-flow", "value": 7}]),
        "wrong: edges 7",
    ),
    "a refusal for an edge that there was": (
        lambda story: (story.lose(), story.edges.batch[0]["edges"].pop(), story.refuse(story.edges, "unknown_edge")),
        "wrong: edges 7 of h: refused",
    ),
    "a refusal for a vertex that there was": (
        lambda story: story.refuse(story.edges, "unknown_vertex"),
        "wrong: edges 7 of h: refused",
    ),
    "a refusal for ids where there are none": (
        lambda story: story.refuse(story.edges, "invalid_body"),
        "wrong: edges 7 of h: refused",
    ),
    "a refused change is there": (
        lambda story: (change(story.edges, skips=False), story.refuse(story.edges, "unknown_edge")),
        "wrong: edges 7 was refused",
    ),
    "another question is refused so": (lambda story: story.refuse(story.export, "unknown_edge"), "refused: export"),
    "a page has a deleted edge": (lambda story: story.page.body["edge_ids"].__setitem__(3, 3), "wrong: capacities"),
    "a page lacks an edge": (lambda story: [story.page.body[c].pop() for c in ("tail", "head")], "wrong: capacities"),
    "a page ends too early": (lambda story: story.page.body.update(next=6), "wrong: capacities"),
    "a flow is of the edges before": (lambda story: change(story.flow_of_h, body=story.flow(2, 2, 0)), "wrong: max"),
    "a cut has a deleted edge": (
        lambda story: story.flow_of_h.body["cut"].update(edges=[0, 1, 3]),
        "wrong: max-flow",
    ),
    "a file has another edge": (lambda story: story.file_of_h.body["head"].__setitem__(5, 1), "wrong: export"),
    "a file has no ids": (lambda story: story.file_of_h.body.pop("edge_ids"), "wrong: export"),
    "a file has too few vertices": (lambda story: story.file_of_h.body.update(n_vertices=4), "wrong: export"),
    "a restore leaves an inserted edge": (
        lambda story: change(story.undone, structure=Structure(deleted=[5], revived=[3])),
        "wrong: version 3",
    ),
    "a restore does not bring back": (
        lambda story: change(story.undone, structure=Structure(deleted=[5, 6])),
        "wrong: version 3",
    ),
    "a restore of structure counts wrongly": (lambda story: story.back.body.update(applied=2), "wrong: restore 8"),
    "a copy has a vertex less": (lambda story: change(story.k.edges, n_vertices=4), "wrong: copy 9"),
    "a copy has lost the ids": (lambda story: change(story.k.edges, ids=None), "wrong: copy 9"),
    "a copy has another sink": (lambda story: change(story.k.edges, sink=4), "wrong: copy 9"),
    "an id is another": (lambda story: story.k.commits[0].structure.ids.__setitem__(0, 901), "wrong: version 2"),
    "a page has another id": (lambda story: story.page_of_k.body["edge_ids"].__setitem__(5, 5), "wrong: capacities"),
}


@pytest.mark.parametrize(("harm", "kind"), HARMS.values(), ids=HARMS.keys())
def test_harm_to_structure_is_seen(harm: Callable[[Grown], object], kind: str | None) -> None:
    see(Grown(), harm, kind)


def entry(applied: int, field: bytes = b"values", **arrays: Any) -> list[bytes]:
    """Of edge 1, which goes, and edge 4, which comes."""
    columns = {"n_vertices": np.int64(2), "tail": [0], "head": [3], "undirected": [False]}
    columns |= {"deleted": [1], "revived": []} | arrays
    plain = io.BytesIO()
    np.savez(plain, **{name: np.array(column) for name, column in columns.items() if column is not None})
    values = struct.pack("<qqqq??", 1, 4, 0, 9, False, False)
    squeeze = zstandard.ZstdCompressor().compress
    said = json.dumps({"key": "k", "applied": applied}).encode()
    fields = [b"applied", said, field, squeeze(values), b"structure", squeeze(plain.getvalue())]
    return [b"XADD", b"log", b"5-0", *fields]


def test_structure_in_the_log_is_read() -> None:
    commit = Commit(5, "k", [1, 4], [0, 9], [False, False], structure=Structure(2, [0], [3], [1], []))
    assert read_entry(entry(4)) == commit
    named = read_entry(entry(4, edge_ids=[70], cost=[-2]))
    assert named == replace(commit, structure=Structure(2, [0], [3], [1], [], [70], [-2]))


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (entry(2), "are not the 2 rows"),
        (entry(4, b"change"), "has `values`"),
        (entry(4, undirected=[True]), "nobody inserted undirected"),
        (entry(4, more=[1]), "nobody asked for such"),
    ],
    ids=["vertices do not count", "as another change", "undirected", "another column"],
)
def test_structure_that_is_not_as_it_must_be(words: list[bytes], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        read_entry(words)


def test_vertices_that_go_are_in_the_log() -> None:
    """With their edges; and in an entry that an earlier release cannot read."""
    words = entry(5, deleted_vertices=[2], revived_vertices=[])
    with pytest.raises(ValueError, match="nobody asked for such"):
        read_entry(words)
    words = entry(5, deleted_vertices=[2], revived_vertices=[], n_inserted=np.int64(2), n_vertices=None)
    read = Structure(2, [0], [3], [1], [], deleted_vertices=[2])
    assert read_entry(words) == Commit(5, "k", [1, 4], [0, 9], [False, False], structure=read)


def test_vertices_that_go_take_their_edges_along() -> None:
    """And their capacities; a restore brings back what was there, and leaves what came since as it is."""
    first = Values.of(Edges(4, [0, 0, 1], [3, 1, 3], [7, 5, 6]))
    limited = [{"op": "insert", "count": 2, "capacity": [9, "inf"]}]
    grown = restructure(first, [*limited, {"op": "insert", "tail": [0, 4], "head": [4, 3], "capacity": [1, 2]}])
    assert grown.limits == {4: 9, 5: UNLIMITED}
    commit = expected(first, grown, is_structural=True)
    assert (commit.limits, commit.size, n_applied(commit)) == ({4: 9, 5: UNLIMITED}, (6, 5), 4)
    gone = restructure(grown, [{"op": "delete", "vertices": [4, 9]}, {"op": "delete", "edges": [4]}])
    assert (gone.lost, gone.gone.tolist(), gone.limits) == ({4}, [False] * 3 + [True] * 2, {4: 0, 5: UNLIMITED})
    commit = expected(grown, gone, is_structural=True)
    assert commit.structure is not None
    assert (commit.structure.deleted_vertices, commit.limits, commit.size) == ([4], {4: 0}, (5, 3))
    assert (n_applied(commit), n_missing(grown, [{"op": "delete", "vertices": [4, 9]}])) == (3, 1)
    back = back_to(gone, grown)
    assert (back.lost, back.limits, back.seen.capacity) == (set(), grown.limits, grown.seen.capacity)
    since = back_to(gone, first)
    assert (since.lost, since.limits[4]) == ({4}, 0)


def test_a_client_deletes_what_it_knows_of() -> None:
    rng, growth = random.Random(3), Growth(n_vertices=14, lost={9})
    drawn = [random_change(rng, 1, Shape(is_pruned=True, is_limited=True), growth)[0] for _ in range(300)]
    named = {v for batch in drawn for each in batch if each["op"] == "delete" for v in each.get("vertices", ())}
    assert named == {*range(8, 14)}
    assert any("capacity" in each for batch in drawn for each in batch if "count" in each)


def test_what_came_and_went_leads_back() -> None:
    """Whatever is done in between: an earlier version has its edges again, and the entry says what differs."""
    rng = random.Random(5)
    for shape in (Shape(), Shape("two-sided", is_priced=True), Shape("left to right")):
        growth, first = Growth(), Values.of(random_edges(rng, 1, shape))
        now = first
        for number in range(2, 12):
            batch, _ = random_change(rng, number, shape, replace(growth, n_vertices=now.edges.n_vertices))
            before, now = now, restructure(now, batch)
            commit = expected(before, now, is_structural=True)
            assert commit.structure is not None
            assert len(commit.structure.tail) == sum(len(each.get("tail", ())) for each in batch)
            assert len(commit.structure.deleted) + n_missing(before, batch) == sum(
                len(each.get("edges", ())) for each in batch
            )
            assert commit.size == (now.edges.n_vertices, len(now.seen.tail))
        back = back_to(now, first)
        again = replace(back.seen, n_vertices=first.edges.n_vertices, ids=None)
        assert again == first.seen
        assert back.seen.n_vertices == now.edges.n_vertices
        assert expected(back, back, is_structural=False).structure is None


def test_a_page_counts_edges_that_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by seed 7030: of a graph with more rows than a page, where some of the first ones are gone."""
    monkeypatch.setattr(answers, "PAGE_ROWS", 3)
    values = restructure(Values.of(Edges(2, [0] * 4, [1] * 4, [5, 6, 7, 8])), [{"op": "delete", "edges": [1]}])
    columns = {"edge_ids": [0, 2], "tail": [0, 0], "head": [1, 1], "capacity": [5, 7], "closed": [False] * 2}
    state = State(0, 2, values, Op(0, "put", "g", 0.0))
    assert answers.page_faults(columns | {"next": 3}, state) == []
    assert answers.page_faults(columns | {"next": None}, state) == ["the next page begins at 3"]
    more = {"edge_ids": [0, 2, 3], "capacity": [5, 7, 8], "next": 3}
    assert len(answers.page_faults(columns | more, state)) == 2


def test_a_batch_passes_over_edges_that_are_gone() -> None:
    values = restructure(Values.of(Edges(2, [0, 0], [1, 1], [5, 6])), [{"op": "delete", "edges": [1]}])
    batch = [{"edges": [0, 1, 2], "set": [7, 8, 9]}]
    assert apply(values, batch).own.tolist() == [7, 0]
    assert n_missing(values, batch) == 2
    named = Values.of(Edges(2, [0, 0], [1, 1], [5, 6], ids=[4, 0]))
    assert apply(named, batch).own.tolist() == [5, 7]


def test_changes_are_such_as_the_graph_can_be_asked_for() -> None:
    """No mark goes, nor an edge that batches name, and who asks for a matching finds each edge across."""
    rng, growth = random.Random(1), Growth(has_ids=True)
    for number in range(200):
        shape = Shape(rng.choice(("any", "two-sided", "left to right")), is_priced=rng.random() < 0.5)
        batch, _ = random_change(rng, number, shape, growth)
        for operation in batch:
            assert {*operation.get("edges", ())} <= {*FEW_DELETABLE}
            ends = list(zip(operation.get("tail", ()), operation.get("head", ()), strict=True))
            assert all(a != b for a, b in ends)
            assert shape.kind == "any" or all((a - b) % 2 for a, b in ends)
            assert shape.kind != "left to right" or all(a % 2 == 0 for a, _ in ends)
            assert ("cost" in operation) == (shape.is_priced and bool(ends))
            assert all(name >= FIRST_ID for name in operation.get("edge_ids", ()))


def test_a_client_remembers_what_it_was_told() -> None:
    growth = Growth()
    inserted = {"vertices": 2, "edges": 2, "first_vertex": 8, "first_edge": 30}
    growth.told({"inserted": inserted}, [])
    growth.told({"inserted": {"vertices": 0, "edges": 0}}, [{"op": "delete", "edges": [30, 7]}])
    assert (growth.n_vertices, growth.inserted, growth.gone) == (10, [31], {7, 30})
    growth.told({"inserted": {"vertices": 0, "edges": 1}}, [{"op": "insert", "edge_ids": [900]}])
    assert growth.inserted == [31, 900]
