"""Graphs that people send by mistake, and what they get: the rows of `tests.contract.test_clumsy` that load one."""

import gzip
import io
import zipfile
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

JSON = "application/json"
CSV = "text/csv"
NPZ = "application/x-npz"
ARROW = "application/vnd.apache.arrow.stream"
DIMACS = "text/x-dimacs"
MATRIX_MARKET = "text/x-matrix-market"
NEW = "/v1/graphs/new"


class Clumsy(NamedTuple):
    """What is sent, and what comes back."""

    method: str
    path: str
    body: Any
    status: int
    code: str
    phrase: str
    field: str | None = None
    kind: str = JSON
    headers: Mapping[str, str] = {}


def put(body: Any, code: str, phrase: str, field: str | None = None, kind: str = JSON, status: int = 422) -> Clumsy:
    return Clumsy("PUT", NEW, body, status, code, phrase, field, kind)


def npz(**arrays: Any) -> bytes:
    archive = io.BytesIO()
    np.savez(archive, **{name: np.array(column) for name, column in arrays.items()})
    return archive.getvalue()


def workbook() -> bytes:
    """The beginning of what a spreadsheet saves."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", '<?xml version="1.0" encoding="UTF-8"?><Types/>')
        archive.writestr("xl/workbook.xml", "<workbook/>")
    return content.getvalue()


def arrow(**columns: Any) -> bytes:
    table, sink = pa.table(columns), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def columns(**changes: Any) -> dict[str, Any]:
    """A good graph of two edges, with changes; None removes a column."""
    body = {"tail": [0, 1], "head": [1, 2], "capacity": [3, 4]} | changes
    return {name: column for name, column in body.items() if column is not None}


LOADS = [
    put([[0, 1, 3], [1, 2, 4]], "invalid_body", "a graph is sent as columns"),
    put({"edges": [[0, 1, 3], [1, 2, 4]]}, "invalid_body", "a graph is sent as columns", "/edges"),
    put({"nodes": [{"id": 1}], "links": []}, "invalid_body", "a graph is sent as columns", "/links"),
    put({"tails": [0], "heads": [1], "capacities": [1]}, "invalid_body", "did you mean 'capacity'?", "/capacities"),
    put(columns(directed=True), "invalid_body", "did you mean 'undirected'?", "/directed"),
    put(columns(labels=["a", "b", "c"]), "invalid_body", "did you mean 'vertex_labels'?", "/labels"),
    put(columns(capacity=None), "invalid_body", "the column 'capacity' is missing", "/capacity"),
    put(columns(capacity=3), "invalid_body", "capacity must be an array, with one value for each edge", "/capacity"),
    put(columns(tail=0), "invalid_body", "tail must be an array", "/tail"),
    put(columns(capacity=[3]), "invalid_body", "capacity has 1 row, tail has 2", "/capacity"),
    put(columns(edge_ids=["a"]), "invalid_body", "edge_ids has 1 row, tail has 2", "/edge_ids"),
    put(columns(edge_ids=["a", "a"]), "invalid_body", "edge id 'a' occurs more than once"),
    put(
        columns(edge_ids=[1.5, 2.5]),
        "invalid_body",
        "row 0: edge_ids is neither an integer nor text (1.5)",
        "/edge_ids",
    ),
    put(
        columns(capacity=[3, "a lot"]),
        "invalid_body",
        "row 1: capacity is not a number or 'inf' ('a lot')",
        "/capacity",
    ),
    put(
        columns(capacity=[3, None]), "invalid_body", "row 1: capacity is neither a number nor 'inf' (null)", "/capacity"
    ),
    put(columns(capacity=[3, -4]), "invalid_body", "row 1: capacity is negative", "/capacity"),
    put(columns(capacity=[3, 10**30]), "capacity_overflow", "row 1: capacity is too large", "/capacity"),
    put(columns(capacity=[3, 2**63 - 1]), "capacity_overflow", "row 1: capacity is too large", "/capacity"),
    put(columns(capacity=[3, 0.12345678901]), "invalid_body", "more than 9 decimals", "/capacity"),
    put(columns(n_vertices=2), "invalid_body", "row 1: head is no vertex 0 .. 1 (2)", "/head"),
    put(columns(tail=[1, 2], head=[2, 3], n_vertices=3), "invalid_body", "vertices count from 0 here", "/head"),
    put(
        columns(tail=["a", "b"], head=["b", "c"], n_vertices=5),
        "invalid_body",
        "n_vertices is 5, and there are 3 labels: each vertex has one",
        "/vertex_labels",
    ),
    put(columns(n_vertices="3"), "invalid_body", "n_vertices must be a whole number, not '3'", "/n_vertices"),
    put(columns(tail=[0.0, 1.0]), "invalid_body", "row 0: tail is neither an integer nor text (0.0)", "/tail"),
    put(columns(tail=[0, "b"]), "invalid_body", "a column has one kind", "/tail"),
    put(columns(head=["b", "c"]), "invalid_body", "both be integers or both be text"),
    put(columns(tail=["a", "b"], head=["b", "c"], source="A"), "invalid_body", "did you mean 'a'?", "/source"),
    put(columns(source=9), "invalid_body", "source 9 is no vertex 0 .. 2", "/source"),
    put(columns(undirected="yes"), "invalid_body", "undirected must be true, false or an array", "/undirected"),
    put(columns(decimals=12), "invalid_body", "decimals must be a whole number 0 .. 9, not 12"),
    put(columns(tail=[0] * 1001, head=[1] * 1001, capacity=[1] * 1001), "too_large", "(max_edges)", status=413),
    put(b" " * 20_001, "too_large", "HEADRACE_MAX_JSON_BYTES bounds it, and an npz or Arrow body is", status=413),
    put(b" " * 100_001, "too_large", "HEADRACE_MAX_BODY_BYTES bounds it", kind=CSV, status=413),
]

FILES = [
    put(
        b"sep=;\r\ntail;head;capacity\r\n0;1;3\r\n", "invalid_body", "a first line 'sep=' is for Excel alone", kind=CSV
    ),
    put(b"sep=,\ntail,head,capacity\n0,1,3\n", "invalid_body", "a first line 'sep=' is for Excel alone", kind=CSV),
    put(b"tail;head;capacity\n0;1;3\n", "invalid_body", "columns are divided by commas, not by ';'", kind=CSV),
    put(b",tail,head,capacity\n0,0,1,3\n", "invalid_body", "column 1 has no name, as the index that pandas", kind=CSV),
    put(b"0,1,3\n1,2,4\n", "invalid_body", "line 1: the header is tail,head,capacity", kind=CSV),
    put(
        b'tail,head,capacity\n"a\\"x",b,3\n',
        "invalid_body",
        "line 2: within a field a double quote is written",
        kind=CSV,
    ),
    put(b"tail,head,capacity,closed\n0,1,3,true\n", "invalid_body", "there is no column 'closed': JSON, npz", kind=CSV),
    put(b"from,to,capacity\n0,1,3\n", "invalid_body", "no column 'from'; did you mean 'tail'?", kind=CSV),
    put(b"tail,head\n0,1\n", "invalid_body", "the column capacity is missing", kind=CSV),
    put(b"tail,head,capacity\n0,1\n", "invalid_body", "line 2: 3 columns expected, not 2", kind=CSV),
    put(
        b'tail,head,capacity\na,b,"1,5"\n', "invalid_body", "not a number or 'inf' ('1,5'); the", "/capacity", kind=CSV
    ),
    put(columns(capacity=[3, "1,5"]), "invalid_body", "('1,5'); the decimals stand behind a point", "/capacity"),
    put(b'tail,head,capacity\n"a,b,3\nb,c,3\n', "invalid_body", "not 1: a double quote has no end", kind=CSV),
    put(b"tail,head,capacity\na,b,\n", "invalid_body", "line 2: capacity is empty", "/capacity", kind=CSV),
    put(b"tail,head,capacity,\n0,1,3,\n", "invalid_body", "column 4 has no name, as one behind a comma", kind=CSV),
    put(b"tail,head,capacity\r0,1,3\r", "invalid_body", "lines end in carriage returns alone", kind=CSV),
    put(b"tail,head,capacity,id,edge_ids\n0,1,3,7,8\n", "invalid_body", "edge_ids is there twice, which id", kind=CSV),
    put(b"tail,head,capacity,capacity\n0,1,3,3\n", "invalid_body", "the column capacity is there twice", kind=CSV),
    put("tail,head,capacity\nGröße,b,1\n".encode("latin-1"), "invalid_body", "line 2: not UTF-8: a spread", kind=CSV),
    put("von;nach;Kapazität\na;b;1,5\n".encode("cp1252"), "invalid_body", "saves as 'CSV UTF-8'", kind=CSV),
    put("tail,head,capacity\n".encode("utf-16"), "invalid_body", "like UTF-16: save it as UTF-8", kind=CSV),
    put(gzip.compress(b"tail,head,capacity\n"), "invalid_body", "like gzip (Content-Encoding: gzip)", kind=CSV),
    put(workbook(), "invalid_body", "begins like a workbook (.xlsx, .ods): save its sheet as CSV", kind=CSV),
    put(npz(tail=[0], head=[1], capacity=[3]), "invalid_body", "like an npz archive (application/x-npz)", kind=CSV),
    put(npz(tail=[0], head=[1]), "invalid_body", "the array 'capacity' is missing", "/capacity", kind=NPZ),
    put(
        npz(tail=[0.0], head=[1], capacity=[1]), "invalid_body", "tail must be a column of integers", "/tail", kind=NPZ
    ),
    put(npz(tail=["a"], head=["b"], capacity=[1]), "invalid_body", "labels go into vertex_labels", "/tail", kind=NPZ),
    put(
        npz(tail=[0], head=[1], capacity=[1], weights=[1]),
        "invalid_body",
        "unknown array 'weights'",
        "/weights",
        kind=NPZ,
    ),
    put(npz(tail=[0], head=[1], capacity=[0.1 + 0.2]), "invalid_body", "more than 9 decimals", "/capacity", kind=NPZ),
    put(
        npz(tail=[0], head=[1], capacity=[np.nan]),
        "invalid_body",
        "row 0: capacity is not a number",
        "/capacity",
        kind=NPZ,
    ),
    put(columns(), "invalid_body", "it begins like JSON (application/json)", kind=NPZ),
    put(columns(), "invalid_body", "[,lower]; it begins like JSON (application/json)", kind=CSV),
    put(columns(), "invalid_body", "none of c, p, n, a: it begins like JSON (application/json)", kind=DIMACS),
    put(b"p max 3 1\na 1 2 3\n", "invalid_body", "it begins like a DIMACS problem (text/x-dimacs)", kind=CSV),
    put(b"tail,head,capacity\na,b,3\n", "invalid_body", "SYMMETRY' expected: it begins like CSV", kind=MATRIX_MARKET),
    put(arrow(source=[0], target=[1], capacity=[1]), "invalid_body", "did you mean 'tail'?", "/source", kind=ARROW),
    put(
        arrow(tail=[0], head=[1], capacity=[1], edgeids=[7]),
        "invalid_body",
        "did you mean 'edge_ids'?",
        "/edgeids",
        ARROW,
    ),
    put(
        arrow(tail=[0], head=[1], capacity=["1"]),
        "invalid_body",
        "capacity must be integer, decimal128",
        "/capacity",
        ARROW,
    ),
    put(
        arrow(tail=[0, None], head=[1, 2], capacity=[1, 1]), "invalid_body", "row 1: tail is null", "/tail", kind=ARROW
    ),
    put(b"ARROW1\0\0", "invalid_body", "it begins like an Arrow file (Feather); pyarrow.ipc.new_stream", kind=ARROW),
    put(columns(), "invalid_body", "it begins like JSON (application/json)", kind=ARROW),
    put(b"p max 3 2\na 0 1 3\na 1 2 4\n", "invalid_body", "vertices count from 1 here", "/tail", kind=DIMACS),
    put(
        b"p sp 3 1\na 1 2 3\n",
        "invalid_body",
        "line 1: 'p max VERTICES ARCS' or 'p min VERTICES ARCS' expected",
        kind=DIMACS,
    ),
    put(b"p max 3 2\na 1 2 3\n", "invalid_body", "the text ends after 1 of 2 arcs", kind=DIMACS),
    put(b"p max 3 1\na 1 2 3.5\n", "invalid_body", "line 2: capacity is not a whole number", "/capacity", kind=DIMACS),
]
