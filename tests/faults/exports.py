"""Exported graphs, read back without the service's code: npz by NumPy, Arrow by pyarrow, DIMACS as text.

Each becomes the columns that docs/formats.md says the file has, as plain lists, so that a history can be saved.
"""

import base64
import hashlib
import io
import zipfile
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tests.faults.history import CRS, SOURCE
from tests.faults.limits import UNLIMITED
from tests.faults.model import State

Columns = dict[str, Any]
"""`n_vertices`, `tail`, `head`, `capacity`, `closed` (None where the format does not have it), `source`, `sink`,
`edge_ids` where edges are not numbered, and `cost` if the graph has costs."""


def read_npz(content: bytes) -> Columns:
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        columns = {name: arrays[name].tolist() for name in arrays.files}
    places = columns.pop("decimals"), columns.pop("cost_decimals", 0)
    _refuse(columns.pop("undirected"), columns.pop("unlimited", None), *places)
    closed = columns.pop("closed", None) or [False] * len(columns["tail"])
    unlimited = columns.pop("vertex_unlimited", None) or [False] * len(columns.get("vertices", []))
    limits = {
        vertex: UNLIMITED if has_none else units
        for vertex, units, has_none in zip(
            columns.pop("vertices", []), columns.pop("vertex_capacity", []), unlimited, strict=True
        )
    }
    return columns | {"closed": closed, "limits": limits}


def read_arrow(content: bytes) -> Columns:
    source = io.BytesIO(content)
    table: Any = pa.ipc.open_stream(source).read_all()
    columns = table.to_pydict()
    vertices = pa.ipc.open_stream(source).read_all().to_pydict() if source.tell() < len(content) else {"capacity": []}
    unlimited = vertices.get("unlimited") or ()
    limits = {v: UNLIMITED for v, has_none in enumerate(unlimited) if has_none}
    units_of = enumerate(vertices.get("capacity", ()))
    limits |= {v: units for v, units in units_of if units is not None and v not in limits}
    said = {name.decode(): value.decode() for name, value in table.schema.metadata.items()}
    places = int(said["decimals"]), int(said.get("cost_decimals", "0"))
    _refuse(said["undirected"] != "false", columns.pop("unlimited", None), *places)
    closed = columns.pop("closed", None) or [False] * len(columns["tail"])
    columns |= {"closed": closed, "limits": limits}
    columns |= {name: vertices[name] for name in ("x", "y") if name in vertices}
    columns |= {"crs": said["crs"]} if "crs" in said else {}
    if "label" in vertices:
        columns["vertex_labels"] = vertices["label"]
    return columns | {name: int(said[name]) for name in ("n_vertices", "source", "sink")}


def read_dimacs(content: bytes) -> Columns:
    """A closed edge has capacity 0. Vertices count from 1 in the file."""
    lines = [line.split() for line in content.decode("ascii").splitlines() if line and not line.startswith("c")]
    (problem,) = [line for line in lines if line[0] == "p"]
    ends = {line[2]: int(line[1]) - 1 for line in lines if line[0] == "n"}
    arcs = np.array([line[1:] for line in lines if line[0] == "a"], np.int64)
    if len(lines) != 1 + len(ends) + len(arcs) or problem[:2] != ["p", "max"] or int(problem[3]) != len(arcs):
        raise ValueError(f"{len(lines)} lines, {len(arcs)} arcs, and it says {problem}")
    tail, head, capacity = (column.tolist() for column in (arcs[:, 0] - 1, arcs[:, 1] - 1, arcs[:, 2]))
    columns = {"tail": tail, "head": head, "capacity": capacity, "closed": None, "limits": {}}
    return columns | {"n_vertices": int(problem[2]), "source": ends["s"], "sink": ends["t"]}


def _refuse(undirected: Any, unlimited: Any, *decimals: Any) -> None:
    """The histories have no undirected edges, none without limit, and whole amounts and costs alone."""
    if np.any(undirected) or np.any(unlimited or False) or any(decimals):
        raise ValueError(f"nobody loaded such a graph: {undirected}, {decimals} decimals")


READERS: Final[Mapping[str, Callable[[bytes], Columns]]] = MappingProxyType(
    {
        "application/x-npz": read_npz,
        "application/vnd.apache.arrow.stream": read_arrow,
        "text/x-dimacs": read_dimacs,
    }
)
"""By the media type of the answer."""


def read_export(headers: Mapping[str, str], content: bytes) -> Columns:
    """The columns of an answer with its version, which is its ETag; `broken` says why the file cannot be read."""
    try:
        digest = base64.b64encode(hashlib.sha256(content).digest()).decode()
        if headers["repr-digest"] != f"sha-256=:{digest}:":
            raise ValueError(f"the digest is {digest}, not {headers['repr-digest']}")
        read = READERS[headers["content-type"].partition(";")[0]]
        return read(content) | {"version": int(headers["etag"].strip('"').rpartition("-")[2])}
    except (ValueError, KeyError, OSError, zipfile.BadZipFile, pa.ArrowException) as error:
        return {"broken": f"{type(error).__name__}: {error}"}


def export_faults(body: Columns, state: State) -> list[str]:
    """What is wrong with a file about this version: it is the whole graph as it was."""
    seen, lost = state.values.seen, state.values.lost
    there = [vertex for vertex in range(seen.n_vertices) if vertex not in lost]
    place = {vertex: at for at, vertex in enumerate(there)}
    right: Columns = {"n_vertices": len(there), "source": SOURCE, "sink": place[seen.sink], "version": state.version}
    right |= {"tail": [place[v] for v in seen.tail], "head": [place[v] for v in seen.head]}
    right["limits"] = {place[v]: units for v, units in state.values.limits.items() if v in place}
    if there[-1] >= len(there) and body["closed"] is not None:  # else they keep their numbers anyway
        right["vertex_labels"] = there
    if body["closed"] is None:
        right |= {"closed": None, "capacity": state.effective[~state.values.gone].tolist()}
    else:
        right |= {"closed": seen.closed, "capacity": seen.capacity}
        x, y = (None if of is None else [of[vertex] for vertex in there] for of in (seen.x, seen.y))
        more = {"cost": seen.cost, "edge_ids": seen.ids, "lower": seen.lower, "x": x, "y": y}
        right |= {"crs": CRS} if seen.x is not None else {}
        right |= {name: column for name, column in more.items() if column is not None}
    names = sorted(body.keys() | right.keys())
    return [f"{name} is {right.get(name)}" for name in names if body.get(name) != right.get(name)]
