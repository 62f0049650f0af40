"""API keys at rest and on the command line."""

import asyncio
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from service.cli.connection import MISWRITTEN, REFUSED
from service.cli.main import app
from service.settings import Settings
from service.store.api_keys import MAX_KEYS, TOKEN, ApiKeys, KeyRing, Scope, TooManyKeys, fetch_keys, find, new_key
from service.store.connection import connect, connect_async
from service.store.keys import Keys


@pytest.fixture
def table(settings: Settings) -> Any:
    client = connect(settings)
    yield ApiKeys(client, Keys(settings.redis_prefix))
    client.close()


def test_only_a_digest_is_kept(table: ApiKeys, settings: Settings) -> None:
    key, token = table.create("dispatch", Scope.UPDATE, "city-")
    match = TOKEN.fullmatch(token)
    assert match is not None
    client = connect(settings)
    stored = client.hgetall(Keys(settings.redis_prefix).api_keys)
    client.close()
    assert match[2].encode() not in b"".join(stored.values())  # type: ignore[union-attr]
    assert find(token, {key.id: key}) == key
    assert table.list() == [key]


def test_secrets_are_256_random_bits() -> None:
    tokens = {new_key("x", Scope.READ)[1] for _ in range(100)}
    assert len(tokens) == 100
    assert all(TOKEN.fullmatch(token) for token in tokens)


def test_what_is_no_live_key(table: ApiKeys) -> None:
    key, token = table.create("a", Scope.READ)
    other, other_token = new_key("b", Scope.READ)
    keys = {key.id: key}
    mixed = f"hr_{key.id}_{other_token.rpartition('_')[2]:A>43}"[:59]
    for wrong in ("", token[:-1], token + "A", mixed, other_token, token.upper(), f"{token}\n"):
        assert find(wrong, keys) is None
    assert table.revoke(key.id)
    assert not table.revoke(other.id)
    (revoked,) = table.list()
    assert revoked.revoked_at is not None
    assert find(token, {key.id: revoked}) is None


def test_bounds(table: ApiKeys, settings: Settings) -> None:
    with pytest.raises(ValueError, match="begin with"):
        table.create("a", Scope.READ, "*")
    for label in ("a" * 201, "two\nlines", "\x1b[31m"):
        with pytest.raises(ValueError, match="one line of at most 200 characters"):
            table.create(label, Scope.READ)
    client = connect(settings)
    client.hset(Keys(settings.redis_prefix).api_keys, mapping={str(n): "{}" for n in range(MAX_KEYS)})
    client.close()
    with pytest.raises(TooManyKeys):
        table.create("a", Scope.READ)


def run(environment: dict[str, str], *words: str) -> Any:
    return CliRunner(env=environment).invoke(app, ["keys", *words])


@pytest.mark.parametrize("where", ["a Redis that runs", "an embedded one that does not"])
def test_the_command_line(where: str, settings: Settings, tmp_path: Path) -> None:
    environment = {"HEADRACE_DATA_DIR": str(tmp_path / "data"), "HEADRACE_REDIS_PREFIX": settings.redis_prefix}
    if where == "a Redis that runs":
        environment["HEADRACE_REDIS_URL"] = str(settings.redis_url)
    made = run(environment, "create", "for the board", "--scope", "update", "--prefix", "city-")
    assert made.exit_code == 0, made.output
    token = made.stdout.strip()
    assert TOKEN.fullmatch(token)
    listed = run(environment, "list").stdout
    key_id = token.split("_")[1]
    assert re.search(rf"^{key_id}  update  city-\* .* live  for the board$", listed, re.M), listed
    assert token.partition(f"{key_id}_")[2] not in listed
    assert run(environment, "revoke", key_id).exit_code == 0
    assert "revoked" in run(environment, "list").stdout
    root, spaced = ["create", "x", "--scope", "root"], ["create", "x", "--prefix", "a b"]
    for wrong, status in ((["revoke", "nothing"], REFUSED), (root, MISWRITTEN), (spaced, REFUSED)):
        failed = run(environment, *wrong)
        assert failed.exit_code == status
        assert failed.stderr.startswith("headrace: ")


def test_what_is_listed_never_holds_a_digest(table: ApiKeys, settings: Settings) -> None:
    key, _ = table.create("x", Scope.READ)
    environment = {"HEADRACE_REDIS_URL": str(settings.redis_url), "HEADRACE_REDIS_PREFIX": settings.redis_prefix}
    listed = run(environment, "list").stdout
    assert key.digest not in listed
    assert json.loads(key.model_dump_json())["digest"] == key.digest


def test_the_service_is_open_on_purpose_until_the_next_key(table: ApiKeys, settings: Settings) -> None:
    async def fetch() -> KeyRing:
        client = connect_async(settings)
        try:
            return await fetch_keys(client, Keys(settings.redis_prefix))
        finally:
            await client.aclose()

    assert asyncio.run(fetch()) == KeyRing({})
    key, _ = table.create("a", Scope.READ)
    before = time.time()
    assert asyncio.run(fetch()) == KeyRing({key.id: key})
    assert table.forget() == 1
    ring = asyncio.run(fetch())
    assert ring.keys == {}
    assert ring.opened_at is not None
    assert ring.opened_at >= before
    table.create("b", Scope.READ)
    assert asyncio.run(fetch()).opened_at is None
