"""Where events may be sent to: public addresses, by https. Others only to hosts that the operator has named.

A name is resolved at each try, all of its addresses are checked, and the connection goes to one that was checked. So
a name that stands for another address a moment later leads nowhere.
"""

import asyncio
import ipaddress
import re
import socket
from collections.abc import Collection
from typing import Any, Final

import httpx

MAX_URL_CHARS: Final = 2048
SHOWN_CHARS: Final = 100
"""Characters of a URL that is none which a refusal quotes."""

NAME: Final = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
MAX_NAME_CHARS: Final = 253
"""A name that DNS can have: another one would be tried for days, and never be found."""

FEW_ADDRESSES: Final = 3
"""How many addresses of one host are tried, one after the other: a machine may be down, or IPv6 may lead nowhere."""

LOOKUPS: Final = 2
"""How many names are resolved at a time: fewer than an event loop has threads for, which connections to Redis need
too."""

IPV4_OTHERS: Final = tuple(
    ipaddress.ip_network(network)
    for network in ("192.0.0.0/24", "192.52.193.0/24", "192.88.99.0/24")  # protocols, relays of multicast and of 6to4
)
IPV6_GLOBAL: Final = ipaddress.ip_network("2000::/3")
IPV6_OTHERS: Final = tuple(
    ipaddress.ip_network(network)
    for network in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")  # tunnels to IPv4, protocols, documents
)


class Forbidden(ValueError):
    """Nothing is sent to this URL; the text says why."""


class Names:
    """Resolves names, `LOOKUPS` at a time.

    One whose server never answers holds a thread of the event loop for most of a minute, and nothing can stop it. It
    counts for as long as it does, even if whoever asked has given up.
    """

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(LOOKUPS)

    async def resolve(self, host: str, port: int) -> list[str]:
        """All addresses of a host. Raises OSError or UnicodeError."""
        await self._places.acquire()
        loop = asyncio.get_running_loop()
        found = loop.create_task(loop.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        found.add_done_callback(self._done)
        return [str(address[0]) for *_, address in await asyncio.shield(found)]

    def _done(self, found: asyncio.Task[Any]) -> None:
        self._places.release()
        if not found.cancelled():
            found.exception()  # taken note of, as whoever asked may be gone


def hosts_of(setting: str) -> frozenset[str]:
    """The hosts of the setting `webhook_hosts`."""
    return frozenset(_compared(host.strip()) for host in setting.split(",") if host.strip())


def checked_url(text: str, trusted: Collection[str]) -> httpx.URL:
    """The URL, if it may be sent to as far as it says itself. Raises `Forbidden`."""
    if len(text) > MAX_URL_CHARS:
        raise Forbidden(f"a URL has at most {MAX_URL_CHARS} characters")
    if not text.isascii() or any(char.isspace() or not char.isprintable() for char in text):
        raise Forbidden("a URL has printable ASCII characters only")
    try:
        url = httpx.URL(text)
        port = url.port
    except (httpx.InvalidURL, ValueError) as error:
        raise Forbidden(f"this is no URL: {str(error)[:SHOWN_CHARS]}") from None
    host = host_of(url)
    if not host:
        raise Forbidden("a URL names a host, as in https://example.com/hook")
    if not _may_be_there(host):
        raise Forbidden(
            f"{host[:SHOWN_CHARS]} can be no host: a name has parts of 1 to 63 letters and digits, with points between"
        )
    if url.userinfo:
        raise Forbidden("a URL holds no user and no password: the signature says who sends")
    if url.fragment:
        raise Forbidden("a URL that is sent to has no fragment")
    if port is not None and not 0 < port < 1 << 16:
        raise Forbidden(f"{str(port)[:SHOWN_CHARS]} is no port")
    if url.scheme != "https" and not (url.scheme == "http" and host in trusted):
        raise Forbidden("events are sent by https; by http only to hosts that HEADRACE_WEBHOOK_HOSTS names")
    if host not in trusted:
        _refuse_private([host])
    return url


def host_of(url: httpx.URL) -> str:
    """The host of a URL in the form in which hosts are compared.

    As it is written: what it stands for in other scripts, which `url.host` is, is another host by the older rules of
    IDNA, which Python resolves and names to TLS by: `xn--strae-oqa.de` would be `strasse.de`.
    """
    return _compared(url.raw_host.decode("ascii"))


def _may_be_there(host: str) -> bool:
    """Whether this is an address, or a name that DNS can have."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return len(host) <= MAX_NAME_CHARS and NAME.fullmatch(host) is not None
    return True


def _compared(host: str) -> str:
    """An address in its one shortest form, as IPv6 has many; a name in lower case."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host.lower().rstrip(".")


async def addresses_of(url: httpx.URL, trusted: Collection[str], names: Names) -> list[str]:
    """`FEW_ADDRESSES` of the host at most, after all that it has were looked at, the first of each family first.

    Raises `Forbidden`, OSError or UnicodeError.
    """
    host = host_of(url)
    addresses = await names.resolve(host, url.port or (443 if url.scheme == "https" else 80))
    if not addresses:
        raise OSError(f"{host} has no address")
    if host not in trusted:
        _refuse_private(addresses, must_be_addresses=True)
    others = [address for address in addresses if (":" in address) != (":" in addresses[0])]
    return list(dict.fromkeys([addresses[0], *others[:1], *addresses]))[:FEW_ADDRESSES]


def is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether an address belongs to the internet, and to no network of its own, this machine, or a tunnel to one."""
    if isinstance(address, ipaddress.IPv4Address):
        return (
            address.is_global
            and not address.is_multicast
            and not address.is_reserved
            and not any(address in network for network in IPV4_OTHERS)
        )
    return address in IPV6_GLOBAL and address.is_global and not any(address in network for network in IPV6_OTHERS)


def _refuse_private(hosts: Collection[str], *, must_be_addresses: bool = False) -> None:
    for host in hosts:
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            if must_be_addresses:
                raise Forbidden("the host does not resolve to an address") from None
            continue
        if not is_public(address):
            raise Forbidden("its address is not public: an operator can allow the host by HEADRACE_WEBHOOK_HOSTS")
