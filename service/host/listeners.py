"""The port of `headrace serve`: bound before anything is started, so that no restart of a process loses it."""

import errno
import ipaddress
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final, TypeAlias

from service.host.refusal import CannotServe

BACKLOG: Final = 2048

AddressInfo: TypeAlias = tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[str | int | bytes, ...]]


@contextmanager
def listening(host: str, port: int, n: int) -> Iterator[Sequence[socket.socket]]:
    """``n`` sockets of one address, one for each API process; port 0 takes a free one.

    The kernel gives each new connection to one of several sockets by the caller's address, so that no process takes
    more than its share. Several can be bound to one port only if each allows it, which would let a second service on
    this machine join them unnoticed: one that does not allow it is bound first. Raises `CannotServe`.
    """
    with ExitStack() as held:
        first = held.enter_context(_bound(host, port, shared=False))
        if n == 1:
            yield [first]
            return
        port = first.getsockname()[1]
        first.close()
        yield [held.enter_context(_bound(host, port, shared=True)) for _ in range(n)]


def _bound(host: str, port: int, *, shared: bool) -> socket.socket:
    family, kind, protocol, _, address = _addresses(host, port)[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        other = "--host" if error.errno == errno.EADDRNOTAVAIL else "--port"
        raise CannotServe(f"cannot listen on {host}:{port}: {error.strerror}; choose another {other}") from None
    return listener


def url_of(listener: socket.socket, scheme: str) -> str:
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether every address of the host is this machine's own. Raises `CannotServe` for a name that is unknown."""
    addresses = {str(info[4][0]) for info in _addresses(host, 0)}
    return all(ipaddress.ip_address(address.partition("%")[0]).is_loopback for address in addresses)


def _addresses(host: str, port: int) -> Sequence[AddressInfo]:
    try:
        found: Sequence[AddressInfo] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return found
    except socket.gaierror as error:
        raise CannotServe(f"--host {host}: {error.strerror}") from None
