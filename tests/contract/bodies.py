"""Bodies that several modules of tests send."""

from typing import Any, Final

import pyarrow as pa

JSON: Final = {"Content-Type": "application/json"}
ARROW: Final = "application/vnd.apache.arrow.stream"
EDGES: Final[dict[str, Any]] = {"tail": [0, 1], "head": [1, 2], "capacity": [3, 2.5], "source": 0, "sink": 2}


def arrow(**columns: Any) -> bytes:
    """An Arrow stream of these columns."""
    return arrow_stream(pa.table(columns))


def arrow_stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content
