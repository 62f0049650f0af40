"""One try to deliver an event: a POST to an address that was checked, with bounds on time and bytes."""

import asyncio
import ssl
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import httpcore
import httpx

from service.webhooks.metered import Metered
from service.webhooks.targets import Forbidden, Names, addresses_of, checked_url, host_of

TRY_S: Final = 15.0
"""Time for one try, from the name's resolution to the head of the answer. Its body is never read."""

CONNECT_S: Final = 4.0
"""Time for a connection, where the host has a further address that is tried behind it."""

FAILURES: Final = (
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.TimeoutException,
    httpcore.UnsupportedProtocol,
    OSError,
    UnicodeError,
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one try."""

    answer: int | None = None
    error: str | None = None

    @property
    def arrived(self) -> bool:
        return self.answer is not None and 200 <= self.answer < 300


class Poster:
    """Sends to webhooks. No proxy, no redirect, no cookie, and a connection of its own for each try."""

    def __init__(
        self,
        trusted: Collection[str],
        context: ssl.SSLContext | None = None,
        names: Names | None = None,
        network: httpcore.AsyncNetworkBackend | None = None,
    ) -> None:
        self._trusted = trusted
        self._names = names or Names()
        # A connection is never used again: it is open to an address, and was proven for one of its names alone.
        self._http = httpcore.AsyncConnectionPool(
            ssl_context=context or httpx.create_ssl_context(),
            max_keepalive_connections=0,
            network_backend=Metered(network or httpcore.AnyIOBackend()),
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def post(self, url: str, body: str, headers: Mapping[str, str]) -> Outcome:
        """What became of it; nothing is raised but a cancel."""
        try:
            async with asyncio.timeout(TRY_S):
                return await self._post(url, body, headers)
        except TimeoutError:
            return Outcome(error=f"no answer within {TRY_S:g} s")
        except Forbidden as error:
            return Outcome(error=f"not sent: {error}")
        except FAILURES as error:
            return Outcome(error=f"{type(error).__name__}: {error}"[:200])

    async def _post(self, text: str, body: str, headers: Mapping[str, str]) -> Outcome:
        url = checked_url(text, self._trusted)
        addresses = await addresses_of(url, self._trusted, self._names)
        content = body.encode()
        own = {
            "Host": url.netloc.decode("ascii"),
            "Content-Type": "application/json",
            "Content-Length": str(len(content)),
            "User-Agent": "Headrace",
            "Connection": "close",
        }
        for address in addresses[:-1]:
            with suppress(httpcore.ConnectError, httpcore.ConnectTimeout):  # nothing was sent
                return await self._post_to(address, url, content, [*own.items(), *headers.items()], CONNECT_S)
        return await self._post_to(addresses[-1], url, content, [*own.items(), *headers.items()], None)

    async def _post_to(
        self, address: str, url: httpx.URL, content: bytes, headers: list[tuple[str, str]], connect_s: float | None
    ) -> Outcome:
        target = httpcore.URL(scheme=url.raw_scheme, host=address.encode(), port=url.port, target=url.raw_path)
        async with self._http.stream(
            "POST",
            target,
            headers=headers,
            content=content,
            extensions={"sni_hostname": host_of(url), "timeout": {"connect": connect_s}},
        ) as response:
            status = response.status
        return Outcome(status, None if 200 <= status < 300 else f"answered {status}")
