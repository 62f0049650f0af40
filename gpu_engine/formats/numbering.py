"""Graphs whose vertices are numbered, where the numbers look like ids from elsewhere."""

from typing import Final

from gpu_engine.errors import InvalidNetwork
from gpu_engine.text.counted import counted

MOST_NUMBERS: Final = 16
"""A graph with more vertices than so many for each edge was probably sent with ids in place of numbers."""

ALWAYS_TAKEN: Final = 1_000_000
"""So many vertices are taken for what they are, however few edges there are."""


def hint_of_names(n_vertices: int, n_edges: int) -> str:
    """What to do about a graph that is too large since ids, such as those of a map, stand where numbers are meant: each
    number below the largest one is a vertex too. Nothing where there are edges enough for so many."""
    if n_vertices <= MOST_NUMBERS * (n_edges + 1):
        return ""
    few = counted(n_edges, "edge joins", "edges join")
    return f"; {few} few of these vertices, 0 to {n_vertices - 1}: send ids as text, or each once in `vertex_labels`"


def refuse_likely_names(n_vertices: int, n_edges: int) -> None:
    """Raise `InvalidNetwork` for a graph of ids in place of numbers, whose caller has not said how many vertices there
    are: with the ids of a small map it would be loaded, with millions of vertices that nobody meant."""
    hint = hint_of_names(n_vertices, n_edges)
    if hint and n_vertices > ALWAYS_TAKEN:
        raise InvalidNetwork(f"the largest vertex is {n_vertices - 1}{hint}, or say `n_vertices` if so many are meant")
