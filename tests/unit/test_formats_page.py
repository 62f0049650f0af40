"""docs/formats.md: each example is read, is the graph that it claims to be, and is written and read back the same."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gpu_engine import formats
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.validate import check
from gpu_engine.types import INFINITE

PAGE, _, _ = (Path(__file__).parents[2] / "docs" / "formats.md").read_text().partition("## Answers")
"""Of files that are graphs; the examples of answers are run by `tests/contract/test_columns_live.py`."""
TEXTS = {
    "json": "application/json",
    "csv": "text/csv",
    "dimacs": "text/x-dimacs",
    "dimacs-min": "text/x-dimacs",
    "matrixmarket": "text/x-matrix-market",
    "adjacency": "text/x-adjacency-matrix",
}
"""Media types by the languages of the page's code blocks; those in Python write a file."""

MAX_96 = ("dimacs", "dimacs-min")
"""They have no word for an arc without limit."""

LABELLED = {("s", "a", 30), ("s", "b", 25), ("a", "t", INFINITE), ("b", "t", 20), ("a", "b", 10)}
ARCS = {(0, 1, 30), (0, 2, 25), (1, 3, INFINITE), (2, 3, 20), (1, 2, 10), (2, 1, 10)}
"""The graph of the page in tenths: with labels and an undirected edge, and as arcs."""


def blocks() -> list[tuple[str, str]]:
    return re.findall(r"^```([\w-]+)\n(.*?)^```$", PAGE, re.M | re.S)


def read_block(language: str, text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> EdgeList:
    if language in TEXTS:
        return formats.read(text.encode(), TEXTS[language])
    monkeypatch.chdir(folder)
    exec(compile(text, "docs/formats.md", "exec"), {})
    (written,) = folder.iterdir()
    return formats.read_file(written)


def same(one: EdgeList, other: EdgeList) -> bool:
    """Field by field; names may be arrays or lists."""
    columns = ("tail", "head", "capacity", "undirected", "edge_ids", "vertex_labels", "cost")
    scalars = ("n_vertices", "decimals", "source", "sink", "cost_decimals")
    return all(np.array_equal(_plain(getattr(one, name)), _plain(getattr(other, name))) for name in columns) and all(
        getattr(one, name) == getattr(other, name) for name in scalars
    )


def _plain(column: object) -> object:
    return None if column is None else np.array(column if isinstance(column, bool) else list(column))  # type: ignore[call-overload]  # a column of any kind


def test_every_format_has_an_example() -> None:
    found = [language for language, _ in blocks()]
    assert sorted(found) == sorted([*TEXTS, "python", "python", "python"])
    for media_type in formats.MEDIA_TYPES:
        assert f"`{media_type}`" in PAGE
    for suffix in formats.SUFFIXES:
        assert f"`{suffix}`" in PAGE


@pytest.mark.parametrize(("language", "text"), blocks(), ids=lambda part: str(part).partition("\n")[0][:20])
def test_each_example_is_the_graph_of_the_page(
    language: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edges = read_block(language, text, tmp_path, monkeypatch)
    check(edges)
    capacity = edges.capacity.tolist()
    scale = 1 if language in MAX_96 else 10 ** (1 - edges.decimals)
    capacity = [units if units == INFINITE else units * scale for units in capacity]
    if edges.vertex_labels is not None:
        names = list(edges.vertex_labels)
        rows = zip([names[v] for v in edges.tail], [names[v] for v in edges.head], capacity, strict=True)
        assert set(rows) == LABELLED
        assert edges.edge_ids is not None
        assert list(edges.edge_ids) == ["s-a", "s-b", "a-t", "b-t", "a-b"]
        assert np.broadcast_to(edges.undirected, 5).tolist() == [False, False, False, False, True]
    else:
        most = 96 if language in MAX_96 else INFINITE
        arcs = {(tail, head, most if units == INFINITE else units) for tail, head, units in ARCS}
        if language == "dimacs-min":
            arcs |= {(4, 0, 55), (3, 5, 55)}
            assert (edges.source, edges.sink) == (4, 5)
            assert edges.cost is not None
            assert edges.cost.tolist() == [4, 1, 1, 3, -2, 2, 0, 0]
        assert set(zip(edges.tail.tolist(), edges.head.tolist(), capacity, strict=True)) == arcs
        assert not np.any(edges.undirected)
    if language in ("json", "dimacs") or "source" in text:
        assert (edges.source, edges.sink) == (0, 3)


WRITERS: dict[str, Callable[[EdgeList], bytes]] = {
    "application/json": formats.write_json,
    "application/x-npz": formats.write_npz,
    "application/vnd.apache.arrow.stream": formats.write_arrow,
}


@pytest.mark.parametrize("media_type", WRITERS)
@pytest.mark.parametrize(("language", "text"), blocks(), ids=lambda part: str(part).partition("\n")[0][:20])
def test_each_example_is_written_and_read_back_the_same(
    language: str, text: str, media_type: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edges = read_block(language, text, tmp_path, monkeypatch)
    assert same(formats.read(WRITERS[media_type](edges), media_type), edges)


@pytest.mark.parametrize(
    ("language", "write"),
    [("csv", formats.write_csv), ("dimacs", formats.write_dimacs), ("dimacs-min", formats.write_dimacs_min)],
)
def test_texts_are_written_and_read_back_the_same(language: str, write: Callable[[EdgeList], bytes]) -> None:
    (text,) = (text for found, text in blocks() if found == language)
    edges = formats.read(text.encode(), TEXTS[language])
    assert same(formats.read(write(edges), TEXTS[language]), edges)
