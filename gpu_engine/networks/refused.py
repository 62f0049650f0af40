"""What a refused batch says: which operation, which of its rows, which edges, in the caller's own names."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Protocol
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from gpu_engine.errors import ROWS_SHOWN, EngineError, InvalidNetwork, UnknownEdge, UnknownVertex, Where, shown
from gpu_engine.networks.network import Network
from gpu_engine.text.names import Names
from gpu_engine.text.near import MAX_CHARS, alike, did_you_mean
from gpu_engine.text.texts import Texts
from gpu_engine.types import EdgeArray

Ids = Sequence[int] | Sequence[str] | NDArray[np.int64]


class OperationLike(Protocol):
    """One operation: edges by id, or by tail and head; decimal literals for set, add and scale."""

    @property
    def op(self) -> Literal["set", "add", "scale", "close", "reopen"]: ...
    @property
    def edges(self) -> Ids | None: ...
    @property
    def tail(self) -> Ids | None: ...
    @property
    def head(self) -> Ids | None: ...
    @property
    def amounts(self) -> Sequence[str] | None: ...


def complete(
    network: Network, batch: Sequence[OperationLike], place: int, found: Sequence[EdgeArray], where: Where
) -> Where:
    """What is at fault in one operation, whose rows are known, with its place and the ids of its edges.

    Args:
        found: the edges of the rows of each operation, as far as they have been looked up.
    """
    op = batch[place].op
    if where.field == "/edges" and batch[place].edges is None:
        where = replace(where, field="/tail")
    if where.rows and where.field is None and op in ("set", "add", "scale"):
        where = replace(where, field=f"/{op}")
    if where.rows and not where.edges and place < len(found):
        edges = found[place][np.array(where.rows, np.int64)]
        where = replace(where, edges=shown(network.edge_ids.of(edges[edges >= 0])))
    if len(batch) > 1:
        where = replace(where, operation=place, field=where.field and f"/batch/{place}{where.field}")
    return where


def unknown_edges(network: Network, operation: OperationLike, rows: EdgeArray) -> EngineError:
    """The refusal of an operation some of whose `rows` are -1."""
    count = int((rows < 0).sum())
    missing = np.flatnonzero(rows < 0)[:ROWS_SHOWN].tolist()
    more = f" (and {count - 1} more)" if count > 1 else ""
    if operation.edges is not None:
        names = [_plain(operation.edges[i]) for i in missing]
        was = network.edge_ids.rows(_column(names[0]))[0] if _fits(names[0]) else -1
        if was >= 0:
            return UnknownEdge(f"the edge {_short(names[0])}{more} was deleted", missing, edges=names, field="/edges")
        hint = near(network.edge_ids, names[0], "edge", network.n_edges)
        return UnknownEdge(f"there is no edge {_short(names[0])}{more}{hint}", missing, edges=names, field="/edges")
    assert operation.tail is not None
    assert operation.head is not None
    tail, head = _plain(operation.tail[missing[0]]), _plain(operation.head[missing[0]])
    for name, field in ((tail, "/tail"), (head, "/head")):
        row = network.vertex_labels.rows(_column(name))
        if row[0] < 0 or network.are_gone(row)[0]:
            return unknown_vertices(network, [name], [missing[0]], field=field)
    return UnknownEdge(f"no edge leads from {_short(tail)} to {_short(head)}{more}", missing, field="/tail")


def unknown_vertices(
    network: Network, names: Sequence[Any], rows: Sequence[int], *, kind: str = "", count: int = 1, field: str
) -> UnknownVertex:
    """The refusal of names that no vertex has, the first of `count`."""
    more, named = f" (and {count - 1} more)" if count > 1 else "", f"{kind and kind + ' '}{_short(names[0])}"
    row = network.vertex_labels.rows(_column(names[0])) if _fits(names[0]) else np.array([-1])
    if row[0] >= 0:
        return UnknownVertex(f"{named} is a vertex that was deleted{more}", rows, vertices=names, field=field)
    hint = near(network.vertex_labels, names[0], "vertex", network.n_vertices)
    detail = f"{named} is no vertex of the graph{more}{hint}"
    return UnknownVertex(detail, rows, vertices=names, field=field)


def numbered_vertices(network: Network) -> InvalidNetwork:
    """The refusal of names for vertices of a network that numbers them."""
    hint = _names_at_load("vertex", network.n_vertices)
    return InvalidNetwork(f"the vertices of this graph are numbered: insert them by `count`; {hint}", field="/vertices")


def numbered_edges(network: Network) -> InvalidNetwork:
    """The refusal of ids for edges of a network that numbers them."""
    hint = _names_at_load("edge", network.n_edges)
    return InvalidNetwork(f"the edges of this graph are numbered: leave `edge_ids` out; {hint}", field="/edge_ids")


def _names_at_load(kind: str, count: int) -> str:
    """What a load sends so that vertices, or edges, have names: a network that began without any never gets them."""
    member, plural = ("vertex_labels", "vertices") if kind == "vertex" else ("edge_ids", "edges")
    empty = "" if count else f', or while it has no {plural} with `"{member}": []`'
    return f"for names of your own load the graph with `{member}`{empty}"


def near(names: Names, wanted: object, kind: str, count: int) -> str:
    """The end of a sentence about a name that is not there: one that is, or what names there are."""
    if names.column is None:
        if isinstance(wanted, str) and not count:
            return f"; the graph numbers what it gets: {_names_at_load(kind, count)}"
        return f"; the {kind} names of this graph are the numbers 0 .. {count - 1}" if count else ""
    if isinstance(wanted, str):
        other = _same_but_for_case(names, wanted)
        if other is not None and normalize("NFC", other) == normalize("NFC", wanted):
            return f"; there is {other!a}, which is read the same and is written in other characters than {wanted!a}"
        if other is not None:
            return f"; did you mean {other!r}?"
    if count and isinstance(wanted, str) != names.is_text:
        return f"; the {kind} names of this graph are {'text' if names.is_text else 'numbers'}"
    if not isinstance(wanted, str) or not isinstance(names.column, Texts):
        return ""
    return did_you_mean(wanted, alike(names.column, wanted))


def _same_but_for_case(names: Names, wanted: str) -> str | None:
    """A name that is written a little otherwise, however many there are."""
    if len(wanted) > MAX_CHARS or isinstance(names.column, np.ndarray):
        return None
    plain = wanted.strip()
    forms = [plain, plain.lower(), plain.upper(), plain.title(), plain.capitalize()]
    forms += [normalize("NFC", wanted), normalize("NFD", wanted)]
    forms += [plain.replace("-", "_"), plain.replace("_", "-"), plain.replace(" ", "_")]
    found = np.flatnonzero(names.rows(forms) >= 0)
    return forms[int(found[0])] if len(found) else None


def _plain(name: Any) -> Any:
    """The name as Python has it: a packed column gives integers of NumPy, whose repr says so."""
    return name.item() if isinstance(name, np.generic) else name


def _short(name: object) -> str:
    return repr(name if not isinstance(name, str) or len(name) <= MAX_CHARS else name[:MAX_CHARS] + "...")


def _fits(name: Any) -> bool:
    return isinstance(name, str) or -(2**63) <= name < 2**63


def _column(name: Any) -> Any:
    return [name] if isinstance(name, str) else np.array([name])
