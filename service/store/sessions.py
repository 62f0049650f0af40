"""Sessions of browsers: somebody typed an API key once, and the browser shows a cookie in its place.

A session is 256 random bits, of which Redis keeps the SHA-256, beside the API key it stands for: whoever reads Redis
cannot show it. It ends after `SESSION_S`, when it is closed, and with its API key.
"""

import hmac
import re
import secrets
import time
from typing import Any, Final

import redis.asyncio
from pydantic import BaseModel, ConfigDict

from service.store.api_keys import NO_DIGEST, digest_of
from service.store.keys import Keys
from service.store.unreadable import readable

SESSION_TOKEN: Final = re.compile(r"hs_([0-9a-f]{12})_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
"""The id of the API key, the id of the session, and its secret."""

SESSION_S: Final = 12 * 3600
"""How long a session lasts: a shift. Use does not make it longer."""

SESSIONS_OF_A_KEY: Final = 20
"""How many sessions a key has open at a time; one more closes the oldest."""


class Session(BaseModel):
    """One session as it lies in Redis."""

    model_config = ConfigDict(frozen=True)

    digest: str
    """SHA-256 of the secret, in hexadecimal digits."""
    ends_at: float
    """Unix seconds."""


class Sessions:
    """Opens, checks and closes sessions. Raises RedisError."""

    def __init__(self, client: redis.asyncio.Redis, keys: Keys) -> None:
        self._redis: Any = client
        self._keys = keys

    async def open(self, key_id: str) -> str:
        """A new session of this API key: its token, which is kept nowhere. Two round trips."""
        now, session_id, secret = time.time(), secrets.token_hex(6), secrets.token_urlsafe(32)
        name = self._keys.sessions(key_id)
        rows = await self._redis.hgetall(name)
        listed = dict(readable(rows.items(), name, lambda kept, row: (kept, _read(row))))
        newest = sorted((kept for kept in listed if listed[kept].ends_at > now), key=lambda kept: listed[kept].ends_at)
        ended = rows.keys() - {kept.encode() for kept in newest[-(SESSIONS_OF_A_KEY - 1) :]}
        opened = Session(digest=digest_of(secret), ends_at=now + SESSION_S)
        async with self._redis.pipeline() as pipe:
            if ended:
                pipe.hdel(name, *ended)
            pipe.hset(name, session_id, opened.model_dump_json())
            pipe.expire(name, SESSION_S)
            await pipe.execute()
        return f"hs_{key_id}_{session_id}_{secret}"

    async def is_open(self, token: str) -> bool:
        """Whether the session of this token goes on. Its secret is compared in constant time. One round trip."""
        match = SESSION_TOKEN.fullmatch(token)
        if match is None:
            return False
        name = self._keys.sessions(match[1])
        row = await self._redis.hget(name, match[2])
        rows = [] if row is None else [(match[2].encode(), row)]
        known = next(readable(rows, name, lambda _, text: _read(text)), None)
        good = hmac.compare_digest(digest_of(match[3]), known.digest if known else NO_DIGEST)
        return good and known is not None and known.ends_at > time.time()

    async def close(self, token: str) -> None:
        """End the session of this token, if there is one. Who knows its id alone cannot."""
        match = SESSION_TOKEN.fullmatch(token)
        if match is not None and await self.is_open(token):
            await self._redis.hdel(self._keys.sessions(match[1]), match[2])


def _read(row: bytes) -> Session:
    return Session.model_validate_json(row)
