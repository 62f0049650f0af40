"""Digests of a body as it is sent (RFC 9530): what has changed on the way is not taken for what was meant.

`Content-Digest` is of the bytes of the message, after their Content-Encoding. `Repr-Digest` is of the representation,
which a request here always has as a whole: these are the same bytes.
"""

import base64
import hashlib
import re
from dataclasses import dataclass
from typing import Any, Final

from starlette.datastructures import Headers

from service.errors import ServiceError

DIGESTS: Final = ("Content-Digest", "Repr-Digest")
OUTDATED: Final = ("Digest", "Content-MD5")
"""What these said is said by `Content-Digest` since RFC 9530 and RFC 7231."""

ALGORITHMS: Final = {"sha-256": "sha256", "sha-512": "sha512"}
"""Those that RFC 9530 calls active. Others are not checked, as it allows where one of these is there too."""

MEMBER: Final = re.compile(r"\s*([a-z0-9*_.-]+)\s*=\s*:([A-Za-z0-9+/=]*):\s*")


@dataclass(frozen=True, slots=True)
class Digest:
    """One digest that a body is to have."""

    header: str
    algorithm: str
    wanted: bytes
    hasher: Any


class Digests:
    """The digests of one body, which is given to `update` piece by piece. Cost: one pass over it for each digest."""

    def __init__(self, headers: Headers) -> None:
        """Raises invalid_request for a header that cannot be read, or that has no digest which is checked here."""
        for name in OUTDATED:
            if name in headers:
                detail = f"{name} is not looked at: send Content-Digest: sha-256=:BASE64:"
                raise ServiceError("invalid_request", detail, header=name)
        self._digests = [digest for name in DIGESTS if name in headers for digest in _read(name, headers)]

    def update(self, piece: bytes) -> None:
        for digest in self._digests:
            digest.hasher.update(piece)

    def check(self) -> None:
        """Raises invalid_body if the whole body has another digest."""
        for digest in self._digests:
            found = digest.hasher.digest()
            if found != digest.wanted:
                has = base64.b64encode(found).decode()
                detail = f"the body was changed on the way, or is another one: its {digest.algorithm} is :{has}:"
                raise ServiceError("invalid_body", detail, header=digest.header)


def _read(name: str, headers: Headers) -> list[Digest]:
    """The digests of one header that are checked here."""
    found: list[Digest] = []
    for member in ",".join(headers.getlist(name)).split(","):
        match = MEMBER.fullmatch(member)
        if match is None:
            form = f"{name} is a list of digests in Base64, as in {name}: sha-256=:BASE64:"
            raise ServiceError("invalid_request", f"{form}, not {member.strip()[:100]!r}", header=name)
        if match[1] not in ALGORITHMS:
            continue
        hasher = hashlib.new(ALGORITHMS[match[1]])
        try:
            wanted = base64.b64decode(match[2], validate=True)
        except ValueError:
            wanted = b""
        if len(wanted) != hasher.digest_size:
            detail = f"{name}: {match[1]} has {hasher.digest_size} bytes in Base64, not {match[2][:100]!r}"
            raise ServiceError("invalid_request", detail, header=name)
        found.append(Digest(name, match[1], wanted, hasher))
    if not found:
        detail = f"{name} has no digest that is checked here: {' and '.join(ALGORITHMS)} are"
        raise ServiceError("invalid_request", detail, header=name)
    return found
