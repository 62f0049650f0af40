"""One try to deliver an event: a POST to an address that was checked, with bounds on time and bytes."""

import asyncio
import ssl
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

import httpx

from service.webhooks.targets import Forbidden, Names, address_of, checked_url, host_of

TRY_S: Final = 15.0
"""Time for one try, from the name's resolution to the head of the answer. Its body is never read."""


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
        self, trusted: Collection[str], context: ssl.SSLContext | None = None, names: Names | None = None
    ) -> None:
        self._trusted = trusted
        self._names = names or Names()
        # A connection is never used again: it is open to an address, and was proven for one of its names alone.
        self._http = httpx.AsyncClient(
            verify=context or httpx.create_ssl_context(),
            trust_env=False,
            follow_redirects=False,
            timeout=TRY_S,
            limits=httpx.Limits(max_keepalive_connections=0),
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
        except (httpx.HTTPError, OSError, UnicodeError) as error:
            return Outcome(error=f"{type(error).__name__}: {error}"[:200])

    async def _post(self, text: str, body: str, headers: Mapping[str, str]) -> Outcome:
        url = checked_url(text, self._trusted)
        address = await address_of(url, self._trusted, self._names)
        own = {"Host": url.netloc.decode("ascii"), "Content-Type": "application/json", "User-Agent": "Headrace"}
        request = self._http.build_request(
            "POST",
            url.copy_with(host=address),
            content=body.encode(),
            headers=own | dict(headers),
            extensions={"sni_hostname": host_of(url)},
        )
        response = await self._http.send(request, stream=True)
        try:
            status = response.status_code
            return Outcome(status, None if 200 <= status < 300 else f"answered {status}")
        finally:
            self._http.cookies.clear()
            await response.aclose()
