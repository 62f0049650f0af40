"""Where events may be sent to, and how one try goes: against names and addresses that lead into our own network."""

import asyncio
import ipaddress
import itertools
import socket
import ssl
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from service.webhooks import posting, targets
from service.webhooks.posting import Outcome, Poster
from service.webhooks.targets import LOOKUPS, Forbidden, Names, addresses_of, checked_url, host_of, hosts_of, is_public
from tests.receiver import Network, receiving

PRIVATE = (
    *("0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "127.0.0.1", "127.255.0.1", "169.254.169.254", "172.16.0.1"),
    *("192.0.0.1", "192.0.2.1", "192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1"),
    *("255.255.255.255", "::", "::1", "::ffff:10.0.0.1", "::ffff:8.8.8.8", "::7f00:1", "64:ff9b::a00:1", "100::1"),
    *("64:ff9b:1::1", "2001::1", "2001:db8::1", "2002:a00:1::1", "3fff::1", "fc00::1", "fd00:ec2::254", "fe80::1"),
    *("fec0::1", "ff02::1", "2001:10::1", "5f00::1", "192.88.99.1", "192.88.99.255", "192.0.0.9", "192.52.193.1"),
    *("2002:808:808::1", "2002:c058:6301::", "64:ff9b::808:808", "64:ff9b::ffff:ffff", "2001:0:4136:e378::1"),
    *("2001:0:ffff::ffff", "::ffff:93.184.216.34", "::ffff:192.88.99.1", "::8.8.8.8", "::ffff:0:8.8.8.8"),
)
PUBLIC = (
    "8.8.8.8",
    "1.1.1.1",
    "93.184.216.34",
    "2606:4700::1111",
    "2a00:1450:4001:81b::200e",
    "192.88.98.1",
    "192.88.100.1",
    "2001:200::1",
    "2003::1",
)


@pytest.mark.parametrize("text", PRIVATE)
def test_private_addresses_are_refused_in_all_their_forms(text: str) -> None:
    assert not is_public(ipaddress.ip_address(text))
    host = f"[{text}]" if ":" in text else text
    with pytest.raises(Forbidden, match="not public"):
        checked_url(f"https://{host}/hook", ())


@pytest.mark.parametrize("text", PUBLIC)
def test_public_addresses_are_let_pass(text: str) -> None:
    assert is_public(ipaddress.ip_address(text))
    host = f"[{text}]" if ":" in text else text
    assert checked_url(f"https://{host}:8443/hook?a=b", ()).path == "/hook"


@pytest.mark.parametrize("host", ["0", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "localhost"])
def test_other_forms_are_judged_by_what_they_resolve_to(host: str) -> None:
    with pytest.raises((Forbidden, OSError)):
        asyncio.run(addresses_of(checked_url(f"https://{host}/", ()), (), Names()))


@pytest.mark.parametrize(
    "host", ["127%2e0.0.1", "..com", "a..example.com", f"{'a' * 64}.example.com", "a." * 126 + "abc"]
)
def test_names_that_no_host_can_have_are_refused_at_once(host: str) -> None:
    """They would be tried for days."""
    with pytest.raises(Forbidden, match="can be no host"):
        checked_url(f"https://{host}/hook", ())


@pytest.mark.parametrize("host", [f"{'a' * 63}.example.com", "hook_1.internal", "EXAMPLE.com.", "a." * 125 + "abc"])
def test_names_that_a_host_can_have_are_taken(host: str) -> None:
    assert checked_url(f"https://{host}/hook", ()).path == "/hook"


def resolving(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> list[str]:
    """Every name has these addresses. The names that were asked for."""
    asked: list[str] = []

    async def getaddrinfo(self: Any, host: str, port: int, **others: Any) -> list[Any]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    monkeypatch.setattr(asyncio.base_events.BaseEventLoop, "getaddrinfo", getaddrinfo)
    return asked


@pytest.mark.parametrize(
    "addresses", [("10.0.0.1",), ("8.8.8.8", "127.0.0.1"), ("fe80::1%2",), ("169.254.169.254",), ()]
)
def test_a_name_is_judged_by_all_its_addresses(monkeypatch: pytest.MonkeyPatch, addresses: tuple[str, ...]) -> None:
    resolving(monkeypatch, *addresses)
    with pytest.raises((Forbidden, OSError)):
        asyncio.run(addresses_of(httpx.URL("https://example.com/"), (), Names()))


def test_names_that_never_resolve_leave_threads_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asked gives up; what was begun goes on, and no more is begun until one of them has ended."""
    asked: list[str] = []

    async def run() -> None:
        answered = asyncio.Event()

        async def getaddrinfo(self: Any, host: str, port: int, **others: Any) -> list[Any]:
            asked.append(host)
            await answered.wait()
            if host != "good":
                raise socket.gaierror("the server failed")
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("8.8.8.8", port))]

        monkeypatch.setattr(asyncio.base_events.BaseEventLoop, "getaddrinfo", getaddrinfo)
        names = Names()
        for number in range(LOOKUPS + 3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await names.resolve(f"bad{number}", 443)
        assert asked == [f"bad{number}" for number in range(LOOKUPS)]
        answered.set()
        assert await names.resolve("good", 443) == ["8.8.8.8"]

    asyncio.run(run())


def test_the_connection_goes_to_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name is resolved once; the request is for the address, and says the name to TLS and in `Host`."""
    asked, network = (
        resolving(monkeypatch, "93.184.216.34", "2606:4700::1111"),
        Network(itertools.repeat(b"HTTP/1.1 204 \r\n\r\n")),
    )

    async def run() -> Outcome:
        return await Poster((), network=network).post("https://Example.com:8443/hook?x=1", "{}", {"webhook-id": "1"})

    assert asyncio.run(run()) == Outcome(204)
    assert asked == ["example.com"]
    assert (network.connected, network.proven) == (["93.184.216.34:8443"], ["example.com"])
    head, _, body = network.sent.partition(b"\r\n\r\n")
    first, *headers = head.lower().split(b"\r\n")
    assert (first, body) == (b"post /hook?x=1 http/1.1", b"{}")
    assert {b"host: example.com:8443", b"webhook-id: 1", b"content-length: 2"} < set(headers)


def test_a_name_of_another_script_is_asked_for_as_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """In German letters it would be resolved, and proven to TLS, as `strasse.de`: somebody else's."""
    asked, network = resolving(monkeypatch, "93.184.216.34"), Network(itertools.repeat(b"HTTP/1.1 204 \r\n\r\n"))

    async def run() -> Outcome:
        return await Poster((), network=network).post("https://XN--strae-oqa.de/hook", "{}", {})

    assert asyncio.run(run()) == Outcome(204)
    assert (asked, network.proven) == (["xn--strae-oqa.de"], ["xn--strae-oqa.de"])
    assert checked_url("http://xn--strae-oqa.de/", hosts_of("xn--strae-oqa.de")).scheme == "http"


def test_a_name_that_moves_into_our_network_is_not_sent_to(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, "127.0.0.1")

    async def run() -> Outcome:
        return await Poster(()).post("https://example.com/", "{}", {})

    outcome = asyncio.run(run())
    assert outcome.answer is None
    assert outcome.error is not None
    assert "not public" in outcome.error


def test_addresses_of_ipv6_are_compared_in_one_form() -> None:
    trusted = hosts_of("FD00:0:0::1, 0:0:0:0:0:0:0:1")
    for url in ("http://[fd00::1]/", "https://[fd00:0::0:1]:8443/", "http://[::1]:9000/hook"):
        assert host_of(checked_url(url, trusted)) in {"fd00::1", "::1"}
    with pytest.raises(Forbidden):
        checked_url("http://[fd00::2]/", trusted)


def test_hosts_that_are_named_may_be_private_and_plain() -> None:
    trusted = hosts_of(" hooks.internal , 10.0.0.7,,")
    assert trusted == {"hooks.internal", "10.0.0.7"}
    assert checked_url("http://10.0.0.7:8080/", trusted).port == 8080
    assert checked_url("http://HOOKS.internal./", trusted)
    for text in ("http://10.0.0.8/", "http://hooks.internal.example.com/", "https://10.0.0.70/"):
        with pytest.raises(Forbidden):
            checked_url(text, trusted)


@pytest.mark.parametrize(
    "text",
    ["", "https://", "https:///x", "//example.com", "javascript:1", "file:///etc/passwd", "https://a@example.com/",
     "https://example.com:0/", "https://example.com:99999/", "https://exa mple.com/", "https://example.com/\r\nX: 1",
     "https://example.com/#x", "https://münchen.de/", "https://example.com/" + 2048 * "a"],
)  # fmt: skip
def test_what_is_no_url_to_send_to(text: str) -> None:
    with pytest.raises(Forbidden):
        checked_url(text, ())


@pytest.mark.parametrize("text", ["https://[::" + 1500 * "x" + "]/", "https://example.com:" + 1500 * "9" + "/"])
def test_a_refusal_quotes_little_of_it(text: str) -> None:
    with pytest.raises(Forbidden) as refused:
        checked_url(text, ())
    assert len(str(refused.value)) < 150


@pytest.fixture
def endless() -> Iterator[str]:
    """A server that answers 200 and a body without end; its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                try:
                    while True:
                        connection.sendall(b"10000\r\n" + 0x10000 * b"x" + b"\r\n")
                except OSError:
                    return

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        thread.join()


def test_an_endless_answer_is_not_read(endless: str) -> None:
    async def run() -> Outcome:
        poster = Poster({"127.0.0.1"})
        try:
            return await poster.post(endless, "{}", {})
        finally:
            await poster.close()

    assert asyncio.run(run()) == Outcome(200)


def test_a_server_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posting, "TRY_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"

        async def run() -> Outcome:
            poster = Poster({"127.0.0.1"})
            try:
                return await poster.post(url, "{}", {})
            finally:
                await poster.close()

        assert asyncio.run(run()) == Outcome(error="no answer within 0.2 s")


def test_cookies_of_a_receiver_are_not_sent_back() -> None:
    with receiving() as receiver:

        async def run() -> None:
            poster = Poster({"127.0.0.1"}, ssl.create_default_context())
            for _ in range(2):
                assert (await poster.post(f"{receiver.url}/", "{}", {})).arrived
            await poster.close()

        asyncio.run(run())
    assert all("cookie" not in one.headers for one in receiver.received)
    assert targets.MAX_URL_CHARS == 2048
