"""Digests of a body as it is sent (RFC 9530): what has changed on the way is not taken for what was meant.

`Content-Digest` is of the bytes of the message, after their Content-Encoding. `Repr-Digest` is of the representation,
which a request here always has as a whole: these are the same bytes.
"""

import base64
import hashlib
import re
from typing import Final

from starlette.datastructures import Headers

from service.errors import ServiceError

DIGESTS: Final = ("Content-Digest", "Repr-Digest")
OUTDATED: Final = ("Digest", "Content-MD5")
"""Headers that RFC 9530 and RFC 7231 have replaced by `Content-Digest`."""

ALGORITHMS: Final = {"sha-256": "sha256", "sha-512": "sha512"}
"""The algorithms that RFC 9530 calls active. Others are not checked, which it allows if one of these is given too."""

MEMBER: Final = re.compile(r"\A([a-z0-9*_.-]+)=:([A-Za-z0-9+/=]*):")


class Digests:
    """The digests of one body, which is given to `update` piece by piece. Cost: one pass over it for each algorithm."""

    def __init__(self, headers: Headers) -> None:
        """Raises invalid_request for a header that cannot be read, or that has no digest which is checked here."""
        for name in OUTDATED:
            if name in headers:
                detail = f"{name} is not looked at: send Content-Digest: sha-256=:BASE64:"
                raise ServiceError("invalid_request", detail, header=name)
        self._wanted = {name: _read(name, headers) for name in DIGESTS if name in headers}
        """The digests of each header, by algorithm."""
        algorithms = {algorithm for wanted in self._wanted.values() for algorithm in wanted}
        self._hashers = {algorithm: hashlib.new(ALGORITHMS[algorithm]) for algorithm in algorithms}

    def update(self, piece: bytes) -> None:
        for hasher in self._hashers.values():
            hasher.update(piece)

    def check(self) -> None:
        """Raises invalid_body if the whole body has another digest."""
        for name, wanted in self._wanted.items():
            for algorithm, digest in wanted.items():
                found = self._hashers[algorithm].digest()
                if found != digest:
                    has = base64.b64encode(found).decode()
                    detail = f"the body was changed on the way, or is another one: its {algorithm} is :{has}:"
                    raise ServiceError("invalid_body", detail, header=name)


def _read(name: str, headers: Headers) -> dict[str, bytes]:
    """The digests of one header that are checked here, by algorithm; of one that is named twice the last counts."""
    found: dict[str, bytes] = {}
    for member in ",".join(headers.getlist(name)).split(","):
        match = MEMBER.fullmatch(member.strip())
        if match is None:
            form = f"{name} is a list of digests in Base64, as in {name}: sha-256=:BASE64:"
            raise ServiceError("invalid_request", f"{form}, not {member.strip()[:100]!r}", header=name)
        if match[1] not in ALGORITHMS:
            continue
        size = hashlib.new(ALGORITHMS[match[1]]).digest_size
        try:
            digest = base64.b64decode(match[2], validate=True)
        except ValueError:
            digest = b""
        if len(digest) != size:
            detail = f"{name}: {match[1]} has {size} bytes in Base64, not {match[2][:100]!r}"
            raise ServiceError("invalid_request", detail, header=name)
        found[match[1]] = digest
    if not found:
        detail = f"{name} has no digest that is checked here: {' and '.join(ALGORITHMS)} are"
        raise ServiceError("invalid_request", detail, header=name)
    return found
