"""Where a request's head ends, and what it may not say twice, or in another way than this server reads it.

A proxy in front may take the first of two headers where we take the last, or cut a body where we do not: then each
believes something else of the request. Nobody who means well sends such a head, so it is refused.
"""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

import httptools

from service.api.http.chunks import Refused

END: Final = b"\r\n\r\n"
"""The bytes that end a head."""

ONCE: Final = frozenset(
    {
        *(b"host", b"content-type", b"content-encoding", b"transfer-encoding"),
        *(b"if-match", b"idempotency-key", b"authorization", b"x-api-key"),
    }
)
"""Headers that may come once: of two values nobody can say which counts. The parser sees to Content-Length."""


NO_HTTP: Final = "this is no request of HTTP/1.1"


def no_http(error: httptools.HttpParserError) -> str:
    """What the parser does not take, in its own words, of which there are few: "Duplicate Content-Length"."""
    reason = str(error) if error.__context__ is None else ""
    return f"{NO_HTTP}: {reason[0].lower()}{reason[1:]}" if reason else NO_HTTP


def is_in_chunks(url: bytes, headers: Iterable[tuple[bytes, bytes]], version: str) -> bool:
    """Whether the body comes in chunks. Raises `Refused` for a head that can be read in two ways, or has no Host (RFC
    9112, 3.2); names are in lower case."""
    if version not in ("1.0", "1.1"):
        raise Refused(NO_HTTP)
    once = [(name, value) for name, value in headers if name in ONCE]
    for name, count in Counter(name for name, _ in once).items():
        if count > 1:
            raise Refused(f"the header {name.decode()} is there {count} times")
    if version == "1.1" and b"host" not in dict(once):
        raise Refused("a request of HTTP/1.1 has a Host")
    _refuse_other_host(url, dict(once).get(b"host"))
    coding = dict(once).get(b"transfer-encoding")
    if coding is not None and coding.strip(b" \t").lower() != b"chunked":
        raise Refused("the only Transfer-Encoding that is read is chunked")
    if coding is not None and version == "1.0":
        raise Refused("a body in chunks is of HTTP/1.1, not of HTTP/1.0")
    return coding is not None


def _refuse_other_host(url: bytes, host: bytes | None) -> None:
    """Raises `Refused` where a request line that names a host, as proxies get it, names another one than `Host`: which
    of them counts is not the same for all (RFC 9112, 3.2.2)."""
    if host is None or url.startswith(b"/") or b"://" not in url:
        return
    if re.split(rb"[/?#]", url.partition(b"://")[2], maxsplit=1)[0].lower() != host.strip().lower():
        raise Refused("the request line names another host than the header Host")


def end_of_head(tail: bytes, data: bytes, at: int) -> int:
    """Where a head ends in `data` from `at` on, or how long that is if it does not. `tail`: the bytes before `at`."""
    begun = (tail + data[at : at + len(END) - 1]).find(END)
    if begun >= 0:
        return at + begun + len(END) - len(tail)
    found = data.find(END, at)
    return len(data) if found < 0 else found + len(END)
