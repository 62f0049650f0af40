"""What the bench reads from the log of Redis, by its own code."""

import hashlib
import io
import json
import struct

import pyarrow as pa
import pytest
import zstandard

from tests.faults.aof import read_commands, read_committed
from tests.faults.entries import Commit
from tests.faults.history import LOAD_UNIT, Edges


def test_an_incomplete_command_is_left_out() -> None:
    whole = b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n"
    assert list(read_commands(whole + whole[:-3])) == [[b"GET", b"a"]]
    assert list(read_commands(whole + bytes(9) + whole + bytes(9))) == [[b"GET", b"a"]] * 2
    with pytest.raises(ValueError, match="no command"):
        list(read_commands(b"garbage"))


def command(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def test_a_transaction_within_another_is_seen() -> None:
    """Redis would do the first one's part at its next start."""
    multi, set_, execute = command(b"MULTI"), command(b"SET", b"a", b"1"), command(b"EXEC")
    read_committed(multi + set_ + execute + multi + set_, "")
    with pytest.raises(ValueError, match="never came to its end"):
        read_committed(multi + set_ + multi + set_ + execute, "")


def transaction(*commands: tuple[bytes, ...]) -> bytes:
    return command(b"MULTI") + b"".join(command(*words) for words in commands) + command(b"EXEC")


def packed_edges() -> bytes:
    columns = pa.table({"tail": [0, 0], "head": [1, 1], "capacity": [7 * LOAD_UNIT, 0]})
    table = columns.replace_schema_metadata({"n_vertices": "2", "decimals": "0", "source": "0", "sink": "1"})
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


def load_commands(data: bytes, digest: bytes | None = None) -> bytes:
    digest = digest or hashlib.sha256(data).hexdigest().encode()
    header = (b"chunks", b"1", b"bytes", b"%d" % len(data), b"sha256", digest)
    return command(b"HSET", b"p:blob:b", b"0", data, *header) + transaction(
        (b"HSET", b"p:names", b"g", b"job-1"),
        (b"HSET", b"p:graph:job-1", b"version", b"1", b"base", b"b"),
        (b"SET", b"p:outcome:job-1", b"{}", b"PXAT", b"1"),
    )


def patch_commands(outcome: bytes = b"{}", applied: int = 1) -> bytes:
    change = zstandard.ZstdCompressor().compress(struct.pack("<qq?", 1, 30, True))
    fields = (b"applied", json.dumps({"key": "k", "applied": applied}).encode(), b"change", change)
    return transaction(
        (b"XADD", b"p:log:job-1", b"2-0", *fields),
        (b"HSET", b"p:graph:job-1", b"version", b"2"),
        (b"SET", b"p:outcome:job-2", outcome),
    )


def shared_commit(outcomes: int = 2, graph_of_second: bytes = b"job-1") -> bytes:
    """Two updates of one graph in one transaction, each with its entry, its event and its outcome, the one of an
    earlier command cancelled beside them."""
    change = zstandard.ZstdCompressor().compress(struct.pack("<qq?", 1, 30, True))

    def entry(graph: bytes, version: int) -> list[tuple[bytes, ...]]:
        applied = json.dumps({"key": f"k{version}", "applied": 1}).encode()
        event = (b"id", b"%d-version" % version, b"event", b"version", b"data", b"{}")
        return [
            (b"XADD", b"p:log:" + graph, b"%d-0" % version, b"applied", applied, b"change", change),
            (b"XADD", b"p:feed:g", b"*", *event),
        ]

    done = [(b"SET", b"p:outcome:job-%d" % (job + 2), b"{}") for job in range(outcomes)]
    return transaction(
        *entry(b"job-1", 2),
        *entry(graph_of_second, 3),
        (b"HSET", b"p:graph:job-1", b"version", b"3"),
        (b"SET", b"p:outcome:job-9", b"cancelled"),
        *done,
    )


def test_updates_that_share_a_commit_are_read_one_after_the_other() -> None:
    found = read_committed(load_commands(packed_edges()) + shared_commit(), "p:")
    (load,) = found.loads
    assert [(commit.version, commit.key, commit.job) for commit in load.commits] == [
        (2, "k2", "job-2"),
        (3, "k3", "job-3"),
    ]
    first, second = load.commits
    assert first.order < second.order
    assert [(event.id, event.order) for event in found.feeds["g"]] == [
        ("2-version", first.order),
        ("3-version", second.order),
    ], "what is told of the first stands before the second"
    assert found.cancelled == {"job-9"}


@pytest.mark.parametrize("outcomes", [0, 1, 3])
def test_each_update_of_a_shared_commit_has_its_own_outcome(outcomes: int) -> None:
    with pytest.raises(ValueError, match=f"makes 2 changes and has {outcomes} outcomes"):
        read_committed(load_commands(packed_edges()) + shared_commit(outcomes), "p:")


def test_updates_of_two_graphs_share_no_commit() -> None:
    data = packed_edges()
    second = transaction(
        (b"HSET", b"p:names", b"h", b"job-7"),
        (b"HSET", b"p:graph:job-7", b"version", b"1", b"base", b"b"),
        (b"SET", b"p:outcome:job-7", b"{}"),
    )
    with pytest.raises(ValueError, match="makes 2 changes and has 2 outcomes"):
        read_committed(load_commands(data) + second + shared_commit(graph_of_second=b"job-7"), "p:")


SNAPSHOTS = [[{"version": 4}], [{"version": 7}, {"version": 4}], [{"version": 7}]]
"""How the list of a graph's snapshots grows, and shrinks when one is broken."""


def test_what_the_service_writes_is_read() -> None:
    remove = transaction((b"HDEL", b"p:names", b"g"), (b"SET", b"p:outcome:job-3", b"{}"))
    cancel = command(b"SET", b"p:outcome:job-4", b"cancelled")
    end = command(b"HSET", b"p:job:job-4", b"status", b"cancelled")
    late = command(b"SET", b"p:outcome:job-2", b"cancelled")
    ended = command(b"HSET", b"p:job:job-2", b"status", b"succeeded")
    asked = command(b"XADD", b"p:commands:w0", b"1-0", b"command", b'{"id":"job-2","request_id":"request"}')
    listed = [command(b"SET", b"p:snapshots:job-1", json.dumps(rows).encode()) for rows in SNAPSHOTS]
    parts = (asked, load_commands(packed_edges()), patch_commands(), *listed, ended, late, cancel, end, remove)
    found = read_committed(b"".join(parts), "p:")
    assert found.requests == {"job-2": "request"}
    (load,) = found.loads
    assert (load.graph, load.graph_id, load.number, load.deleted) == ("g", "job-1", 7, True)
    assert load.edges == Edges(2, [0, 0], [1, 1], [7 * LOAD_UNIT, 0])
    assert load.commits == [Commit(2, "k", [1], [30], [True], "job-2", order=4)]
    assert (load.order, load.reach) == (3, 4)
    assert found.removals == [("g", "job-3")]
    assert found.cancelled == {"job-4"}
    assert found.endings == {"job-2": ["succeeded"], "job-4": ["cancelled"]}


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (load_commands(packed_edges(), b"0" * 64), "its header says"),
        (load_commands(packed_edges()) + patch_commands(applied=2), "are not the 2 rows"),
        (load_commands(packed_edges()) + patch_commands(outcome=b"cancelled"), "has 0 outcomes"),
        (transaction((b"SET", b"p:outcome:job-3", b"{}")), "makes 0 changes"),
    ],
    ids=["another blob", "another count", "a change of a cancelled job", "an outcome of nothing"],
)
def test_what_the_service_must_not_write_is_seen(data: bytes, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        read_committed(data, "p:")
