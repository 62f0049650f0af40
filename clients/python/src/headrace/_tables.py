"""Tables of edges as columns: data frames, Arrow tables, and mappings of columns such as `numpy.load` gives.

What a file or a page of the service says beside its columns counts here as it does in the file.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from headrace._amounts import loads
from headrace._errors import InvalidInput
from headrace._files_of_columns import OFFSETS, UTF8
from headrace._misspelt import refuse_misspelt
from headrace._mistakes import counted
from headrace._sequences import Texts
from headrace._table_mistakes import refuse_units

REQUIRED: Final = ("tail", "head", "capacity")
OPTIONAL: Final = ("edge_ids", "undirected", "closed", "cost", "lower")
SCALARS: Final = ("n_vertices", "source", "sink")
"""What a table may say of the graph, if it is one value."""
VERTICES: Final = ("tail", "head", "vertices", "source", "sink")
"""What names vertices."""
KEYWORDS: Final = ("decimals", "cost_decimals", "rounding")
NAMES_SHOWN: Final = 8

AsColumn = Callable[[Any], Any]


def of_table(table: Any, given: Mapping[str, Any], as_column: AsColumn, *, are_amounts: bool = False) -> dict[str, Any]:
    """What is ``given``, with the columns that it names, and those that have the names of ours; others of the table are
    left alone. Raises `InvalidInput`, also where whole capacities may count units, unless they ``are_amounts``."""
    if isinstance(table, Mapping) and "answer" in table:  # a page
        table = _with_texts(table)
    names = list(table) if isinstance(table, Mapping) else list(getattr(table, "column_names", table.columns))
    refuse_misspelt(table, names, given)
    said = _said(table, names)
    labels = None if given.get("vertex_labels") is not None else _labels(table, names)
    beside = _beside(table, names, said, labels)
    found = {**beside, **{name: value for name, value in given.items() if value is not None}}
    for field in (*REQUIRED, *OPTIONAL):
        named = given.get(field)
        if not (named is None or _is_name(named, names)):
            continue  # beside the table
        name = field if named is None else named
        if names.count(name) > 1:
            raise InvalidInput(f"the table has more than one column {name!r}")
        if name in names:
            found[field] = _named(_column(table[name], field, name, said, as_column), field, labels)
        elif named is not None or field in REQUIRED:
            shown = ", ".join(map(str, names[:NAMES_SHOWN]))
            is_index = not isinstance(table, Mapping) and name in getattr(getattr(table, "index", None), "names", ())
            told = f"{name!r} is its index: table.reset_index() has it" if is_index else f"its columns are {shown}"
            raise InvalidInput(f"the table has no column {name!r} for {field}=; {told}")
    if isinstance(table, Mapping) and {"x", "y"} <= set(names):
        found = {
            name: table[name] for name in ("x", "y") if "crs" in found or _is_of_vertices(table[name], found)
        } | found
    if "unlimited" in names and (given.get("capacity") is None or _is_name(given["capacity"], names)):
        found["capacity"] = as_column(found["capacity"])
        if "decimals" not in said and not are_amounts:
            refuse_units(found["capacity"])
        found["capacity"] = _without_limits(found["capacity"], _flags(as_column(table["unlimited"]), "unlimited"))
    return found


def _is_name(given: object, names: list[Any]) -> bool:
    """Whether what is given for a column names one; in a table of pandas with levels of names, that is a tuple."""
    if isinstance(given, tuple):
        return all(isinstance(part, str | int) for part in given) and given in names
    return isinstance(given, str)


def _with_texts(page: Mapping[Any, Any]) -> dict[Any, Any]:
    """With each column of text as one, which is two arrays in the npz of a page."""
    texts = [name.removesuffix(UTF8) for name in page if name.endswith(UTF8)]
    apart = {f"{name}{ending}" for name in texts for ending in (UTF8, OFFSETS)}
    found = {name: page[name] for name in page if name not in apart}
    return found | {name: Texts(page[f"{name}{UTF8}"], page[f"{name}{OFFSETS}"]).decoded() for name in texts}


def _said(table: Any, names: list[Any]) -> dict[str, Any]:
    """What an Arrow schema, or an archive of NumPy, says beside the columns."""
    metadata = getattr(getattr(table, "schema", None), "metadata", None) or {}
    said: dict[str, Any] = {
        key.decode(): value.decode() for key, value in metadata.items() if key in (b"labelled", b"undirected")
    }
    counts = (b"decimals", b"cost_decimals", b"n_vertices", b"source", b"sink")
    said |= {key.decode(): _count(key.decode(), value) for key, value in metadata.items() if key in counts}
    if not isinstance(table, Mapping):
        return said
    if "answer" in names:  # a page
        page = loads(np.asarray(table["answer"]).tobytes())
        said |= {name: page[name] for name in ("decimals", "cost_decimals") if page.get(name) is not None}
    for name in KEYWORDS:
        if name not in names:
            continue
        if not isinstance(table[name], np.ndarray | np.generic):
            raise InvalidInput(f"{name}= is no column: give it to put_graph() beside the table")
        said[name] = _scalar(table[name])
    return said


def _labels(table: Any, names: list[Any]) -> NDArray[Any] | None:
    """The names of the vertices in an archive, of which its other columns have the indices."""
    if "vertex_labels" not in names or not (isinstance(table, np.lib.npyio.NpzFile) or "decimals" in names):
        return None
    return np.asarray(table["vertex_labels"])


def _named(column: Any, field: str, labels: NDArray[Any] | None) -> Any:
    """Vertices by their names, where the column has indices."""
    if labels is None or field not in VERTICES:
        return column
    rows = np.asarray(column)
    if rows.dtype.kind not in "iu" or rows.min(initial=0) < 0 or rows.max(initial=-1) >= len(labels):
        indices = f"indices of its {counted(len(labels), 'name')} in vertex_labels"
        raise InvalidInput(f"{field} of the archive has other values than {indices}")
    return labels[rows]


def _beside(table: Any, names: list[Any], said: Mapping[str, Any], labels: NDArray[Any] | None) -> dict[str, Any]:
    """What is told of the graph and is no column of its edges."""
    if said.get("labelled") == "true":
        raise InvalidInput("what the file says of its vertices is in a second table: send the file, by its path")
    found: dict[str, Any] = {name: said[name] for name in SCALARS if name in said}
    if "undirected" in said:
        found["undirected"] = said["undirected"] == "true"
    if not isinstance(table, Mapping):
        return found
    scalars = {name: table[name] for name in SCALARS if name in names and np.ndim(table[name]) == 0}
    found |= {name: _scalar(_named(value, name, labels)) for name, value in scalars.items()}
    if "vertex_labels" in names:
        found["vertex_labels"] = table["vertex_labels"]
    if "crs" in names and np.ndim(table["crs"]) == 0:
        found["crs"] = _scalar(table["crs"])
    if "vertex_capacity" in names and "vertices" in names:
        capacity = _amounts(np.asarray(table["vertex_capacity"]), said.get("decimals", 0))
        if "vertex_unlimited" in names:
            capacity = _without_limits(capacity, _flags(np.asarray(table["vertex_unlimited"]), "vertex_unlimited"))
        found |= {"vertices": _named(table["vertices"], "vertices", labels), "vertex_capacity": capacity}
    return found


def _is_of_vertices(column: Any, found: Mapping[str, Any]) -> bool:
    """Whether x or y says where vertices lie. One with a row for each edge, where there are more or fewer vertices, is
    left alone as others of the table are."""
    if not hasattr(column, "__len__") or not hasattr(found["tail"], "__len__") or len(column) != len(found["tail"]):
        return True
    if found.get("vertex_labels") is not None:
        return len(column) == len(found["vertex_labels"])
    if found.get("n_vertices") is not None:
        return bool(len(column) == found["n_vertices"])
    ends = np.concatenate([np.asarray(found[end]).ravel() for end in ("tail", "head")])
    n_vertices = ends.max(initial=-1) + 1 if ends.dtype.kind in "iu" else len(set(ends.tolist()))
    return bool(len(column) == n_vertices)


def _column(column: Any, field: str, name: str, said: Mapping[str, Any], as_column: AsColumn) -> Any:
    if field == "closed":
        return _flags(as_column(column), name)
    if field in ("capacity", "lower"):
        return _amounts(column, said.get("decimals", 0), as_column)
    return _amounts(column, said.get("cost_decimals", 0), as_column) if field == "cost" else column


def _amounts(column: Any, decimals: int, as_column: AsColumn = lambda column: column) -> Any:
    """Whole numbers beside ``decimals`` count units, as they do in a file."""
    if not decimals:
        return column
    units = as_column(column)
    if not isinstance(units, np.ndarray) or units.dtype.kind not in "iu":
        return column
    return [Decimal(f"{each}e-{decimals}") for each in units.tolist()]


def _without_limits(capacity: Any, unlimited: NDArray[np.bool_]) -> Any:
    """The capacities, with infinity in place of whatever stands where there is no limit."""
    if not unlimited.any():
        return capacity
    if len(capacity) != len(unlimited):
        raise InvalidInput(f"unlimited has {counted(len(unlimited), 'row')}, and capacity has {len(capacity)}")
    if isinstance(capacity, np.ndarray) and capacity.dtype.kind == "f":
        return np.where(unlimited, np.inf, capacity)
    values: list[Any] = capacity.tolist() if hasattr(capacity, "tolist") else list(capacity)
    return [np.inf if never else value for value, never in zip(values, unlimited.tolist(), strict=True)]


def _flags(column: Any, name: str) -> NDArray[np.bool_]:
    flags = np.asarray(column)
    if flags.ndim != 1 or not (flags.dtype.kind == "b" or all(isinstance(each, bool) for each in flags.tolist())):
        raise InvalidInput(f"the column {name!r} of the table has other values than true and false")
    return flags.astype(np.bool_)


def _scalar(value: Any) -> Any:
    return value.item() if isinstance(value, np.ndarray | np.generic) and np.ndim(value) == 0 else value


def _count(name: str, text: bytes) -> int:
    if not text.isdigit():
        raise InvalidInput(f"{name} of the table's schema is no whole number: {text[:20]!r}")
    return int(text)
