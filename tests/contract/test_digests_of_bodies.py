"""A body whose digest is not the one that was said changes nothing; a wait beside respond-async comes first."""

import base64
import hashlib
import zlib

import pytest
from starlette.datastructures import Headers

from service.api.bodies.digests import Digests
from service.api.headers import Waiting, waiting
from service.settings import Settings
from tests.contract.fakes import Api

CAPACITIES = "/v1/graphs/city/capacities"
BODY = b'{"edges": [1], "set": [2]}'
OTHER = b'{"edges": [1], "set": [3]}'


def digest(content: bytes, algorithm: str = "sha-256") -> str:
    text = base64.b64encode(hashlib.new(algorithm.replace("-", ""), content).digest()).decode()
    return f"{algorithm}=:{text}:"


def patch(api: Api, content: bytes, headers: dict[str, str]) -> tuple[int, str | None, str | None]:
    """Status, code and header of the answer."""
    answer = api.http.patch(CAPACITIES, content=content, headers={"Content-Type": "application/json"} | headers)
    said = answer.json()
    return answer.status_code, said.get("code"), said.get("header")


@pytest.mark.parametrize("name", ["Content-Digest", "Repr-Digest"])
@pytest.mark.parametrize("algorithm", ["sha-256", "sha-512"])
def test_a_body_has_the_digest_that_is_said(api: Api, name: str, algorithm: str) -> None:
    assert patch(api, BODY, {name: digest(BODY, algorithm)})[0] == 200
    assert patch(api, OTHER, {name: digest(BODY, algorithm)}) == (422, "invalid_body", name)


def test_all_digests_that_are_said_count(api: Api) -> None:
    both = f"{digest(BODY)}, {digest(OTHER, 'sha-512')}"
    assert patch(api, BODY, {"Content-Digest": both}) == (422, "invalid_body", "Content-Digest")
    assert patch(api, BODY, {"Content-Digest": f"md5=:AAAA:, {digest(BODY)}"})[0] == 200
    wrong = {"Content-Digest": digest(BODY), "Repr-Digest": digest(OTHER)}
    assert patch(api, BODY, wrong) == (422, "invalid_body", "Repr-Digest")


def test_a_body_is_read_once_for_each_algorithm(api: Api) -> None:
    """However many digests are named: a header has room for three hundred."""
    many = ", ".join([digest(OTHER)] * 200 + [digest(BODY)])
    assert patch(api, BODY, {"Content-Digest": many})[0] == 200
    digests = Digests(Headers({"Content-Digest": many, "Repr-Digest": f"{many}, {digest(BODY, 'sha-512')}"}))
    assert len(digests._hashers) == 2


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", "/v1/graphs/city"),
        ("GET", "/v1/graphs/city"),
        ("POST", "/v1/graphs/city/snapshots"),
        ("PUT", "/v1/workers/cpu-0/drain"),
    ],
)
def test_digests_of_requests_without_a_body_are_looked_at_too(api: Api, method: str, path: str) -> None:
    headers = {"Content-Type": "application/json"} if method in ("POST", "PUT") else {}
    for header, value, status in (
        ("Content-Digest", digest(BODY), 422),
        ("Repr-Digest", digest(BODY), 422),
        ("Content-Digest", "junk", 400),
        ("Digest", "SHA-256=x", 400),
        ("Content-MD5", "x", 400),
    ):
        answer = api.http.request(method, path, headers=headers | {header: value})
        assert (answer.status_code, answer.json().get("header")) == (status, header), answer.text
    assert not api.fakes.dispatcher.sent, "nothing was changed, or asked"
    own = api.http.request(method, path, headers=headers | {"Content-Digest": digest(b"")})
    assert "Content-Digest" not in own.text


def test_it_is_of_the_bytes_that_are_sent(api: Api) -> None:
    packed = zlib.compress(BODY, wbits=31)
    gzip = {"Content-Encoding": "gzip"}
    assert patch(api, packed, gzip | {"Content-Digest": digest(packed)})[0] == 200
    assert patch(api, packed, gzip | {"Content-Digest": digest(BODY)}) == (422, "invalid_body", "Content-Digest")


@pytest.mark.parametrize(
    "said", ["", "sha-256", "sha-256=abc", "sha-256=:AAAA:", "sha-256=:A:", "md5=:AAAA:", "sha-256=:é:", ","]
)
def test_what_is_no_digest_is_refused(api: Api, said: str) -> None:
    answer = api.http.patch(
        CAPACITIES,
        content=BODY,
        headers=[(b"content-type", b"application/json"), (b"content-digest", said.encode())],
    )
    assert (answer.status_code, answer.json()["header"]) == (400, "Content-Digest")
    assert answer.json()["code"] == "invalid_request"


@pytest.mark.parametrize("name", ["Digest", "Content-MD5"])
def test_what_is_outdated_is_refused(api: Api, name: str) -> None:
    assert patch(api, BODY, {name: "AAAA"}) == (400, "invalid_request", name)


@pytest.mark.parametrize(
    ("said", "wait_s", "applied"),
    [
        ("respond-async", 0, "respond-async"),
        ("respond-async, wait=10", 10, "respond-async, wait=10"),
        ("wait=10, respond-async", 10, "respond-async, wait=10"),
        ("wait=7; x=1, wait=9", 7, "wait=7"),
        ("wait=0", 0, "wait=0"),
        ("return=minimal", 30, None),
    ],
)
def test_a_wait_beside_respond_async_comes_first(said: str, wait_s: float, applied: str | None) -> None:
    assert waiting(Headers({"Prefer": said}), Settings()) == Waiting(wait_s, applied)
