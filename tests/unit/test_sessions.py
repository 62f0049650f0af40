"""Sessions of browsers at rest: digests alone, bounds for each key, an end in time."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from service.settings import Settings
from service.store import sessions
from service.store.api_keys import ApiKeys, Scope
from service.store.connection import connect_async
from service.store.keys import Keys
from service.store.sessions import SESSION_S, SESSION_TOKEN, SESSIONS_OF_A_KEY, Sessions
from service.telemetry.redaction import redacted

T = TypeVar("T")
KEY, OTHER = 12 * "a", 12 * "b"


@pytest.fixture
def run(settings: Settings) -> Callable[[Callable[[Sessions], Awaitable[T]]], T]:
    """Runs work with sessions on the Redis of this test."""

    def run(work: Callable[[Sessions], Awaitable[T]]) -> T:
        async def connected() -> T:
            client = connect_async(settings)
            try:
                return await work(Sessions(client, Keys(settings.redis_prefix)))
            finally:
                await client.aclose()

        return asyncio.run(connected())

    return run


def test_a_session_is_open_until_it_is_closed(run: Any, client: Any, keys: Keys) -> None:
    async def work(table: Sessions) -> None:
        one, two = await table.open(KEY), await table.open(KEY)
        assert one != two
        assert await table.is_open(one)
        await table.close(one)
        await table.close(one)
        assert [await table.is_open(token) for token in (one, two)] == [False, True]

    run(work)
    assert 0 < client.ttl(keys.sessions(KEY)) <= SESSION_S


def test_only_a_digest_is_kept(run: Any, client: Any, keys: Keys) -> None:
    token = run(lambda table: table.open(KEY))
    match = SESSION_TOKEN.fullmatch(token)
    assert match is not None
    stored = client.hgetall(keys.sessions(KEY))
    assert match[1] == KEY
    assert list(stored) == [match[2].encode()]
    assert match[3].encode() not in b"".join(stored.values())
    assert redacted(f"cookie {token}") == f"cookie hs_{KEY}_***"


def test_what_is_no_session(run: Any) -> None:
    """The secret counts, with the very key and session it was made for."""

    async def work(table: Sessions) -> None:
        one, other = await table.open(KEY), await table.open(OTHER)
        parts, others = one.split("_", 3), other.split("_", 3)
        for wrong in (
            "",
            one[:-1],
            one + "A",
            "_".join([*parts[:3], others[3]]),
            "_".join(["hs", OTHER, *parts[2:]]),
            "_".join(["hs", KEY, others[2], parts[3]]),
            one.replace("hs_", "hr_"),
        ):
            assert not await table.is_open(wrong), wrong
            await table.close(wrong)
        assert await table.is_open(one)
        assert await table.is_open(other)

    run(work)


def test_the_oldest_give_way(run: Any, client: Any, keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of another key do not."""
    now = [time.time()]
    monkeypatch.setattr(sessions.time, "time", lambda: now[0])

    async def work(table: Sessions) -> None:
        other, tokens = await table.open(OTHER), []
        for _ in range(SESSIONS_OF_A_KEY + 3):
            now[0] += 1
            tokens.append(await table.open(KEY))
        opened = [await table.is_open(token) for token in tokens]
        assert opened == 3 * [False] + SESSIONS_OF_A_KEY * [True]
        assert await table.is_open(other)

    run(work)
    assert client.hlen(keys.sessions(KEY)) == SESSIONS_OF_A_KEY


def test_it_ends_in_time(run: Any, client: Any, keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it is used, and whatever else keeps its key's sessions in Redis."""
    now = [time.time()]
    monkeypatch.setattr(sessions.time, "time", lambda: now[0])

    async def work(table: Sessions) -> None:
        token = await table.open(KEY)
        now[0] += SESSION_S - 1
        assert await table.is_open(token)
        now[0] += 2
        assert not await table.is_open(token)
        await table.open(KEY)

    run(work)
    assert client.hlen(keys.sessions(KEY)) == 1, "what has ended is removed"


def test_they_go_with_their_key(run: Any, client: Any, keys: Keys) -> None:
    table = ApiKeys(client, keys)
    key, _ = table.create("dispatch", Scope.READ)
    token = run(lambda sessions: sessions.open(key.id))
    table.revoke(key.id)
    assert not client.exists(keys.sessions(key.id))
    assert not run(lambda sessions: sessions.is_open(token))
