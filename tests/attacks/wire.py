"""One request on a connection of its own, with little of a client: the machine's time is for the service."""

import http.client
import json
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

PATIENCE_S: Final = 60.0
"""Who is not answered for so long hangs."""

Address = tuple[str, int]
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    code: str
    """Of a refusal; empty for others."""
    took_s: float
    """From the first byte sent to the last one read."""
    headers: Mapping[str, str]
    content: bytes

    @property
    def said(self) -> str:
        return f"{self.status} {self.code}".strip()

    def json(self) -> Any:
        return json.loads(self.content)


def send(address: Address, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] = NOTHING) -> Answer:
    """Raises OSError and HTTPException for a connection that breaks or hangs."""
    given = {"Host": f"{address[0]}:{address[1]}", "Connection": "close", "Content-Length": str(len(body))}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in (given | dict(headers)).items())]
    began = time.perf_counter()
    with socket.create_connection(address, timeout=PATIENCE_S) as connection:
        with suppress(BrokenPipeError, ConnectionResetError):  # refused before it was all there: the answer has come
            connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        response = http.client.HTTPResponse(connection, method=method)
        response.begin()
        content = response.read()
    took_s = time.perf_counter() - began
    code = ""
    if "problem+json" in (response.getheader("content-type") or ""):
        code = json.loads(content)["code"]
    return Answer(
        response.status, code, took_s, {name.lower(): value for name, value in response.getheaders()}, content
    )
