"""The end of an append-only file is mended before Redis reads it. Found by seed 583 of the fault histories."""

import os
from pathlib import Path

import pytest
import redis

from service.host import redis_server
from service.host import torn_log as aof
from service.settings import Settings

SET = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$%d\r\n%s\r\n"


def set_(value: bytes) -> bytes:
    return SET % (len(value), value)


WHOLE = aof.MULTI + set_(b"1") + aof.EXEC
ENDS: dict[str, tuple[bytes, bytes]] = {
    "nothing": (b"", b""),
    "a whole transaction": (WHOLE + set_(b"2"), b""),
    "a torn command": (WHOLE + set_(b"2")[:-3], b""),
    "a torn transaction": (WHOLE + set_(b"2"), aof.MULTI + set_(b"3") + set_(b"4")[:-3]),
    "a transaction without its end": (WHOLE, aof.MULTI + set_(b"3")),
    "half an EXEC": (WHOLE, aof.MULTI + set_(b"3") + aof.EXEC[:-1]),
    "half a MULTI": (WHOLE + aof.MULTI[:-1], b""),
    "half a length": (WHOLE, aof.MULTI + b"*3\r\n$3\r\nSET\r\n$1"),
    "the first transaction": (set_(b"1"), aof.MULTI + set_(b"3")),
    "an EXEC within a value": (WHOLE, aof.MULTI + set_(b"bytes" + aof.EXEC + b"bytes") + set_(b"4")[:-3]),
    "a transaction within a value": (WHOLE + set_(WHOLE + aof.MULTI), b""),
    "a dump before the commands": (b"REDIS0009\xfa" + bytes(64) + WHOLE, aof.MULTI + set_(b"3")),
    "a dump alone": (b"REDIS0009\xfa" + bytes(64), b""),
}


@pytest.mark.parametrize("name", ["appendonly.aof", "appendonlydir/appendonly.aof.1.incr.aof"])
@pytest.mark.parametrize(("kept", "cut"), ENDS.values(), ids=ENDS.keys())
def test_an_unfinished_transaction_is_cut_off(tmp_path: Path, name: str, kept: bytes, cut: bytes) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(kept + cut)
    assert aof.mend(tmp_path) == len(cut)
    assert path.read_bytes() == kept
    assert aof.mend(tmp_path) == 0


@pytest.mark.parametrize("missing", [1, 10, 25, 45, 60])
def test_no_half_of_a_transaction_comes_back(tmp_path: Path, missing: int) -> None:
    """A power loss tears it; it is the second start after that at which Redis by itself would do its first half."""
    settings = Settings(data_dir=tmp_path, redis_url=None)
    with redis_server.running(settings), redis.Redis.from_url(settings.redis_location) as client:
        client.set("headrace:kept", 1)
        with client.pipeline() as pipe:
            pipe.set("headrace:a", 1).set("headrace:b", 2).execute()
    data = tmp_path / "redis"
    (path,) = [*data.glob("appendonly.aof"), *data.glob("appendonlydir/*.incr.aof")]
    os.truncate(path, path.stat().st_size - missing)
    for start in range(3):
        with redis_server.running(settings) as process, redis.Redis.from_url(settings.redis_location) as client:
            assert client.mget("headrace:a", "headrace:b", "headrace:kept") == [None, None, b"%d" % (start + 1)]
            client.incr("headrace:kept")
            process.kill()
