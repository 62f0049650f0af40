"""API keys: who may do what, to graphs of which names. Only digests of the secrets are kept.

A key is 256 random bits, so a plain SHA-256 is enough at rest: there is nothing to guess that a slow hash would
protect, unlike with a password. A revoked key stays in the table, so that a service that once asked for keys
does not open up when the last of them goes.
"""

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

import redis
import redis.asyncio
from pydantic import BaseModel, ConfigDict

from service.store.keys import Keys
from service.store.unreadable import readable

TOKEN: Final = re.compile(r"hr_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
PREFIX: Final = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]{0,127})?")
MAX_KEYS: Final = 1000
"""Keys that there may be, revoked ones included: an API process reads them all every few seconds."""
MAX_LABEL: Final = 200
"""Characters of a label, which is one line of a list."""

NO_DIGEST: Final = 64 * "0"
"""What the digest of a secret is compared with where there is nothing of its id: no text is known that has it."""


UNREADABLE: Final = "(cannot be read: revoked)"
"""The label of a key whose row in Redis is none."""


class Scope(StrEnum):
    """What a key is good for. Each scope includes those before it."""

    READ = "read"
    """Looking at graphs, and asking for flows and cuts."""
    UPDATE = "update"
    """Changing capacities, writing snapshots, cancelling jobs."""
    ADMIN = "admin"
    """Creating, replacing and deleting graphs."""

    def covers(self, needed: "Scope") -> bool:
        order = list(Scope)
        return order.index(self) >= order.index(needed)


class ApiKey(BaseModel):
    """One key as it lies in Redis."""

    model_config = ConfigDict(frozen=True)

    id: str
    label: str
    scope: Scope
    prefix: str = ""
    """What the names of the graphs begin with that the key is good for; empty: it is good for all."""
    digest: str
    """SHA-256 of the secret, in hexadecimal digits."""
    created_at: datetime
    revoked_at: datetime | None = None


class KeyRing(NamedTuple):
    """What Redis says of keys."""

    keys: Mapping[str, ApiKey]
    """The keys by id."""
    opened_at: float | None = None
    """When it was said that there are none on purpose, in unix seconds."""


class TooManyKeys(Exception):
    """`MAX_KEYS` have been made."""


def new_key(label: str, scope: Scope, prefix: str = "") -> tuple[ApiKey, str]:
    """A key and its token, which is shown once and kept nowhere."""
    key_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    key = ApiKey(
        id=key_id, label=label, scope=scope, prefix=prefix, digest=digest_of(secret), created_at=datetime.now(UTC)
    )
    return key, f"hr_{key_id}_{secret}"


def find(token: str, table: Mapping[str, ApiKey]) -> ApiKey | None:
    """The live key of a token. The digests are compared in constant time, also when there is no such key."""
    match = TOKEN.fullmatch(token)
    key = table.get(match[1]) if match else None
    digest = digest_of(match[2] if match else "")
    good = hmac.compare_digest(digest, key.digest if key else NO_DIGEST)
    return key if key is not None and good and key.revoked_at is None else None


def is_unknown(token: str, table: Mapping[str, ApiKey]) -> bool:
    """Whether this is a token of the right form whose key the table does not have, be it live or revoked."""
    match = TOKEN.fullmatch(token)
    return match is not None and match[1] not in table


def digest_of(secret: str) -> str:
    """SHA-256 in hexadecimal digits: what is kept of a random secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


class ApiKeys:
    """The writing side, for the command line."""

    def __init__(self, client: redis.Redis, keys: Keys) -> None:
        self._redis: Any = client
        self._keys = keys
        self._name, self._opened = keys.api_keys, keys.opened

    def create(
        self, label: str, scope: Scope, prefix: str = "", show: Callable[[ApiKey, str], None] = lambda key, token: None
    ) -> tuple[ApiKey, str]:
        """A new key and its token, which `show` is given before the key is kept: if it raises, none was made.

        Raises `TooManyKeys`, or ValueError for a prefix that no graph's name has, or a label that is no line.
        """
        if len(label) > MAX_LABEL or not label.isprintable():
            raise ValueError(f"a label is one line of at most {MAX_LABEL} characters")
        if not PREFIX.fullmatch(prefix):
            raise ValueError(f"no graph's name can begin with {prefix!r}")
        if self._redis.hlen(self._name) >= MAX_KEYS:
            raise TooManyKeys(f"there are {MAX_KEYS} keys, those revoked included")
        key, token = new_key(label, scope, prefix)
        show(key, token)
        with self._redis.pipeline() as pipe:
            pipe.hset(self._name, key.id, key.model_dump_json())
            pipe.delete(self._opened)
            pipe.execute()
        return key, token

    def list(self) -> list[ApiKey]:
        """All keys, the oldest first."""
        found = _read(self._redis.hgetall(self._name), self._name).values()
        return sorted(found, key=lambda key: (key.created_at, key.id))

    def revoke(self, key_id: str) -> bool:
        """Revoke a key; its sessions of browsers go with it. False if there is no such key."""
        row = self._redis.hget(self._name, key_id)
        if row is None:
            return False
        key = _read({key_id.encode(): row}, self._name)[key_id]
        if key.revoked_at is None or key.label == UNREADABLE:
            gone = key.model_copy(update={"revoked_at": datetime.now(UTC)})
            with self._redis.pipeline() as pipe:
                pipe.hset(self._name, key_id, gone.model_dump_json())
                pipe.unlink(self._keys.sessions(key_id))
                pipe.execute()
        return True

    def forget(self) -> int:
        """Drop all keys, and let every API process know that the service is to be open. How many there were."""
        with self._redis.pipeline() as pipe:
            pipe.hlen(self._name)
            pipe.delete(self._name)
            pipe.set(self._opened, time.time())
            count, *_ = pipe.execute()
        return int(count)


async def fetch_keys(client: redis.asyncio.Redis, keys: Keys) -> KeyRing:
    """All keys. One round trip."""
    async with client.pipeline(transaction=False) as pipe:
        pipe.hgetall(keys.api_keys)
        pipe.get(keys.opened)
        rows, opened_at = await pipe.execute()
    opened = [] if opened_at is None else [(b"", opened_at)]
    return KeyRing(_read(rows, keys.api_keys), next(readable(opened, keys.opened, lambda _, at: float(at)), None))


def _read(rows: Mapping[bytes, bytes], key: str) -> dict[str, ApiKey]:
    """All keys by their ids. One that cannot be read is as a revoked one: nobody is let in with it, and where there is
    no other the service does not open up."""
    found = dict(readable(rows.items(), key, _read_key))
    lost = {field.decode(errors="replace") for field in rows} - found.keys()
    return found | {key_id: _unreadable_key(key_id) for key_id in lost}


def _read_key(key_id: str, row: bytes) -> tuple[str, ApiKey]:
    key = ApiKey.model_validate_json(row)
    if key.id != key_id:
        raise ValueError("the key has another id")
    return key_id, key


def _unreadable_key(key_id: str) -> ApiKey:
    never = datetime.fromtimestamp(0, UTC)
    return ApiKey(id=key_id, label=UNREADABLE, scope=Scope.READ, digest=NO_DIGEST, created_at=never, revoked_at=never)
