"""What a worker reads of INFO is what the client library reads."""

from typing import Any

import pytest
import redis

from service.settings import Settings
from service.store.connection import connect, read_info

USED = {
    "persistence": (
        *("aof_buffer_length", "aof_rewrites", "aof_rewrite_in_progress", "aof_rewrite_scheduled"),
        *("aof_last_write_status", "aof_last_bgrewrite_status"),
    ),
    "server": ("run_id",),
    "memory": ("used_memory", "maxmemory"),
}


def test_it_is_what_the_client_library_reads(settings: Settings) -> None:
    worker = connect(settings)
    library = redis.Redis.from_url(settings.redis_location)
    with pytest.raises(redis.ResponseError):
        library.execute_command("SET", "just a key")  # type: ignore[no-untyped-call]
    ours: Any = worker.info("persistence", "server", "memory", "errorstats", "keyspace")
    theirs: Any = library.info("persistence", "server", "memory", "errorstats", "keyspace")
    for names in USED.values():
        for name in names:
            assert type(ours[name]) is type(theirs[name])
            assert name == "used_memory" or ours[name] == theirs[name]
    assert ours["errorstat_ERR"]["count"] == theirs["errorstat_ERR"]["count"] > 0
    worker.close()
    library.close()


def test_what_is_no_number_is_text() -> None:
    told = read_info(
        b"# Server\r\nrun_id:12ab\r\nseconds:-1\r\nrate:0.5\r\nempty:\r\nat:a:b\r\ndb0:keys=3,kind=x\r\n\r\nodd\r\n"
    )
    assert told == {
        "run_id": "12ab",
        "seconds": -1,
        "rate": "0.5",
        "empty": "",
        "at": "a:b",
        "db0": {"keys": 3, "kind": "x"},
    }
