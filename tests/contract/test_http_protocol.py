"""Where one request ends and the next begins, and what becomes of connections that send too much or too little."""

import asyncio
import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from itertools import pairwise
from typing import Any

import pytest
import structlog
import uvicorn

from service.api.http import closing, refusing
from service.api.http import protocol as http_protocol
from service.api.http.connections import Connections, ServerConfig
from service.api.http.protocol import MAX_HEAD_BYTES, MAX_UNREAD_BYTES, BoundedProtocol

Address = tuple[str, int]


class Echo:
    """An application that answers what it was asked; `/early` before it has read any of it, `/begun` with a pause
    behind the head of the answer, `/lines` without saying how long it is."""

    def __init__(self) -> None:
        self.disconnected: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return
        body = b""
        while scope["path"] != "/early":
            message = await receive()
            if message["type"] == "http.disconnect":
                self.disconnected.append(scope["path"])
                return
            body += message["body"]
            if not message["more_body"]:
                break
        await asyncio.sleep(
            2 if scope["path"] == "/slow" else 0.01
        )  # so that what follows has come before this is answered
        headers = [[name.decode(), value.decode()] for name, value in scope["headers"]]
        content = json.dumps({"asked": f"{scope['method']} {scope['path']}", "body": body.decode(), "headers": headers})
        length = [] if scope["path"] == "/lines" else [(b"content-length", str(len(content)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": length})
        if scope["path"] == "/lines":
            await send({"type": "http.response.body", "body": b"[]\n", "more_body": True})
        await asyncio.sleep(1 if scope["path"] == "/begun" else 0)
        await send({"type": "http.response.body", "body": content.encode()})


@pytest.fixture(scope="module")
def echo() -> Echo:
    return Echo()


@pytest.fixture(scope="module")
def address(echo: Echo) -> Iterator[Address]:
    with serving(echo, Connections()) as address:
        yield address


@contextmanager
def serving(echo: Echo, connections: Connections) -> Iterator[Address]:
    options = {"lifespan": "off", "log_config": None, "timeout_keep_alive": 1}
    server = uvicorn.Server(ServerConfig(echo, connections, http=BoundedProtocol, **options))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield listener.getsockname()
        finally:
            server.should_exit = True
            thread.join()


def exchange(address: Address, *pieces: bytes, pause_s: float = 0.03) -> list[dict[str, Any]]:
    """The bodies of all answers until the server closes."""
    text = b""
    with socket.create_connection(address, timeout=30) as connection:
        try:
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(pause_s)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it had enough
        try:
            while piece := connection.recv(65536):
                text += piece
        except ConnectionResetError:
            pass
    answers = []
    while text:
        head, _, text = text.partition(b"\r\n\r\n")
        lines = dict(line.split(b": ", 1) for line in head.lower().splitlines()[1:])
        length = int(lines[b"content-length"])
        answers.append(json.loads(text[:length]))
        text = text[length:]
    return answers


def asked(answers: list[dict[str, Any]]) -> list[Any]:
    """What was answered; of a refusal its status."""
    return [answer.get("asked") or answer["status"] for answer in answers]


def get(path: str, *headers: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: h", *headers, "", ""]).encode()


def post(path: str, body: bytes, *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: h", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


CHUNKED = b"POST /chunks HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST = get("/last", "Connection: close")
UPGRADE = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__")


def half_closed(address: Address, asked: bytes) -> bytes:
    """What comes back after the caller has closed its side, as `nc -N` does."""
    with socket.create_connection(address, timeout=30) as connection:
        connection.sendall(asked)
        connection.shutdown(socket.SHUT_WR)
        found = b""
        while piece := connection.recv(65536):
            found += piece
    return found


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_who_asks_in_http_1_0_gets_no_chunks(address: Address, method: str) -> None:
    """Their sizes stood between the lines of an answer, and before each event."""
    for path, begins in (("/lines", b"[]\n{"), ("/quick", b"{")):
        answer = half_closed(address, get(path).replace(b"GET", method.encode()).replace(b"HTTP/1.1", b"HTTP/1.0"))
        head, _, body = answer.partition(b"\r\n\r\n")
        assert b"transfer-encoding" not in head.lower()
        assert b"connection: close" in head.lower()
        assert (b"content-length" in head.lower()) == (path == "/quick")
        if method == "GET":
            assert body.startswith(begins)
            assert body.endswith(b"}")
        else:
            assert body == b""


def test_who_closes_its_own_side_is_answered(address: Address) -> None:
    """Whole, and the server closes behind it."""
    for path in ("/quick", "/slow", "/early"):
        head, _, body = half_closed(address, get(path)).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), path
        assert json.loads(body)["asked"] == f"GET {path}"
    assert half_closed(address, get("/one") + get("/two")).count(b"HTTP/1.1 200") == 2
    assert b'"body": "whole"' in half_closed(address, post("/post", b"whole"))


def test_who_closes_its_own_side_is_not_waited_for_without_end(
    address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that has gone looks the same, and kept a place among the connections for as long as it had wanted to
    wait."""
    monkeypatch.setattr(http_protocol, "HALF_CLOSED_S", 0.3)
    assert half_closed(address, get("/slow")) == b""
    assert half_closed(address, get("/quick")).startswith(b"HTTP/1.1 200")
    body = half_closed(address, get("/begun")).partition(b"\r\n\r\n")[2]
    assert json.loads(body)["asked"] == "GET /begun", "which goes on for longer"


def test_who_closes_before_the_end_of_a_request_is_not_waited_for(address: Address, echo: Echo) -> None:
    echo.disconnected.clear()
    assert half_closed(address, get("/none")[:-2]) == b""
    assert half_closed(address, post("/part", b"whole")[:-1]) == b""
    assert half_closed(address, b"") == b""
    assert echo.disconnected == ["/part"]


@pytest.mark.parametrize("at_once", [True, False])
def test_an_offer_of_another_protocol_is_passed_over(address: Address, at_once: bool) -> None:
    """As Java's client makes one with its first request. The body is the request's, and no request of its own."""
    hidden = get("/hidden")
    parts = [get("/offer", *UPGRADE), post("/post", hidden, *UPGRADE), post("/plain", hidden), LAST]
    answers = exchange(address, *([b"".join(parts)] if at_once else parts))
    assert asked(answers) == ["GET /offer", "POST /post", "POST /plain", "GET /last"]
    assert [answer["body"] for answer in answers] == ["", hidden.decode(), hidden.decode(), ""]


def test_a_long_body_with_an_offer_comes_whole(address: Address) -> None:
    body = 300_000 * b"x"
    whole = post("/post", body, *UPGRADE) + LAST
    first, _ = exchange(address, *(whole[i : i + 50_000] for i in range(0, len(whole), 50_000)))
    assert first["body"] == body.decode()


def test_an_offer_with_chunks_is_refused(address: Address) -> None:
    offer = CHUNKED.replace(b"Host: h", "\r\n".join(["Host: h", *UPGRADE]).encode())
    assert asked(exchange(address, offer + b"0\r\n\r\n" + get("/hidden"))) == [400]


def test_a_tunnel_is_refused(address: Address) -> None:
    assert asked(exchange(address, b"CONNECT a:1 HTTP/1.1\r\nHost: h\r\n\r\n" + get("/hidden"))) == [400]


@pytest.mark.parametrize("cut", range(1, 8))
def test_an_end_in_pieces_is_an_end(address: Address, cut: int) -> None:
    """Of a head, and of a body in chunks, wherever the bytes are cut."""
    parts = [get("/a"), CHUNKED, b"3\r\nabc\r\n0\r\n\r\n", get("/b")]
    whole = b"".join(parts)
    ends = [len(b"".join(parts[:count])) for count in (1, 2, 3, 4)]
    cuts = [0, *(end - cut for end in ends), len(whole)]
    pieces = [whole[i:j] for i, j in pairwise(cuts)]
    answers = exchange(address, *pieces, LAST)
    assert asked(answers) == ["GET /a", "POST /chunks", "GET /b", "GET /last"]
    assert answers[1]["body"] == "abc"


def test_many_requests_at_once_are_answered_in_order(address: Address) -> None:
    answers = exchange(address, b"".join(get(f"/{n}") for n in range(300)) + LAST)
    assert asked(answers) == [*(f"GET /{n}" for n in range(300)), "GET /last"]


def test_what_comes_after_a_last_request_is_not_kept(address: Address) -> None:
    assert asked(exchange(address, LAST + get("/more"), 1000 * get("/more"))) == ["GET /last"]


def test_what_stands_behind_chunks_is_no_header(address: Address) -> None:
    whole = CHUNKED + b"3;note=x\r\nabc\r\n0\r\nX-Api-Key: hr_1\r\nX: y\r\n\r\n" + LAST
    first, last = exchange(address, whole)
    assert (first["body"], last["asked"]) == ("abc", "GET /last")
    assert [name for name, _ in first["headers"]] == ["host", "transfer-encoding"]


@pytest.mark.parametrize(
    ("begin", "more"),
    [
        (b"3\r\nabc\r\n0\r\nX: ", 4096 * b"x"),
        (b"3;note=", 4096 * b"x"),
        (b"", b"1;" + 4096 * b"x" + b"\r\ny\r\n"),
        (b"3\r\nabc\r\n0\r\n", 512 * b"X: xxx\r\n"),
    ],
    ids=["trailer", "extension", "extensions", "trailers"],
)
def test_what_stands_around_chunks_is_bounded(address: Address, begin: bytes, more: bytes) -> None:
    (refused,) = exchange(address, CHUNKED + begin, *(60 * [more]))
    assert refused["detail"] == "there is too much around the chunks of the body"


def test_chunks_may_be_small(address: Address) -> None:
    first, _ = exchange(address, CHUNKED + 50_000 * b"1\r\nx\r\n" + b"0\r\n\r\n" + LAST)
    assert first["body"] == 50_000 * "x"


@pytest.mark.parametrize(
    ("sent", "known"),
    [
        (b"nonsense\r\n\r\n", False),
        (get("/" + 5000 * "x", "X-Request-Id: mine"), False),
        (get("/x", "X-Request-Id: mine", *(200 * ["A: b"])), True),
        (get("/x", "X-Request-Id: no id", *(200 * ["A: b"])), False),
        (get("/x", "X-Request-Id: mine", "Transfer-Encoding: gzip"), True),
        (CHUNKED.replace(b"\r\n\r\n", b"\r\nX-Request-Id: mine\r\n\r\n") + b"zz\r\n", True),
        (get("/first", "X-Request-Id: other") + b"nonsense\r\n\r\n", False),
        (get("/first", "X-Request-Id: other") + 40 * b"\r\n\r\n", False),
    ],
    ids=[
        "no head",
        "before its headers",
        "headers",
        "another id",
        "coding",
        "body",
        "behind another",
        "lines behind another",
    ],
)
def test_a_refusal_has_a_date_and_the_id_of_its_request(address: Address, sent: bytes, known: bool) -> None:
    """That of the caller, if it came before what is refused."""
    with socket.create_connection(address, timeout=30) as connection:
        connection.sendall(sent)
        found = b""
        while piece := connection.recv(65536):
            found += piece
    head, _, body = found[found.rindex(b"HTTP/1.1 ") :].partition(b"\r\n\r\n")
    lines = dict(line.split(": ", 1) for line in head.decode().splitlines()[1:])
    assert head.startswith(b"HTTP/1.1 400 ")
    assert abs(parsedate_to_datetime(lines["date"]).timestamp() - time.time()) < 60
    assert lines["x-request-id"] == json.loads(body)["request_id"]
    assert (lines["x-request-id"] == "mine") is known
    assert len(lines["x-request-id"]) == (4 if known else 32)


class IdsOfLines(logging.Handler):
    """The request ids under which lines are logged, as every line of the service gets that of its context."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Any] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(structlog.contextvars.get_contextvars().get("request_id"))


@pytest.mark.parametrize(
    ("sent", "known"),
    [
        (b"nonsense\r\n\r\n", False),
        (get("/x", "X-Request-Id: mine", "Transfer-Encoding: gzip"), True),
        (CHUNKED.replace(b"\r\n\r\n", b"\r\nX-Request-Id: mine\r\n\r\n") + b"zz\r\n", True),
        (get("/first", "X-Request-Id: other") + b"nonsense\r\n\r\n", False),
    ],
    ids=["no head", "coding", "body", "behind another"],
)
def test_the_line_of_a_refusal_has_the_id_of_its_answer(
    address: Address, monkeypatch: pytest.MonkeyPatch, sent: bytes, known: bool
) -> None:
    monkeypatch.setattr(refusing, "TOLD_EVERY_S", 0.0)
    logger, lines = logging.getLogger("uvicorn.error"), IdsOfLines()
    logger.addHandler(lines)
    try:
        answer = exchange(address, sent)[-1]
    finally:
        logger.removeHandler(lines)
    assert lines.found == [answer["request_id"]]
    assert (answer["request_id"] == "mine") is known


def test_a_broken_body_is_refused_once(address: Address, echo: Echo) -> None:
    """And whoever reads it hears so at once."""
    echo.disconnected.clear()
    assert asked(exchange(address, CHUNKED, b"3\r\nabc\r\nno length\r\n" + get("/hidden"))) == [400]
    assert echo.disconnected == ["/chunks"]
    early = CHUNKED.replace(b"/chunks", b"/early")
    assert asked(exchange(address, early, b"3\r\nabc\r\nno length\r\n" + get("/hidden"))) == ["POST /early"]


def test_a_short_body_that_comes_after_its_answer_is_passed_over(address: Address) -> None:
    body = 200_000 * b"x"
    whole = post("/early", body)
    answers = exchange(address, whole[:100], whole[100:1000], whole[1000:], LAST)
    assert asked(answers) == ["POST /early", "GET /last"]


def test_a_long_one_ends_the_connection(address: Address) -> None:
    head = post("/early", b"", "X: y").replace(b"Content-Length: 0", b"Content-Length: %d" % 10**9)
    began = time.monotonic()
    assert asked(exchange(address, head, *(40 * [MAX_UNREAD_BYTES // 20 * b"x"]))) == ["POST /early"]
    assert time.monotonic() - began < http_protocol.HEAD_TIMEOUT_S


LONG_PATH = b"GET /" + 20_000 * b"a"


def test_a_refusal_is_read_by_who_is_still_sending(address: Address) -> None:
    """Found by one run of the attacks in five: the connection was reset, and the answer lost."""
    with socket.create_connection(address, timeout=30) as connection:
        connection.sendall(LONG_PATH)
        time.sleep(0.1)
        for _ in range(20):
            connection.sendall(10_000 * b"a")
            time.sleep(0.01)
        text = b"".join(iter(lambda: connection.recv(65536), b""))
    assert text.startswith(b"HTTP/1.1 400 ")
    assert text.count(b"HTTP/1.1") == 1


def pour(connection: socket.socket) -> None:
    for _ in range(100):
        connection.sendall(MAX_UNREAD_BYTES // 8 * b"a")
        time.sleep(0.01)


@pytest.mark.parametrize("sends", ["nothing more", "without end"])
def test_who_is_refused_and_stays_is_cut_off(address: Address, sends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closing, "LINGER_S", 0.3 if sends == "nothing more" else 60)
    with socket.create_connection(address, timeout=30) as connection:
        connection.sendall(LONG_PATH)
        assert b"".join(iter(lambda: connection.recv(65536), b"")).startswith(b"HTTP/1.1 400 ")
        if sends == "nothing more":
            time.sleep(0.6)
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            pour(connection)


@pytest.mark.parametrize("first", ["nothing", "an answer", "an answer that came early"])
@pytest.mark.parametrize("drip", [b"\r\n", b"G"])
def test_who_drips_is_cut_off(address: Address, first: str, drip: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty lines between requests, a head or a body that nobody reads: none of them holds a connection for long."""
    monkeypatch.setattr(http_protocol, "HEAD_TIMEOUT_S", 0.4)
    early = post("/early", b"", "X: y").replace(b"Content-Length: 0", b"Content-Length: 900")
    begin = {"nothing": b"", "an answer": get("/a"), "an answer that came early": early}[first]
    began = time.monotonic()
    exchange(address, begin, *(200 * [drip]), pause_s=0.05)
    assert time.monotonic() - began < 5


def test_a_request_that_waited_for_another_has_its_time(address: Address) -> None:
    """The time that an idle connection has does not run while it is answered, though it came before it was idle."""
    answers = exchange(address, get("/a") + 2 * get("/slow") + LAST)
    assert asked(answers) == ["GET /a", *(2 * ["GET /slow"]), "GET /last"]


def test_an_answer_may_take_longer_than_a_head(address: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_TIMEOUT_S", 0.3)
    assert asked(exchange(address, get("/a") + get("/slow") + LAST)) == ["GET /a", "GET /slow", "GET /last"]


def test_a_connection_for_which_there_is_no_place_is_closed(echo: Echo) -> None:
    """All others have requests to answer. Once one is answered, its place can be had."""
    with serving(echo, Connections(limit=2)) as address, socket.create_connection(address, timeout=30) as busy:
        busy.sendall(get("/slow") + get("/slow"))
        with socket.create_connection(address, timeout=30) as other:
            other.sendall(get("/slow"))
            time.sleep(0.3)
            assert exchange(address, LAST) == []
            assert other.recv(12) == b"HTTP/1.1 200"
            assert asked(exchange(address, LAST)) == ["GET /last"]
        assert busy.recv(12) == b"HTTP/1.1 200"


@pytest.mark.parametrize("path", ["/chunks", "/early"])
@pytest.mark.parametrize("chunk", [b"1\r\nx\r\n", b"14\r\n" + 20 * b"x" + b"\r\n", b"32\r\n" + 50 * b"x" + b"\r\n"])
def test_more_than_one_turn_of_small_chunks(address: Address, path: str, chunk: bytes) -> None:
    """They take the parser longer than it may keep the event loop; none is lost, and what follows is in order."""
    head = CHUNKED.replace(b"/chunks", path.encode())
    count = 900_000 // len(chunk)
    answers = exchange(address, head + count * chunk + b"0\r\n\r\n" + get("/a") + LAST)
    assert asked(answers) == [f"POST {path}", "GET /a", "GET /last"]
    assert len(answers[0]["body"]) == (0 if path == "/early" else count * chunk.count(b"x"))


def test_empty_lines_before_a_request_are_few(address: Address) -> None:
    assert asked(exchange(address, 4 * b"\r\n" + LAST)) == ["GET /last"]
    assert asked(exchange(address, 1000 * b"\r\n" + LAST)) == [400]


def test_an_idle_connection_is_closed(address: Address) -> None:
    began = time.monotonic()
    assert asked(exchange(address, get("/a"))) == ["GET /a"]
    assert time.monotonic() - began < 10


def test_a_head_of_the_longest_kind(address: Address) -> None:
    """To the byte, at once and in pieces; one more is refused."""
    for longer, outcome in ((0, ["GET /a"]), (1, [400])):
        bare = get("/a", "Connection: close", "X: ")
        whole = bare.replace(b"X: ", b"X: " + (MAX_HEAD_BYTES - len(bare) + longer) * b"x")
        assert asked(exchange(address, whole)) == outcome
        assert asked(exchange(address, whole[:20_000], whole[20_000:50_000], whole[50_000:])) == outcome


@pytest.mark.parametrize(
    "name",
    ["Host", "Content-Type", "content-encoding", "If-Match", "Idempotency-Key", "Authorization", "X-API-Key"],
)
@pytest.mark.parametrize("same", [True, False])
def test_a_header_that_counts_once_is_not_there_twice(address: Address, name: str, same: bool) -> None:
    """Of two a proxy may take one and we the other."""
    lines = [f"{name}: h", f"{name.upper()}: {'h' if same else 'i'}"]
    lines += [] if name == "Host" else ["Host: h"]
    head = "\r\n".join(["POST /first HTTP/1.1", *lines, "Content-Length: 0", "", ""]).encode()
    (answer,) = exchange(address, head + LAST)
    assert (answer["status"], answer["code"]) == (400, "invalid_request")
    assert answer["detail"] == f"the header {name.lower()} is there 2 times"


def test_other_headers_may_be_there_twice(address: Address) -> None:
    first = get("/first", "Prefer: wait=1", "Prefer: x", "Accept: a", "Accept: b", "Content-Type: text/csv")
    assert asked(exchange(address, first, LAST)) == ["GET /first", "GET /last"]


@pytest.mark.parametrize(
    "coding", ["gzip, chunked", "chunked, chunked", "identity, chunked", "gzip", "x", "", "chunked;q=1", "chunked,"]
)
def test_a_body_is_sent_in_chunks_and_in_no_other_coding(address: Address, coding: str) -> None:
    head = f"POST /first HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: {coding}\r\n\r\n".encode()
    (answer,) = exchange(address, head + b"3\r\nabc\r\n0\r\n\r\n" + LAST)
    assert (answer["status"], answer["code"]) == (400, "invalid_request")


@pytest.mark.parametrize("version", ["HTTP/1.0", "HTTP/0.9", "HTTP/2.0"])
def test_only_http_1_1_has_bodies_in_chunks(address: Address, version: str) -> None:
    """A proxy that speaks an earlier one passes such a body on as the next requests (RFC 9112, 6.1)."""
    head = f"POST /first {version}\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    (answer,) = exchange(address, head + b"3\r\nabc\r\n0\r\n\r\n" + LAST)
    assert (answer["status"], answer["code"]) == (400, "invalid_request")


def test_a_request_of_http_1_1_has_a_host(address: Address) -> None:
    """Else it is refused, whatever it asks for (RFC 9112, 3.2). It may be empty; HTTP/1.0 need not have one."""
    (answer,) = exchange(address, b"GET /livez HTTP/1.1\r\n\r\n" + LAST)
    assert (answer["status"], answer["code"]) == (400, "invalid_request")
    assert answer["detail"] == "a request of HTTP/1.1 has a Host"
    assert asked(exchange(address, b"GET /first HTTP/1.1\r\nHost:\r\n\r\n" + LAST)) == ["GET /first", "GET /last"]
    assert asked(exchange(address, b"GET /first HTTP/1.0\r\n\r\n")) == ["GET /first"]


@pytest.mark.parametrize("target", ["http://localhost/a", "HTTP://LocalHost/a", "http://localhost/a?b=http://c"])
def test_a_request_line_may_name_the_host_as_proxies_get_it(address: Address, target: str) -> None:
    (answer,) = exchange(address, f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    assert answer["asked"] == "GET /a"


@pytest.mark.parametrize("target", ["http://evil.test/a", "http://localhost:1/a", "http://u@localhost/a"])
def test_a_request_line_that_names_another_host_is_refused(address: Address, target: str) -> None:
    """It counts for more than `Host` (RFC 9112, 3.2.2), which the guard against rebound names looks at."""
    (answer,) = exchange(address, f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert (answer["status"], answer["code"]) == (400, "invalid_request")
    assert answer["detail"] == "the request line names another host than the header Host"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("GET /first HTTP/0.9", ""),
        ("GET /first HTTP/2.0", ""),
        ("GET /first", ""),
        ("get /first HTTP/1.1", ": invalid method encountered"),
        ("PUT /first HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2", ": duplicate Content-Length"),
        ("GET /first HTTP/1.1\r\nX: a\0b", ": invalid header value char"),
    ],
)
def test_what_is_no_http_1_is_refused(address: Address, line: str, reason: str) -> None:
    (answer,) = exchange(address, f"{line}\r\nHost: h\r\n\r\n".encode())
    assert (answer["status"], answer["detail"]) == (400, f"this is no request of HTTP/1.1{reason}")


def test_two_codings_in_two_headers_are_refused(address: Address) -> None:
    for first, second in (("gzip", "chunked"), ("chunked", "chunked"), ("chunked", "gzip")):
        codings = f"Transfer-Encoding: {first}\r\nTransfer-Encoding: {second}\r\n"
        head = f"POST /first HTTP/1.1\r\nHost: h\r\n{codings}\r\n".encode()
        (answer,) = exchange(address, head + b"3\r\nabc\r\n0\r\n\r\n" + LAST)
        assert (answer["status"], answer["code"]) == (400, "invalid_request")


@pytest.mark.parametrize("coding", ["chunked", "Chunked", " chunked "])
def test_chunked_is_read_however_it_is_written(address: Address, coding: str) -> None:
    head = f"POST /first HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: {coding}\r\n\r\n".encode()
    first, last = exchange(address, head + b"3\r\nabc\r\n0\r\n\r\n", LAST)
    assert (first["body"], last["asked"]) == ("abc", "GET /last")
