"""The Redis user of docs/security.md against a real server: all the service does, and nothing dangerous."""

import re
import secrets
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis

from gpu_engine.networks.edgelist import EdgeList
from service.host import redis_acl
from service.protocol import EmptyArgs, Kind
from service.settings import Settings
from tests.graphs import diamond
from tests.service_fixtures import Caller, StartWorker

DOCS = (Path(__file__).parents[2] / "docs" / "security.md").read_text()
FORBIDDEN: list[tuple[Any, ...]] = [
    ("EVAL", "return 1", 0),
    ("SCRIPT", "LOAD", "return 1"),
    ("CONFIG", "SET", "dir", "/tmp"),
    ("FLUSHALL",),
    ("FLUSHDB",),
    ("KEYS", "*"),
    ("DEBUG", "SLEEP", 0),
    ("SHUTDOWN", "NOSAVE"),
    ("SAVE",),
    ("REPLICAOF", "NO", "ONE"),
    ("MODULE", "LOAD", "/tmp/x.so"),
    ("ACL", "LIST"),
    ("ACL", "SETUSER", "headrace", "+@all"),
    ("CLIENT", "KILL", "ID", "1"),
    ("MONITOR",),
    ("SWAPDB", 0, 1),
    ("MIGRATE", "127.0.0.1", "1", "x", "0", "1"),
]


@pytest.fixture
def settings(redis_url: str) -> Iterator[Settings]:
    """As the documented line makes it: keys of one prefix, a password. Replaces the settings of all fixtures here."""
    prefix, password = f"acl-{uuid.uuid4().hex}:", secrets.token_urlsafe(16)
    admin = redis.Redis.from_url(redis_url.replace("headrace@", ""), protocol=2)
    user, *rules = redis_acl.acl(prefix, password)
    name = f"{user}-{uuid.uuid4().hex}"
    admin.execute_command("ACL", "SETUSER", name, *rules)
    url = redis_url.replace("unix://headrace@", f"unix://{name}:{password}@")
    yield Settings(redis_url=url, redis_prefix=prefix, lease_s=2)
    admin.execute_command("ACL", "DELUSER", name)
    admin.close()


def test_the_documented_line_is_this_one() -> None:
    (line,) = re.findall(r"^user headrace .*$", DOCS, re.M)
    assert line.split()[1:] == redis_acl.acl("headrace:", "PASSWORD")


def test_the_service_needs_no_more(caller: Caller, start_worker: StartWorker) -> None:
    start_worker()
    caller.wait_ready()
    edges: EdgeList = diamond().edges
    caller.load("g", edges)
    before = caller.value("g")
    assert caller.set("g", [0], ["0"])["version"] == 2
    assert caller.value("g") <= before
    caller.ask(Kind.SNAPSHOT, "g", EmptyArgs())
    caller.ask(Kind.MAX_FLOW, "g", EmptyArgs(), key="once")
    assert caller.run(caller.dispatcher.jobs(100)).jobs
    assert caller.run(caller.dispatcher.watch.ping()).fsync == "everysec"
    caller.ask(Kind.DELETE, "g", EmptyArgs())


@pytest.mark.parametrize("command", FORBIDDEN, ids=lambda command: " ".join(map(str, command[:2])))
def test_dangerous_commands_are_refused(settings: Settings, redis_url: str, command: tuple[Any, ...]) -> None:
    """Of the documented user, and of the one the embedded server has for the service.

    From 7.0 on a server refuses DEBUG and MODULE LOAD to everybody before it looks at the user, so it is asked as well.
    """
    admin = redis.Redis.from_url(redis_url.replace("headrace@", ""), protocol=2)
    tells = int(admin.info("server")["redis_version"].partition(".")[0]) >= 7
    for url in (settings.redis_location, redis_url):
        client = redis.Redis.from_url(url, protocol=2)
        with pytest.raises(redis.exceptions.ResponseError, match=r"no permissions|command not allowed"):
            client.execute_command(*command)
        if tells:
            assert b"has no permissions" in admin.execute_command("ACL", "DRYRUN", urlsplit(url).username, *command)
        client.close()
    admin.close()


def test_keys_of_others_are_out_of_reach(settings: Settings) -> None:
    client = redis.Redis.from_url(settings.redis_location, protocol=2)
    for command in (("GET", "other"), ("SET", "other", 1), ("XADD", "other", "*", "a", "b"), ("RENAME", "a", "b")):
        with pytest.raises(redis.exceptions.NoPermissionError):
            client.execute_command(*command)
    client.close()
