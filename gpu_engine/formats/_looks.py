"""What a body seems to be if it is not what its media type says. The usual mistake is a wrong Content-Type."""

from typing import Final

BEGINNINGS: Final = (
    (b"PK\x03\x04", "an npz archive (application/x-npz)"),
    (b"\x93NUMPY", "an npy array (application/x-npy)"),
    (b"ARROW1", "an Arrow file (Feather); pyarrow.ipc.new_stream, or write_ipc_stream of Polars, writes a stream"),
    (b"\xff\xff\xff\xff", "an Arrow stream (application/vnd.apache.arrow.stream)"),
    (b"\x1f\x8b", "gzip (Content-Encoding: gzip)"),
    (b"\x28\xb5\x2f\xfd", "Zstandard (Content-Encoding: zstd)"),
    (b"%%MatrixMarket", "a Matrix Market file (text/x-matrix-market)"),
    (b"p min", "a DIMACS problem (text/x-dimacs)"),
    (b"p max", "a DIMACS problem (text/x-dimacs)"),
    (b"tail,", "CSV (text/csv)"),
    (b"{", "JSON (application/json)"),
)
WORKBOOK: Final = "a workbook (.xlsx, .ods): save its sheet as CSV in UTF-8"
PARTS: Final = (b"[Content_Types].xml", b"_rels/", b"docProps/", b"xl/", b"mimetype")
"""How the name of the first file in a workbook begins. A workbook is a zip archive, as an npz file is."""
LOOKED_AT: Final = 64
"""Bytes that are looked at."""
NAME_AT: Final = 30
"""The byte of a zip archive at which the name of the first file begins."""


def seems_to_be(data: bytes | memoryview, expected: str) -> str:
    """The end of a sentence about bytes that are not what was `expected`; empty if nothing can be told."""
    head = bytes(data[:32]).lstrip()
    if not head:
        return ": it is empty"
    if head.startswith(b"PK") and bytes(data[NAME_AT : NAME_AT + 32]).startswith(PARTS):
        return f": it begins like {WORKBOOK}"
    for beginning, what in BEGINNINGS:
        if head.startswith(beginning) and expected not in what:
            return f": it begins like {what}"
    return ""
