"""What was probably meant, and how little it costs to find out, whoever chose the names."""

import random
import time

import pytest

from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.refused import near
from gpu_engine.text.near import MAX_CANDIDATES, MAX_CHARS, alike, did_you_mean, nearest
from gpu_engine.text.texts import Texts
from tests.graphs import drawn

FIELDS = ["tail", "head", "capacity", "undirected", "edge_ids", "vertex_labels", "n_vertices", "source", "sink"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("capcity", "capacity"),
        ("Capacity", "capacity"),
        ("edge-ids", "edge_ids"),
        ("weight", "capacity"),
        ("from", "tail"),
        ("directed", "undirected"),
        ("target", "sink"),
        ("colour", None),
        ("", None),
        ("tail", None),
        ("x" * 1_000_000, None),
    ],
)
def test_what_was_meant(name: str, meant: str | None) -> None:
    assert nearest(name, FIELDS) == meant
    assert did_you_mean(name, FIELDS) == (f"; did you mean {meant!r}?" if meant else "")


def test_what_is_no_text_has_no_near_name() -> None:
    assert did_you_mean(7, FIELDS, "; there is none") == "; there is none"


def test_the_nearest_of_several_is_told() -> None:
    assert nearest("street-17", ["street-1", "street-71", "street-170", "road"]) == "street-170"


def test_hostile_names_cost_milliseconds() -> None:
    """Every candidate is an arrangement of the same letters, so that no quick look tells them apart."""
    letters = list("abcdefghijklmnopqrst" * 2)[:MAX_CHARS]
    source = random.Random(7)
    names = ["".join(source.sample(letters, len(letters))) for _ in range(MAX_CANDIDATES)]
    began = time.perf_counter()
    nearest("".join(source.sample(letters, len(letters))), names)
    took_s = time.perf_counter() - began
    print(f"{1e3 * took_s:.1f} ms")
    assert took_s < 1  # ten times what it takes on a machine that is busy


def test_only_the_first_names_are_looked_at() -> None:
    looked: list[int] = []

    def names() -> object:
        for at in range(10**9):
            looked.append(at)
            yield f"street-{at}"

    assert nearest("stret-5", names()) == "street-5"  # type: ignore[arg-type]  # it looks through a generator as well
    assert len(looked) <= MAX_CANDIDATES + 1


def labelled(labels: list[str]) -> Network:
    edges = drawn(len(labels), [(0, 1, 1)])
    return Network(EdgeList(edges.n_vertices, edges.tail, edges.head, edges.capacity, vertex_labels=labels))


def test_a_name_that_differs_in_case_alone_is_found_among_any_number() -> None:
    many = [f"street {at}" for at in range(5 * MAX_CANDIDATES)] + ["Anna", "last_one"]
    names = labelled(many).vertex_labels
    assert near(names, "anna", "vertex", len(many)) == "; did you mean 'Anna'?"
    assert near(names, "last-one", "vertex", len(many)) == "; did you mean 'last_one'?"
    assert near(names, 7, "vertex", len(many)) == "; the vertex names of this graph are text"
    assert near(names, "x" * 5000, "vertex", len(many)) == ""


def test_unnamed_vertices_are_numbers() -> None:
    names = Network(drawn(3, [(0, 1, 1)])).vertex_labels
    assert near(names, "0", "vertex", 3) == "; the vertex names of this graph are the numbers 0 .. 2"


STREETS = [f"{street} {number}" for street in ("Am Markt", "Theodor-Heuss-Brücke", "Zoo") for number in range(900)]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Theodor-Heuss-Brucke 899", "Theodor-Heuss-Brücke 899"),
        ("theodor-heuss-Brücke 1x", "Theodor-Heuss-Brücke 1"),
        ("Zoo  850", "Zoo 850"),
        ("zo 851", "Zoo 851"),
        ("Xm Markt 3", "Am Markt 3"),
    ],
)
def test_names_that_begin_alike_are_looked_at_wherever_they_stand(name: str, meant: str) -> None:
    some = alike(Texts.of(STREETS), name)
    assert len(some) <= MAX_CANDIDATES
    assert nearest(name, some) == meant


def test_names_are_told_apart_by_more_than_their_first_and_last_letters() -> None:
    streets = [f"{street} {number}" for street in ("Ahornweg", "Akazienweg", "Asternweg") for number in range(3000)]
    for wanted, meant in (("Akazienwg 2455", "Akazienweg 2455"), ("Asternweg2017", "Asternweg 2017")):
        assert nearest(wanted, alike(Texts.of(streets), wanted)) == meant


@pytest.mark.parametrize("texts", [[], [""], ["", "a", "ab"], 300 * ["same"]])
def test_texts_of_any_length_are_looked_at(texts: list[str]) -> None:
    assert set(alike(Texts.of(texts), "abc")) == set(texts)
    assert set(alike(Texts.of(["b", *texts])[1:], "abc")) == set(texts)


def test_texts_that_all_begin_alike_cost_milliseconds() -> None:
    texts = Texts.of(f"{'x' * MAX_CHARS}{at}" for at in range(1 << 18))
    began = time.perf_counter()
    alike(texts, "x" * 2 * MAX_CHARS)
    took_s = time.perf_counter() - began
    print(f"{1e3 * took_s:.1f} ms")
    assert took_s < 1
