"""The known name that the author of an unknown name probably meant. The work is bounded, as callers choose both."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import islice
from typing import Final

import numpy as np

from gpu_engine.text.texts import Texts

MAX_CHARS: Final = 40
"""Longer names are not compared: the time grows with the product of their lengths."""
MAX_CANDIDATES: Final = 500
"""How many known names are looked at; the quick bounds of `difflib` choose among them."""
MAX_COMPARED: Final = 32
"""How many known names, the likeliest, are compared in full."""
MAX_SEARCHED: Final = 1 << 20
"""How many texts are searched for those that begin and end like a name."""
MAX_LOOKS: Final = 1 << 21
"""How many letters of theirs are compared."""
CASE: Final = 0x20
"""The bit of an ASCII letter that says whether it is small."""
CUTOFF: Final = 0.6
"""The least similarity of a name that is suggested, as in `difflib.get_close_matches`."""

SYNONYMS: Final[Mapping[str, Sequence[str]]] = {
    "from": ("tail", "source"),
    "to": ("head", "sink"),
    "u": ("tail",),
    "v": ("head",),
    "src": ("tail", "sources"),
    "dst": ("head", "sinks"),
    "start": ("tail",),
    "end": ("head",),
    "source": ("sources", "tail"),
    "target": ("sink", "sinks", "head"),
    "sink": ("sinks", "head"),
    "weight": ("capacity",),
    "value": ("capacity", "set", "size"),
    "capacity": ("set",),
    "cap": ("capacity", "set"),
    "delta": ("add",),
    "factor": ("scale",),
    "directed": ("undirected",),
    "nodes": ("vertex_labels", "n_vertices"),
    "labels": ("vertex_labels",),
    "n": ("n_vertices",),
    "m": ("n_edges",),
    "id": ("edges", "edge_ids", "edge_id", "edge"),
    "ids": ("edges", "edge_ids", "edge_id", "edge"),
    "edge": ("edges",),
    "edges": ("edge",),
    "edge_id": ("edges", "edge_ids", "id"),
    "edge_ids": ("edges", "edge", "edge_id", "id"),
    "timeout": ("time_limit_s",),
    "timeout_s": ("time_limit_s",),
    "version": ("min_version",),
    "delete": ("close",),
    "remove": ("close",),
    "open": ("reopen",),
    "ignore": ("skip",),
    "page": ("offset", "after"),
    "cursor": ("after",),
}
"""Names that other tools use, each with the names that may be meant. The first of these that is known is suggested."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name, other than `name`, that is probably meant, if any is. Looks at `MAX_CANDIDATES` names at most."""
    if not 0 < len(name) <= MAX_CHARS:
        return None
    candidates = [other for other in islice(known, MAX_CANDIDATES) if 0 < len(other) <= MAX_CHARS and other != name]
    for synonym in SYNONYMS.get(name.lower(), ()):
        if synonym in candidates:
            return synonym
    match = SequenceMatcher(b=_plain(name), autojunk=False)
    likely: list[tuple[float, str]] = []
    for other in candidates:
        match.set_seq1(_plain(other))
        if match.real_quick_ratio() >= CUTOFF and (ratio := match.quick_ratio()) >= CUTOFF:
            likely.append((ratio, other))
    best, found = CUTOFF, None
    for _, other in sorted(likely, key=lambda pair: -pair[0])[:MAX_COMPARED]:
        match.set_seq1(_plain(other))
        if (ratio := match.ratio()) > best or (found is None and ratio >= best):
            best, found = ratio, other
    return found


def alike(known: Texts, name: str) -> list[str]:
    """Up to `MAX_CANDIDATES` texts to look for `name` in: half of them begin and end as it does, as far as any do and
    whatever the case, the others are the first ones. 25 ms for a million texts.
    """
    known = known[:MAX_SEARCHED]
    lengths, rows, most, looks = np.diff(known.offsets), np.arange(len(known)), MAX_CANDIDATES // 2, 0
    letters = name[:MAX_CHARS].encode("utf-8", "surrogatepass")
    for ordered, first, step in ((letters, known.offsets[:-1], 1), (letters[::-1], known.offsets[1:] - 1, -1)):
        for place, letter in enumerate(ordered):
            looks += len(rows)
            if len(rows) <= most or looks > MAX_LOOKS:
                break
            longer = rows[lengths[rows] > place]
            longer = longer[known.data[first[longer] + step * place] | CASE == letter | CASE]
            if not len(longer):
                break
            rows = longer
    return [known[row] for row in [*rows[:most].tolist(), *range(min(len(known), MAX_CANDIDATES - most))]]


def did_you_mean(name: object, known: Iterable[str], otherwise: str = "") -> str:
    """The end of a sentence: ``; did you mean 'tail'?``, or `otherwise` if no known name is near."""
    near = nearest(name, known) if isinstance(name, str) else None
    return otherwise if near is None else f"; did you mean {near!r}?"


def _plain(name: str) -> str:
    """The name in lower case, with underscores for hyphens and blanks."""
    return name.lower().replace("-", "_").replace(" ", "_")
