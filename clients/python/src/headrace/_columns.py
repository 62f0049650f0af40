"""What callers have, as columns: NetworkX graphs, SciPy matrices, arrays and tables. None of their libraries is needed.

They are told by their methods, so that pandas, Polars and whatever else looks alike are read without being imported.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from headrace._amounts import Amount, Series
from headrace._errors import InvalidInput
from headrace._places import places, places_of_nodes
from headrace._results import EdgeId, Vertex
from headrace._tables import of_table

OWN = ("tail", "head", "n_vertices", "undirected", "vertex_labels")
"""What a graph of another library says of itself."""

OPEN_CAPACITY = "open_capacity"
"""The attribute that closed edges have beside their capacity of 0 in what `to_networkx` and `to_igraph` give."""

SHOWN = 8
"""Names in an error message."""


class GraphColumns(TypedDict, total=False):
    """A graph as columns, one row per edge; the keyword arguments of `put_graph`. None is as if left out.

    With a table (a pandas DataFrame), `tail`, `head`, `capacity`, `edge_ids`, `undirected`, `closed`, `cost` and
    `lower` may name its columns; by default they have these names, the last five only if they are there. Where its
    column `unlimited` is true an edge never limits, whatever its capacity is; `decimals` of an Arrow schema, or of an
    archive that NumPy has read, say what whole amounts count, as in the file; where such an archive has
    `vertex_labels`, what names vertices are indices of these. `x` and `y` of a dict are those of vertices, unless they
    have a row for each edge and there are more or fewer vertices. Whole capacities beside `unlimited` in a table that
    says no decimals (any more, as pandas drops them) are refused unless you say `decimals=0`.
    """

    tail: Sequence[Vertex] | NDArray[Any] | Series | str
    """Vertex indices or labels, m rows."""
    head: Sequence[Vertex] | NDArray[Any] | Series | str
    capacity: Sequence[Amount] | NDArray[Any] | Series | str | Callable[[Any, Any, Any], Any]
    """m amounts; `math.inf` never limits. With a NetworkX graph: the edge attribute, "capacity" by default, or, as from
    NetworkX 3.7 on, a function of an edge's tail, head and attributes; an edge for which it is None carries nothing."""
    n_vertices: int | None
    """One more than the largest index by default; not needed with labels."""
    undirected: bool | Sequence[bool] | NDArray[np.bool_] | Series | str | None
    """Whether all edges, or which, carry flow either way."""
    closed: Sequence[bool] | NDArray[np.bool_] | Series | str | None
    """Which edges let nothing through until they are reopened. With a NetworkX or igraph graph it may be the name of
    the edge attribute; an edge without it is open. A closed one that has the attribute `open_capacity`, as in what
    `to_networkx` gives, has that capacity once it is reopened."""
    edge_ids: Sequence[EdgeId] | NDArray[Any] | Series | str | None
    """Your ids, unique; the row numbers by default. With a NetworkX or igraph graph it may be the name of the attribute
    that all edges have."""
    vertex_labels: Sequence[Vertex] | NDArray[Any] | Series | None
    """Your names of all vertices, integers or strings; tail and head then hold names."""
    decimals: int | None
    """Places all amounts are kept to; by default the fewest that hold every capacity exactly."""
    rounding: str | None
    """What becomes of a capacity with more places: "error" (default), "nearest", "down" or "up"; needs `decimals`."""
    cost: Sequence[Amount] | NDArray[Any] | Series | str | None
    """What a unit of flow costs on each edge, for `min_cost_flow`; negative on directed edges alone. With a NetworkX
    graph: the edge attribute, by default none; an edge without it costs 0."""
    cost_decimals: int | None
    """Places that costs are kept to; by default the fewest that hold every cost exactly."""
    lower: Sequence[Amount] | NDArray[Any] | Series | str | None
    """What each edge carries at least, for `circulation`, in the places of the capacities; of directed edges alone,
    unless 0. With a NetworkX graph: the edge attribute, by default none; an edge without it has 0."""
    vertex_capacities: Mapping[Any, Amount] | str | None
    """What may pass a vertex, inflow plus own supply: amounts by vertex, `math.inf` for one that is to get a limit by
    `patch(vertices=...)` later. Other vertices never have one. With a NetworkX or igraph graph it may be the name of
    the attribute that such vertices have."""
    x: Sequence[float] | NDArray[Any] | Series | str | None
    """Where each vertex lies, with `y`: as many as there are vertices, in the order of `vertex_labels`. With a NetworkX
    graph: the attribute of its nodes; by default "x" and "y" if all nodes have them and the graph has a `crs`."""
    y: Sequence[float] | NDArray[Any] | Series | str | None
    crs: str | None
    """What x and y are: "EPSG:4326", longitude and latitude, by default; at most 64 characters."""
    source: Vertex | None
    """Default terminals of `max_flow`."""
    sink: Vertex | None


def as_column(given: Any) -> Any:
    """A pandas or Polars Series, or an Arrow array, as NumPy; what else is iterated over (a column of an answer, say)
    as a list of its values; anything else as it is. Raises `InvalidInput` for a row that is masked."""
    if isinstance(given, np.ma.MaskedArray):
        masked = np.flatnonzero(np.ma.getmaskarray(given))
        if len(masked):
            raise InvalidInput(f"row {masked[0]} of a masked array has no value")
        return given.data
    if hasattr(given, "to_numpy"):
        # An Arrow array has texts and flags for `asarray` alone: its `to_numpy` copies nothing unless it is told to.
        return np.asarray(given if hasattr(given, "to_pylist") else given.to_numpy())
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | list | tuple | np.ndarray | Mapping):
        return list(given)
    return given


def has_attributes(graph: object) -> bool:
    """Whether its vertices have attributes: a NetworkX or an igraph graph."""
    return _is_networkx(graph) or _is_igraph(graph)


def _is_networkx(graph: object) -> bool:
    return hasattr(graph, "is_directed") and hasattr(graph, "nodes")


def _is_igraph(graph: object) -> bool:
    return hasattr(graph, "get_edgelist") and hasattr(graph, "es")


def columns_of(graph: object, columns: GraphColumns, *, are_amounts: bool = False) -> GraphColumns:
    """The columns of whatever describes a graph. Raises `InvalidInput` for what is none.

    Args:
        are_amounts: whether the caller says that whole numbers are no units, of which a table may not say the size.
    """
    if graph is None:
        return columns
    if _is_networkx(graph):
        return _of_networkx(graph, columns)
    if _is_igraph(graph):
        return _of_igraph(graph, columns)
    if hasattr(graph, "tocoo"):
        return _of_matrix(graph.tocoo(), columns)
    if callable(getattr(type(graph), "collect", None)):  # a LazyFrame, say, which has names and no values
        raise InvalidInput(f"no graph: a {type(graph).__name__} has not been computed; send the table of its collect()")
    described = getattr(graph, "columns", None)
    if isinstance(described, dict):  # a `Grid`
        _refuse_own("a Grid", columns, described, ("tail", "head", "capacity", "n_vertices", "undirected"))
        return {**described, **columns}
    if isinstance(graph, Mapping) or (hasattr(graph, "columns") and hasattr(graph, "__getitem__")):
        of_names = of_table(graph, columns, as_column, are_amounts=are_amounts)
        return of_names  # type: ignore[return-value]  # with columns in place of their names
    if isinstance(graph, np.ndarray) and graph.dtype.names:
        columns_of_it = "{name: array[name] for name in array.dtype.names}"
        raise InvalidInput(f"no graph: an array of the fields {', '.join(graph.dtype.names)}; send {columns_of_it}")
    if isinstance(graph, np.ndarray):
        return _of_dense(graph, columns)
    what = "columns, a NetworkX or igraph graph, a SciPy matrix, a square array, a DataFrame, a Grid, or a file's path"
    hint = " (of a list of edges make columns: tail, head, capacity = zip(*edges))" if isinstance(graph, list) else ""
    raise InvalidInput(f"no graph: {type(graph).__name__}; send {what}{hint}")


def _of_networkx(graph: Any, columns: GraphColumns) -> GraphColumns:
    """Nodes 0 .. n-1 are vertices by index, other integers and strings by label, anything else by `str(node)`.

    An edge without the attribute is unlimited, as in NetworkX; a graph none of whose edges has it is refused.
    """
    nodes = list(graph.nodes)
    kinds = set(map(type, nodes))
    are_whole = all(kind is int or issubclass(kind, np.integer) for kind in kinds)  # NumPy's, as arrays give them
    as_label: Callable[[Any], Vertex] = int if are_whole else str
    name = {node: as_label(node) for node in nodes}
    if len(set(name.values())) != len(nodes):
        raise InvalidInput(f"{_alike(name)} have the same str(), by which nodes are called unless all are integers")
    edges = list(graph.edges(data=True))
    described: GraphColumns = {
        "tail": [name[tail] for tail, _, _ in edges],
        "head": [name[head] for _, head, _ in edges],
        "capacity": _capacities(edges, columns.get("capacity", "capacity")),
        "undirected": not graph.is_directed(),
    }
    if are_whole and set(nodes) == set(range(len(nodes))):
        described["n_vertices"] = len(nodes)
        nodes.sort()
    else:
        described["vertex_labels"] = list(name.values())
    for of in ("cost", "lower"):
        named: Any = columns.get(of)
        if isinstance(named, str):
            if edges and not any(named in data for _, _, data in edges):
                told = f"no edge has the attribute {named!r}: {_others(edges)}"
                raise InvalidInput(told.replace("capacity=", f"{of}="))
            described[of] = [data.get(named, 0) for _, _, data in edges]
    described |= _ids_and_closed(columns, described, lambda named: [data.get(named) for _, _, data in edges])
    _refuse_own("a NetworkX graph", columns, described)
    limits = _limits(columns, [(name[node], data) for node, data in graph.nodes(data=True)])
    # mypy cannot merge dicts whose members may be absent; all names here are those of GraphColumns
    merged: GraphColumns = {**columns, **described, **limits, **places_of_nodes(graph, nodes, columns)}  # type: ignore[typeddict-item]
    for terminal in ("source", "sink"):
        if columns.get(terminal) is not None:
            merged[terminal] = name.get(columns[terminal], columns[terminal])
    return merged


def _capacities(edges: Sequence[tuple[Any, Any, Mapping[Any, Any]]], capacity: Any) -> list[Any]:
    """The capacities of the edges of a NetworkX graph by an attribute of them, or by a function of tail, head and
    attributes, which hides an edge by None."""
    if callable(capacity):
        amounts = (capacity(tail, head, data) for tail, head, data in edges)
        return [0 if amount is None else amount for amount in amounts]
    if not isinstance(capacity, str):
        told = "an edge attribute, or is a function of an edge's tail, head and attributes"
        raise InvalidInput(f"with a NetworkX graph, capacity names {told}; for a column of amounts send columns")
    if edges and not any(capacity in data for _, _, data in edges):
        raise InvalidInput(f"no edge has the attribute {capacity!r}: {_others(edges)}")
    return [data.get(capacity, np.inf) for _, _, data in edges]


def _alike(name: Mapping[Any, Vertex]) -> str:
    """The first two nodes of one name."""
    first: dict[Vertex, Any] = {}
    return next(
        f"the nodes {first[text]!r} and {node!r}"
        for node, text in name.items()
        if first.setdefault(text, node) is not node
    )


def _of_igraph(graph: Any, columns: GraphColumns) -> GraphColumns:
    """Vertices are called by their attribute `name` if they have it, else by index; edges are numbered as they are."""
    ends = graph.get_edgelist()
    described: GraphColumns = {"n_vertices": graph.vcount(), "undirected": not graph.is_directed()}
    label: Callable[[int], Vertex] = int
    if "name" in graph.vs.attributes():
        described["vertex_labels"] = graph.vs["name"]
        label = graph.vs["name"].__getitem__
    described["tail"], described["head"] = [label(tail) for tail, _ in ends], [label(head) for _, head in ends]
    wanted: dict[str, object] = {name: columns.get(name) for name in ("capacity", "cost", "lower")}
    wanted["capacity"] = wanted["capacity"] or "capacity"
    for name, attribute in wanted.items():
        if not isinstance(attribute, str):
            continue
        if ends and attribute not in graph.es.attributes():
            known = [(0, 0, dict.fromkeys(graph.es.attributes()))]
            raise InvalidInput(
                f"no edge has the attribute {attribute!r}: {_others(known)}".replace("capacity=", f"{name}=")
            )
        described[name] = graph.es[attribute] if ends else []  # type: ignore[literal-required]  # a column of amounts

    def column_of(name: str) -> list[Any]:
        return list(graph.vs[name]) if name in graph.vs.attributes() else [None] * graph.vcount()

    def of_edges(name: str) -> list[Any]:
        return list(graph.es[name]) if name in graph.es.attributes() else [None] * len(ends)

    described |= _ids_and_closed(columns, described, of_edges)
    crs = graph["crs"] if "crs" in graph.attributes() else None
    _refuse_own("an igraph graph", columns, described)
    limits = _limits(columns, [(label(vertex.index), vertex.attributes()) for vertex in graph.vs])
    # mypy cannot merge dicts whose members may be absent; all names here are those of GraphColumns
    return {**columns, **described, **limits, **places(range(graph.vcount()), column_of, crs, columns)}  # type: ignore[typeddict-item]


def _ids_and_closed(
    columns: GraphColumns, described: GraphColumns, column_of: Callable[[str], list[Any]]
) -> GraphColumns:
    """The ids of the edges, and which are closed, by the attributes that the caller names; ``column_of`` one has a
    value for each edge, None where it has none. No edge needs `closed`, which `to_networkx` gives to closed ones. Their
    capacities, where they are ``described`` by an attribute, are those that they have open."""
    found: GraphColumns = {}
    ids, closed = columns.get("edge_ids"), columns.get("closed")
    if isinstance(ids, str):
        named = column_of(ids)
        if None in named:
            raise InvalidInput(f"edge {named.index(None)} has no attribute {ids!r}, which edge_ids= names")
        found["edge_ids"] = named
    if isinstance(closed, str):
        flags = column_of(closed)
        if closed != "closed" and flags and all(flag is None for flag in flags):
            raise InvalidInput(f"no edge has the attribute {closed!r}, which closed= names")
        odd = [flag for flag in flags if flag is not None and not isinstance(flag, bool | np.bool_)]
        if odd:
            raise InvalidInput(f"the attribute {closed!r} of edges is True or False, not {odd[0]!r:.80}")
        found["closed"] = np.array([bool(flag) for flag in flags], np.bool_)
        amounts: Any = described.get("capacity")
        if amounts is not None and isinstance(columns.get("capacity", "capacity"), str):
            rows = zip(flags, column_of(OPEN_CAPACITY), amounts, strict=True)
            found["capacity"] = [kept if flag and kept is not None else amount for flag, kept, amount in rows]
    return found


def _limits(columns: GraphColumns, vertices: Sequence[tuple[Vertex, Mapping[str, Any]]]) -> dict[str, Any]:
    """The capacities of the vertices, by the attribute that the caller names; of those that have it, and not None."""
    attribute = columns.get("vertex_capacities")
    if not isinstance(attribute, str):
        return {}
    found = [(vertex, data[attribute]) for vertex, data in vertices if data.get(attribute) is not None]
    if not found:
        raise InvalidInput(f"no vertex has the attribute {attribute!r}, which vertex_capacities= names")
    names, amounts = zip(*found, strict=True)
    return {"vertices": list(names), "vertex_capacity": list(amounts), "vertex_capacities": None}


def _others(edges: Sequence[tuple[Any, Any, Mapping[Any, Any]]]) -> str:
    """Which attributes there are, for a caller who named another one."""
    found = sorted({str(key) for _, _, data in edges for key in data})
    return f"use capacity= with one of {', '.join(found[:SHOWN])}" if found else "edges have no attributes at all"


def _of_matrix(matrix: Any, columns: GraphColumns) -> GraphColumns:
    """Entry (i, j) of a square sparse matrix or array is the capacity of an edge from i to j."""
    n_vertices = _order(matrix.shape)
    return _entries(matrix.row, matrix.col, matrix.data, n_vertices, columns)


def _of_dense(matrix: NDArray[Any], columns: GraphColumns) -> GraphColumns:
    """As a sparse matrix; an entry of zero is no edge."""
    n_vertices = _order(matrix.shape)
    row, column = np.nonzero(matrix)
    return _entries(row, column, np.asarray(matrix[row, column]).ravel(), n_vertices, columns)


def _entries(
    row: NDArray[Any], column: NDArray[Any], data: NDArray[Any], n_vertices: int, columns: GraphColumns
) -> GraphColumns:
    capacity = data.astype(np.int8) if data.dtype.kind == "b" else data
    described: GraphColumns = {"tail": row, "head": column, "capacity": capacity, "n_vertices": n_vertices}
    _refuse_own("a matrix", columns, described, ("tail", "head", "capacity"))
    return described | columns


def _refuse_own(what: str, given: GraphColumns, own: Mapping[str, Any], names: Sequence[str] = OWN) -> None:
    """Raise `InvalidInput` for what a graph says itself, unless it says the same."""
    for name in names:
        told, said = given.get(name), own.get(name)
        if told is None or (isinstance(told, int) and isinstance(said, int) and told == said):
            continue
        raise InvalidInput(f"{what} has its own {name}: leave {name}= out, or send columns")


def _order(shape: tuple[int, ...]) -> int:
    if len(shape) != 2 or shape[0] != shape[1]:
        edges = "; of rows of edges make columns: tail, head, capacity = edges.T" if shape[1:] == (3,) else ""
        raise InvalidInput(f"a matrix of shape {' x '.join(map(str, shape))} is no graph; it must be square{edges}")
    return int(shape[0])
