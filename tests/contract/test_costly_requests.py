"""No request costs the event loop more than a moment, whoever sends it: /livez answers meanwhile."""

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final

import pytest

from service.api.http.protocol import MAX_HEADERS, MAX_URL_BYTES
from tests.api_process import ApiProcess, api_process
from tests.prober import probing

N = 60_000
SECONDS = 1.0
"""Ten times what the service aims at. The worst of these took it 21 s."""


def request(path: bytes, *headers: bytes) -> bytes:
    lines = [b"GET " + path + b" HTTP/1.1", b"Host: localhost", b"Connection: close", *headers]
    return b"\r\n".join([*lines, b"", b""])


REQUESTS = {
    "one long word": request(b"/" + N * b"a"),
    "many schemes": request(b"/" + N // 4 * b"a://"),
    "many escapes": request(b"/" + N // 3 * b"%41"),
    "bytes that are no text": request(b"/" + N // 4 * b"%ff/"),
    "words within the bound": request(b"/" + (MAX_URL_BYTES - 9) // 4 * b"a://"),
    "many parameters": request(b"/v1/graphs?" + N // 2 * b"a&"),
    "parameters within the bound": request(b"/v1/graphs?" + (MAX_URL_BYTES - 20) // 2 * b"a&"),
    "a quoted cookie": request(b"/v1/graphs", b'Cookie: a="' + N * b"\\" + b'"'),
    "another cookie": request(b"/v1/graphs", b'cOOKIE: a="' + N // 2 * b'\\"' + b'"'),
    "many cookies": request(b"/v1/graphs", b"Cookie: " + N // 2 * b"a;"),
    "many cookies of ours": request(b"/v1/graphs", b"Cookie: " + N // 11 * b"headrace=a;"),
    "a long cookie of ours": request(b"/v1/graphs", b"Cookie: headrace=" + N * b"a"),
    "many preferences": request(b"/v1/jobs/x", b"Prefer: " + N * b","),
    "many proxies": request(b"/livez", b"X-Forwarded-For: " + N // 10 * b"127.0.0.1,"),
    "many headers": request(b"/v1/graphs", *(N // 4 * [b"a:"])),
    "headers within the bound": request(b"/v1/graphs", *((MAX_HEADERS - 2) * [b"a:" + 450 * b"v"])),
    "many media types": request(b"/status", b"Accept: " + N // 2 * b"a,"),
    "a long host": request(b"/v1/graphs", b"Host: " + N * b":"),
    "a long key": request(b"/v1/graphs", b"Authorization: Bearer hr_" + N * b"0"),
    "a long trace": request(b"/v1/graphs", b"traceparent: 00-" + N * b"0"),
    "a long id": request(b"/v1/graphs", b"X-Request-Id: " + N * b"0"),
    "a long version": request(b"/v1/graphs/x", b'If-Match: "' + N * b"1"),
    "many versions": request(b"/v1/graphs/x/capacities", b"If-None-Match: " + N // 4 * b'"1",'),
    "many broken versions": request(b"/v1/graphs/x/capacities", b"If-None-Match: " + N // 3 * b'W/"'),
    "a long origin": request(b"/v1/graphs", b"Origin: http://" + N * b"["),
}


@pytest.fixture(scope="module")
def api(redis_url: str) -> Iterator[ApiProcess]:
    with api_process(redis_url) as api:
        yield api


def answer(address: tuple[str, int], content: bytes) -> bytes:
    """All of it; the server closes."""
    with socket.create_connection(address, timeout=60) as connection:
        connection.sendall(content)
        return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize("name", REQUESTS)
def test_livez_answers_beside_a_costly_request(api: ApiProcess, name: str) -> None:
    before_s = api.cpu_s()
    with probing(api.address) as probes:
        for _ in range(3):
            assert answer(api.address, REQUESTS[name]).startswith((b"HTTP/1.1 2", b"HTTP/1.1 4"))
    print(f"{name}: /livez at worst {1e3 * probes.worst_s:.1f} ms")
    assert probes.failed == 0
    assert probes.worst_s < SECONDS
    assert api.cpu_s() - before_s < SECONDS


CHUNKED = b"POST /v1/graphs/x/max-flow HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
FLOODS = {
    "chunks of one byte": CHUNKED + 500_000 * b"1\r\n \r\n",
    "empty lines in chunks": CHUNKED + 10 * (b"30D40\r\n" + 50_000 * b"\r\n\r\n" + b"\r\n"),
    "requests in a row": 2_000 * b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "empty lines": 500_000 * b"\r\n\r\n",
}


FEW: Final = {"requests in a row": 3}
"""Connections, of what takes long to answer: any of them alone would keep the others waiting for too long."""


@pytest.mark.parametrize("name", FLOODS)
def test_livez_answers_beside_floods(api: ApiProcess, name: str) -> None:
    """Ten connections at once, or a few, send what keeps a parser busy for long."""
    count = FEW.get(name, 10)

    def flood(_: int) -> None:
        with suppress(OSError), socket.create_connection(api.address, timeout=60) as connection:
            connection.sendall(FLOODS[name])
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1 << 20):
                pass

    with probing(api.address) as probes, ThreadPoolExecutor(count) as pool:
        list(pool.map(flood, range(count)))
    print(f"{name}: /livez at worst {1e3 * probes.worst_s:.1f} ms of {probes.count}")
    assert probes.failed == 0
    assert probes.worst_s < 2 * SECONDS  # a tenth of it on an idle machine


def test_cookies_do_not_reach_the_application(api: ApiProcess) -> None:
    """Nor does what is refused: the answer says why."""
    assert b'"graphs":' in answer(api.address, request(b"/v1/graphs", b"Cookie: a=b"))
    for name, why in (("many headers", b"128 headers"), ("one long word", b"URL is over 4096 bytes")):
        assert why in answer(api.address, REQUESTS[name])
