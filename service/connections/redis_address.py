"""What the address of a Redis server says: where it is, its database, and how TLS is spoken with it.

The client library takes any argument of its connections as an option, leaves a database out that is no number, and
ends in a traceback, or in no answer at all, by options that the service does not know of. Others use an address too, as
`REDIS_URL` of a platform: what they say of their own connections is passed over. The address is told to nobody, as it
may have a password.
"""

import os
import re
import ssl
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import parse_qsl, unquote_plus, urlsplit

SCHEMES: Final = ("redis", "rediss", "unix")
FORMS: Final = "say redis://HOST:PORT, rediss://HOST:PORT or unix:///PATH"
ESCAPES: Final = "in a password %40 stands for @, %3A for :, %2F for /, %3F for ?, %23 for # and %25 for %"

Form: TypeAlias = Callable[[str], object]
"""Says something true of a value that is well formed."""

DATABASE: Final = re.compile(r"/?|/\d{1,9}/?").fullmatch
NUMBER: Final = re.compile(r"\d{1,9}").fullmatch
SECONDS: Final = re.compile(r"\d{1,9}(\.\d*)?").fullmatch
TRUTH: Final = re.compile("(?i:true|false|yes|no|[tfyn10])").fullmatch
ANY: Final = re.compile("(?s:.+)").fullmatch
CERT_REQS: Final = re.compile("none|optional|required").fullmatch


def flags(value: str) -> bool:
    """Whether these are flags of how certificates are verified, with commas between them."""
    return all(flag.removeprefix(" ") in ssl.VerifyFlags.__members__ for flag in value.split(","))


OPTIONS: Final[Mapping[str, Form]] = {
    "db": NUMBER,
    "username": ANY,
    "password": ANY,
    "client_name": ANY,
    "health_check_interval": NUMBER,
    "socket_connect_timeout": SECONDS,
    "socket_keepalive": TRUTH,
}
"""What may stand behind the "?", and the form of its value."""

DECIDED_HERE: Final = frozenset(
    {
        "decode_responses",
        "encoding",
        "encoding_errors",
        "max_connections",
        "protocol",
        "retry_on_error",
        "retry_on_timeout",
        "socket_read_size",
        "socket_timeout",
        "timeout",
    }
)
"""What each client of the service sets for its own purpose: others would end blocking reads, or wait for each other."""

FILES: Final = ("ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile")

TLS_OPTIONS: Final[Mapping[str, Form]] = {
    **dict.fromkeys(FILES, ANY),
    "ssl_ca_data": ANY,
    "ssl_password": ANY,
    "ssl_cert_reqs": CERT_REQS,
    "ssl_check_hostname": TRUTH,
    "ssl_ciphers": ANY,
    "ssl_min_version": NUMBER,
    "ssl_include_verify_flags": flags,
    "ssl_exclude_verify_flags": flags,
}
"""The same of `rediss` alone."""


def fault(url: str) -> str | None:
    """Why this is no address of a Redis server that the service can use; None if it is one."""
    if not url:
        return f"is empty, and no address of a Redis server: {FORMS}"
    try:
        parts = urlsplit(url)
        usable = parts.scheme in SCHEMES and (parts.scheme == "unix" or parts.port != 0)
    except ValueError:  # its port is no number, or out of range
        usable = False
    if not usable or parts.fragment:
        return f"is no address of a Redis server: {FORMS}; {ESCAPES}"
    if parts.scheme != "unix" and not DATABASE(parts.path):
        return f"has a database that is no number: say it as in redis://HOST:PORT/0; {ESCAPES}"
    options = parse_qsl(parts.query, keep_blank_values=True)
    for name, value in options:
        if reason := _fault_of_option(name, value, parts.scheme == "rediss"):
            return reason
    said = dict(options)
    key = said.get("ssl_keyfile", said.get("ssl_certfile"))  # which may hold the key too
    if key is not None and "ssl_password" not in said and b"ENCRYPTED" in Path(key).read_bytes():
        return "has a private key that is encrypted, without its 'ssl_password'"  # it would be asked for
    return None


def heeded(url: str) -> str:
    """The address without the options that are passed over."""
    address, mark, query = url.partition("?")
    left = "&".join(option for option in query.split("&") if _name_of(option) not in DECIDED_HERE)
    return f"{address}{mark}{left}" if left else address


def passed_over(url: str) -> list[str]:
    """The options of an address that say what the service decides by itself."""
    return sorted({*map(_name_of, url.partition("?")[2].split("&"))} & DECIDED_HERE)


def _name_of(option: str) -> str:
    return unquote_plus(option.partition("=")[0])


def _fault_of_option(name: str, value: str, tls: bool) -> str | None:
    if name in DECIDED_HERE:
        return None
    known = {**OPTIONS, **TLS_OPTIONS}
    if name not in known:
        near = get_close_matches(name, [*known, *DECIDED_HERE], 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        shown = f" {name!r}" if re.fullmatch("[a-z_]{1,40}", name) else ""
        return f"has an option{shown} that is none of an address: {hint}"
    if name in TLS_OPTIONS and not tls:
        return f"has the option {name!r}, which is for rediss://: nothing would be encrypted"
    if not known[name](value):
        return f"has an option {name!r} whose value is out of its form"
    is_there = os.path.isdir if name == "ssl_ca_path" else os.path.isfile
    if name in FILES and not (is_there(value) and os.access(value, os.R_OK)):
        what = "folder" if name == "ssl_ca_path" else "file"
        return f"has the option {name!r} with a {what} that cannot be read: {value[:200]}"
    return None
