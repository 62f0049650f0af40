"""The process in which METIS partitions one graph: ``python -m gpu_engine.partition.process PARENT BYTES``.

METIS holds the interpreter's lock while it works, cannot be stopped, and ends its process when something is wrong with
it. The graph comes on standard input: a line of JSON with the numbers of vertices, slots and parts, the imbalance in
thousandths and the seed; then row offsets, neighbours, weights of slots and weights of vertices as int64. The answer
is a line, ``OK`` or what was wrong, then the part of each vertex as int64. NumPy would take longer to import than METIS
takes for a small graph.
"""

import json
import os
import sys
from array import array
from typing import Final

from gpu_engine import child

NO_MEMORY: Final = "NO_MEMORY"
MOST_SAID: Final = 1 << 16
"""So much of what METIS says of an error is read."""


def main() -> None:
    """Read a graph, partition it, write the answer."""
    child.begin("pymetis")
    answer = os.fdopen(os.dup(1), "wb")
    # METIS prints remarks on a graph to standard output, so the answer gets a descriptor of its own. What it lacks
    # memory for it prints on the standard error, and its exception says nothing.
    said = os.memfd_create("metis")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(said, 2)
    status, parts = NO_MEMORY, b""
    try:
        status, parts = "OK", partitioned(sys.stdin.buffer.read())
    except MemoryError:
        pass
    except RuntimeError as error:
        lacks = b"***Memory " in os.pread(said, MOST_SAID, 0)
        status = NO_MEMORY if lacks or "memory" in str(error).lower() else str(error)[:200].replace("\n", " ")
    answer.write(status.encode() + b"\n")
    answer.write(parts)
    answer.flush()


def partitioned(data: bytes) -> bytes:
    """The part of each vertex as int64, from a graph as it comes on standard input, by multilevel k-way partitioning
    (Karypis and Kumar 1998, in METIS)."""
    import pymetis

    head, _, _ = data.partition(b"\n")
    n, slots, k, thousandths, seed = json.loads(head)
    at, columns = len(head) + 1, []
    for count in (n + 1, slots, slots, n):
        columns.append(memoryview(data)[at : at + 8 * count].cast("q"))
        at += 8 * count
    offsets, neighbours, weight, vertex_weight = columns
    found = pymetis.part_graph(
        k,
        pymetis.CSRAdjacency(offsets, neighbours),
        eweights=weight,
        vweights=vertex_weight,
        recursive=False,
        options=pymetis.Options(ufactor=thousandths, seed=seed),
    )
    return array("q", found.vertex_part).tobytes()


if __name__ == "__main__":
    main()
