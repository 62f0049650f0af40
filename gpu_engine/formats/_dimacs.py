"""What DIMACS problems have in common: one ``p`` line, then ``n`` lines of vertices and ``a`` lines of arcs."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from gpu_engine.errors import InvalidNetwork
from gpu_engine.formats._assemble import check_edge_count, check_vertex_count
from gpu_engine.formats._looks import LOOKED_AT, seems_to_be
from gpu_engine.formats._text import (
    Bytes,
    Fields,
    Lines,
    as_text,
    blank_lines,
    fields_of,
    first_bytes,
    split_fields,
    split_lines,
)
from gpu_engine.formats.limits import Limits, Source, load

KNOWN: Final = b"cpna"
EXPECTED: Final = "'p max VERTICES ARCS' or 'p min VERTICES ARCS'"


@dataclass(frozen=True, slots=True)
class Problem:
    """The lines of a problem, and the counts that it states."""

    text: Bytes
    kind: str
    """``max`` or ``min``."""
    n_vertices: int
    n_arcs: int
    nodes: Lines
    arcs: Lines

    def columns(self, lines: Lines, width: int) -> list[Fields]:
        """The fields behind the letter of these lines, of which each has so many."""
        return split_fields(self.text, lines, width, skip=1)


def read_problem(source: Source, limits: Limits) -> Problem:
    """Split a text into its lines; `InvalidNetwork` names the one at fault."""
    text = as_text(load(source), comment="c")
    lines = split_lines(text)
    letter = first_bytes(text, lines)
    known = np.isin(letter, list(KNOWN)) | blank_lines(text, lines)
    other = seems_to_be(text[:LOOKED_AT].tobytes(), "DIMACS") if len(text) else ""
    lines.place.refuse(~known, "starts with none of c, p, n, a", hint=other)
    kind, n_vertices, n_arcs = _stated(text, lines, letter)
    check_vertex_count(n_vertices, limits)
    check_edge_count(n_arcs, limits)
    nodes, arcs = lines.where(letter == ord("n")), lines.where(letter == ord("a"))
    if len(arcs) > n_arcs:
        line = int(arcs.number[n_arcs])
        raise InvalidNetwork(f"line {line}: there are more arcs than the {n_arcs} that the p line says", lines=[line])
    if len(arcs) < n_arcs:
        raise InvalidNetwork(f"line {len(lines)}: the text ends after {len(arcs)} of {n_arcs} arcs", lines=[len(lines)])
    return Problem(text, kind, n_vertices, n_arcs, nodes, arcs)


def _stated(text: Bytes, lines: Lines, letter: Bytes) -> tuple[str, int, int]:
    """The only ``p`` line, which must stand before ``n`` and ``a`` lines."""
    problems = lines.where(letter == ord("p"))
    if len(problems) != 1:
        raise InvalidNetwork(
            f"{len(problems)} 'p' lines where one is needed: {EXPECTED}", lines=problems.number[:10].tolist()
        )
    number = int(problems.number[0])
    words = fields_of(text, problems, 0)
    is_problem = len(words) == 4 and words[0] == "p" and words[1] in ("max", "min")
    if not is_problem or not all(map(is_count, words[2:])):
        raise InvalidNetwork(f"line {number}: {EXPECTED} expected", lines=[number])
    early = lines.where((lines.number < number) & np.isin(letter, list(b"na")))
    early.place.refuse(np.ones(len(early), dtype=bool), "stands before the 'p' line")
    return words[1], int(words[2]), int(words[3])


def is_count(field: str) -> bool:
    """Whether a field is a whole number that fits int64."""
    return field.isdigit() and len(field) <= 18
