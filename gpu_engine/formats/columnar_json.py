"""Columnar JSON: one array per column, numbers read exactly as they are written.

``{"tail": [...], "head": [...], "capacity": [...]}`` and optionally ``n_vertices``, ``undirected`` (one boolean or one
per edge), ``closed`` (a boolean per edge: nothing passes until it is reopened), ``decimals``, ``rounding``,
``edge_ids``, ``vertex_labels``, ``source``, ``sink``, ``cost`` (finite numbers), ``cost_decimals``, and
``vertices`` with ``vertex_capacity``, what may pass each of these vertices; ``x`` and ``y``, where each vertex lies, in
the order of the vertices, and ``crs``.

Capacities are numbers of the caller's unit, strings of such numbers, or ``"inf"``, as other programs spell it too.
Tails, heads, source and sink are vertex indices if they are integers and there are no ``vertex_labels``; else they are
names: those of ``vertex_labels``, or, if they are strings without it, numbered in the order they first appear.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_engine.errors import InvalidNetwork, pointer
from gpu_engine.formats import _capacity, _costs, _lower
from gpu_engine.formats._assemble import assemble, check_edge_count
from gpu_engine.formats._looks import seems_to_be
from gpu_engine.formats._names import Names, as_arrow, as_list, find_label, look_up, number_by_appearance
from gpu_engine.formats._place import ROWS, Place, refusing, shown
from gpu_engine.formats._vertices import VERTEX_ROWS, Limited
from gpu_engine.formats.limits import DEFAULT_LIMITS, Limits, Source, load
from gpu_engine.networks.coordinates import Coordinates, coordinates_of
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.rounding import AS_WRITTEN, Precision
from gpu_engine.text.counted import counted
from gpu_engine.text.infinity import as_inf
from gpu_engine.text.json_fault import json_fault
from gpu_engine.text.near import did_you_mean
from gpu_engine.types import BoolArray, UnitArray

REQUIRED = ("tail", "head", "capacity")
OPTIONAL = (
    *("n_vertices", "undirected", "closed", "decimals", "rounding"),
    *("edge_ids", "vertex_labels", "source", "sink", "cost", "cost_decimals", "lower"),
    *("vertices", "vertex_capacity"),
    *("x", "y", "crs"),
)
AS_COLUMNS: Final = 'a graph is sent as columns, as in {"tail": [0, 1], "head": [1, 2], "capacity": [3, 4]}'
ALMOST: Final = frozenset({"tails", "heads", "capacities", "from", "to"})
"""Other names of the columns. A body with one of these has columns, so its refusal suggests the right name only."""
MAX_MEMBERS: Final = 64
"""If an object with more members has one of them twice, the refusal does not name it."""


class Number(str):
    """A JSON number with a fraction or an exponent, as it was written: half the memory of a `Decimal`."""

    __slots__ = ()


def read_json(source: Source, limits: Limits = DEFAULT_LIMITS, precision: Precision = AS_WRITTEN) -> EdgeList:
    """Read columnar JSON; `InvalidNetwork` names the column and row. About a second for a million edges."""
    data = load(source)
    try:
        body = json.loads(
            str(data, "utf-8-sig"),  # of bytes it would guess an encoding
            parse_float=Number,
            parse_constant=Number,
            object_pairs_hook=_without_repeats,
        )
    except RecursionError:
        raise InvalidNetwork("not JSON we read: nested too deep") from None
    except ValueError as error:
        is_blank = not bytes(data[:32]).strip()
        raise InvalidNetwork(json_fault(error) + ("" if is_blank else seems_to_be(data, "JSON"))) from None
    if not isinstance(body, dict):
        raise InvalidNetwork(f"the body has to be a JSON object; {AS_COLUMNS}")
    return from_columns(body, limits, precision)


def from_columns(
    body: Mapping[str, Any], limits: Limits = DEFAULT_LIMITS, precision: Precision = AS_WRITTEN
) -> EdgeList:
    """The network of a parsed body, whose fields are those of the module docstring as lists and scalars."""
    unknown = sorted(set(body) - {*REQUIRED, *OPTIONAL})
    if unknown:
        others = [name for name in (*REQUIRED, *OPTIONAL) if name not in body]
        is_other_form = not any(name in body for name in REQUIRED) and unknown[0] not in ALMOST
        hint = f"; {AS_COLUMNS}" if is_other_form else did_you_mean(unknown[0], others)
        raise InvalidNetwork(f"unknown field {shown(unknown[0])}{hint}", field=pointer(unknown[0]))
    for name in REQUIRED:
        _column(body, name)
    check_edge_count(len(body["tail"]), limits)
    precision = precision.of_body(body.get("decimals"), body.get("rounding"))
    of_edges = _capacities(body["capacity"], precision, ROWS)
    places, has_costs = precision.of_costs(body.get("cost_decimals")), body.get("cost") is not None
    if not has_costs:
        precision.refuse_costs(body.get("cost_decimals"))
    tail, head, labels, terminals = _vertices(body)
    amounts, limited, lower = _lower.in_same_units(
        of_edges, _limited(body, labels, precision), _lower_bounds(body, precision)
    )
    n_vertices = body.get("n_vertices")
    if n_vertices is not None and type(n_vertices) is not int:
        raise InvalidNetwork(f"n_vertices must be a whole number, not {shown(n_vertices)}", field="/n_vertices")
    coordinates = _coordinates(body, named=labels is not None and body.get("vertex_labels") is None)
    if n_vertices is None and labels is not None:
        n_vertices = len(labels)
    return assemble(
        tail,
        head,
        amounts.units,
        n_vertices=n_vertices,
        undirected=_undirected(body.get("undirected", False)),
        closed=None if body.get("closed") is None else _flags(body["closed"], "closed", "an array of true and false"),
        costs=_cost(body["cost"], places) if has_costs else None,
        lower=lower,
        decimals=amounts.decimals,
        rounded=amounts.rounded,
        edge_ids=None if body.get("edge_ids") is None else _names(body["edge_ids"], "edge_ids"),
        vertex_labels=labels,
        source=terminals[0],
        sink=terminals[1],
        limits=limits,
        limited=limited,
        coordinates=coordinates,
    )


def write_json(edges: EdgeList) -> bytes:
    """The network as columnar JSON; reading it back gives the same columns, ids, labels and terminals."""
    labels = None if edges.vertex_labels is None else np.array(as_list(edges.vertex_labels), dtype=object)

    def named(vertices: Any) -> Any:
        return (vertices if labels is None else labels[vertices]).tolist()

    fields: dict[str, Any] = {"n_vertices": edges.n_vertices, "decimals": edges.decimals}
    fields |= {"tail": named(edges.tail), "head": named(edges.head)}
    whole = isinstance(edges.undirected, bool)
    fields["undirected"] = edges.undirected if whole else np.asarray(edges.undirected).tolist()
    if edges.closed is not None:
        fields["closed"] = edges.closed.tolist()
    if edges.edge_ids is not None:
        fields["edge_ids"] = as_list(edges.edge_ids)
    if labels is not None:
        fields["vertex_labels"] = labels.tolist()
    for name, terminal in (("source", edges.source), ("sink", edges.sink)):
        if terminal is not None:
            fields[name] = named(np.array([terminal]))[0]
    if edges.cost is not None:
        fields["cost_decimals"] = edges.cost_decimals
    if edges.coordinates is not None:
        places = edges.coordinates
        fields |= {"x": places.x.tolist(), "y": places.y.tolist(), "crs": places.crs}
    limits = "" if edges.limited is None else _limits(edges, named(edges.limited))
    head = json.dumps(fields, separators=(",", ":"), ensure_ascii=False)
    capacity = _written(edges.capacity, edges.decimals)
    costs = "" if edges.cost is None else ",".join(_capacity.to_text(edges.cost, edges.cost_decimals).to_pylist())
    cost = "" if edges.cost is None else f',"cost":[{costs}]'
    lower = "" if edges.lower is None else f',"lower":[{_written(edges.lower, edges.decimals)}]'
    return f'{head[:-1]},"capacity":[{capacity}]{cost}{lower}{limits}}}'.encode()


def _written(units: UnitArray, decimals: int) -> str:
    amounts = ",".join(_capacity.to_text(units, decimals).to_pylist())
    return amounts.replace(_capacity.INFINITE_TEXT, f'"{_capacity.INFINITE_TEXT}"')


def _limits(edges: EdgeList, ids: list[Any]) -> str:
    assert edges.vertex_capacity is not None
    capacity = _written(edges.vertex_capacity, edges.decimals)
    return f',"vertices":{json.dumps(ids, ensure_ascii=False)},"vertex_capacity":[{capacity}]'


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    body = dict(pairs)
    if len(body) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1) if len(names) <= MAX_MEMBERS else ""
        raise InvalidNetwork(f"the member {shown(twice)} is there twice" if twice else "a member is there twice")
    return body


def _column(body: Mapping[str, Any], name: str) -> None:
    """Refuse a required column that is missing or is none."""
    if name not in body:
        raise InvalidNetwork(f"the column {name!r} is missing: one value for each edge", field=pointer(name))
    if not isinstance(body[name], list):
        raise InvalidNetwork(_scalar(name, body[name]), field=pointer(name))


def _scalar(name: str, value: object) -> str:
    return f"{name} must be an array, with one value for each edge, not {shown(value)}"


def _kinds(column: list[Any]) -> set[type]:
    return set(map(type, column))


def _refuse_kinds(column: list[Any], allowed: set[type], what: str, message: str) -> None:
    if not _kinds(column) <= allowed:
        bad = np.array([type(item) not in allowed for item in column], dtype=bool)
        ROWS.refuse(bad, message, what=what, value_of=column.__getitem__)


def _integers(column: list[int], what: str) -> NDArray[np.int64]:
    try:
        return np.array(column, dtype=np.int64)
    except OverflowError:
        bad = np.array([not -(2**63) <= item < 2**63 for item in column], dtype=bool)
        hint = ": integers are -2**63 .. 2**63-1, and longer numbers that are names are sent as text"
        ROWS.refuse(bad, "is too large", what=what, value_of=column.__getitem__, hint=hint)
        raise


def _capacities(column: list[Any], precision: Precision, place: Place) -> _capacity.Amounts:
    numbers = _numbers(as_inf(column), place.amounts, "is neither a number nor 'inf'")
    if isinstance(numbers, np.ndarray):
        return _capacity.from_whole(numbers, place, precision)
    return _capacity.from_text(numbers, place, precision)


def _limited(body: Mapping[str, Any], labels: Names | None, precision: Precision) -> Limited | None:
    given = {name: body[name] for name in ("vertices", "vertex_capacity") if body.get(name) is not None}
    if not given:
        return None
    if len(given) == 1:
        raise InvalidNetwork("`vertices` and `vertex_capacity` come together", field=pointer(*given))
    for name, column in given.items():
        if not isinstance(column, list):
            raise InvalidNetwork(f"{name} must be an array, not {shown(column)}", field=pointer(name))
    ids = _names(given["vertices"], "vertices")
    if labels is not None:
        ids = look_up(as_arrow(ids), labels, "vertices")
    elif not isinstance(ids, np.ndarray):
        raise InvalidNetwork("the vertices of this graph are numbered: name them so", field="/vertices")
    return Limited(ids, _capacities(given["vertex_capacity"], precision, VERTEX_ROWS))


def _coordinates(body: Mapping[str, Any], *, named: bool) -> Coordinates | None:
    """``named``: the vertices are numbered as their names first appear."""
    x, y = (None if body.get(name) is None else _floats(body[name], name) for name in ("x", "y"))
    if x is not None and named:
        detail = "x and y stand in the order of `vertex_labels`, which are missing"
        raise InvalidNetwork(detail, field="/vertex_labels")
    if isinstance(body.get("crs"), Number):
        raise InvalidNetwork(f"crs is a text, which stands in quotes, not {shown(body['crs'])}", field="/crs")
    return coordinates_of(x, y, body.get("crs"))


def _floats(column: Any, what: str) -> NDArray[np.float64]:
    if not isinstance(column, list):
        detail = f"{what} must be an array, with one value for each vertex, not {shown(column)}"
        raise InvalidNetwork(detail, field=pointer(what))
    _refuse_kinds(column, {int, float, Number, Decimal}, what, "is no number")
    try:
        return np.fromiter(map(float, column), np.float64, len(column))
    except OverflowError:
        ROWS.refuse(np.array([abs(float(str(item))) == np.inf for item in column]), "is too large", what=what)
        raise


def _cost(column: Any, precision: Precision) -> _capacity.Amounts:
    if not isinstance(column, list):
        raise InvalidNetwork(_scalar("cost", column), field="/cost")
    numbers = _numbers(column, "cost", "is no number")
    if isinstance(numbers, np.ndarray):
        return _costs.from_numbers(numbers, ROWS, None, precision)
    return _costs.from_text(numbers, ROWS, precision)


def _lower_bounds(body: Mapping[str, Any], precision: Precision) -> _capacity.Amounts | None:
    column = body.get("lower")
    if column is None:
        return None
    if not isinstance(column, list):
        raise InvalidNetwork(_scalar("lower", column), field="/lower")
    numbers = _numbers(column, "lower", "is no number")
    if isinstance(numbers, np.ndarray):
        return _lower.from_numbers(numbers, ROWS, 0, precision)
    return _lower.from_text(numbers, ROWS, precision)


def _numbers(column: list[Any], what: str, message: str) -> NDArray[np.int64] | pa.Array:
    """Whole numbers as they are, where all are and they fit; else all as text, whose exact reader names rows."""
    _refuse_kinds(column, {int, float, str, Number, Decimal}, what, message)
    if _kinds(column) <= {int}:
        with suppress(OverflowError):
            return np.array(column, dtype=np.int64)
    with refusing(what, UnicodeError):
        return pa.array([item if isinstance(item, str) else str(item) for item in column], type=pa.large_string())


def _names(column: Any, what: str) -> Names:
    if not isinstance(column, list):
        raise InvalidNetwork(_scalar(what, column), field=pointer(what))
    _refuse_kinds(column, {int, str}, what, "is neither an integer nor text")
    kind = _kinds(column[:1]) or {int}
    one, other = ("an integer", "text") if kind == {int} else ("text", "an integer")
    _refuse_kinds(column, kind, what, f"is {other} and row 0 is {one}: a column has one kind")
    if kind == {int}:
        return _integers(column, what)
    as_arrow(column)  # refuses text that has no UTF-8 form
    return column


def _vertices(
    body: Mapping[str, Any],
) -> tuple[NDArray[np.int64], NDArray[np.int64], Names | None, tuple[int | None, int | None]]:
    """Tail and head indices, labels, and the two terminals."""
    tail, head = _names(body["tail"], "tail"), _names(body["head"], "head")
    if len(tail) != len(head):
        raise InvalidNetwork(f"head has {counted(len(head), 'row')}, tail has {len(tail)}", field="/head")
    labels: Names | None = None
    if body.get("vertex_labels") is not None:
        labels = _names(body["vertex_labels"], "vertex_labels")
        ends = [look_up(as_arrow(end), labels, what) for end, what in ((tail, "tail"), (head, "head"))]
    elif isinstance(tail, np.ndarray) and isinstance(head, np.ndarray):
        ends = [tail, head]
    elif isinstance(tail, np.ndarray) or isinstance(head, np.ndarray):
        raise InvalidNetwork("tail and head must both be integers or both be text")
    else:
        pairs, labels = number_by_appearance(as_arrow(tail), as_arrow(head))
        ends = [pairs[:, 0], pairs[:, 1]]
    return ends[0], ends[1], labels, (_terminal(body, "source", labels), _terminal(body, "sink", labels))


def _terminal(body: Mapping[str, Any], what: str, labels: Names | None) -> int | None:
    name = body.get(what)
    if name is None:
        return None
    if labels is None:
        if type(name) is not int:
            raise InvalidNetwork(f"{what} must be a vertex index, not {shown(name)}", field=pointer(what))
        return name
    if type(name) not in (int, str):
        raise InvalidNetwork(f"{what} must be a vertex label, not {shown(name)}", field=pointer(what))
    return find_label(name, labels, what)


def _undirected(flags: Any) -> bool | BoolArray:
    return flags if isinstance(flags, bool) else _flags(flags, "undirected", "true, false or an array of them")


def _flags(column: Any, what: str, wanted: str) -> BoolArray:
    if not isinstance(column, list):
        raise InvalidNetwork(f"{what} must be {wanted}, not {shown(column)}", field=f"/{what}")
    _refuse_kinds(column, {bool}, what, "is not true or false")
    return np.array(column, dtype=bool)
