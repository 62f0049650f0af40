"""The request headers with a meaning of their own: Prefer, If-Match and the like, Content-Type, Accept."""

import math
import re
import uuid
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from fastapi import Request
from starlette.datastructures import Headers

from gpu_engine.text.near import nearest
from service.errors import ServiceError
from service.protocol import Wanted
from service.settings import Settings

REQUEST_ID: Final = re.compile(r"[\x21-\x7e]{1,128}")
"""What we take over as a request id; anything else is replaced, so that it cannot forge log lines."""

IDEMPOTENCY_KEY: Final = re.compile(r"[\x20-\x7e]{1,256}")
MAX_PREFERENCES: Final = 16
"""Preferences that are looked at, from the first on; there are not that many kinds."""

MAX_SECONDS_DIGITS: Final = 9

VERSION: Final = re.compile(r"(?:[0-9a-z]{1,16}\.)?((?:[0-9a-f]{8}-)?[1-9][0-9]{0,17})")
"""An ETag of ours: the version, and before it what tells apart the answers of one version (`replies.conditions`)."""

ETAG: Final = re.compile(r'(W/)?"([\x21\x23-\x7e\x80-\xff]*+)"')
MAX_ETAGS: Final = 100
"""ETags that one header may list."""

JSON: Final = "application/json"
UTF_8: Final = frozenset({"utf-8", "utf8", "us-ascii", "ascii"})
"""Charsets whose texts are UTF-8."""

FORM: Final = "application/x-www-form-urlencoded"
MEANT: Final[Mapping[str, str]] = {
    "application/octet-stream": "",
    "text/json": JSON,
    "application/csv": "text/csv",
    "application/zip": "application/x-npz",
    "application/npz": "application/x-npz",
    "application/x-numpy": "application/x-npz",
    "application/arrow": "application/vnd.apache.arrow.stream",
    "application/x-arrow": "application/vnd.apache.arrow.stream",
    "application/vnd.apache.arrow.file": "application/vnd.apache.arrow.stream",
    "application/geojson": "application/geo+json",
    "application/vnd.geo+json": "application/geo+json",
    "application/x-ndjson": "",
    "application/jsonl": "",
}
"""Media types as others call them; "" could be any, or is none that is read."""

CSV: Final = "text/csv"
OF_GRAPHS: Final = "; put_graph of the Python client loads what networkx.{0} or igraph.Graph.{1} has read"
OF_TABLES: Final = "; a CSV file is text/csv, and the sheet of a workbook can be saved as one"
READ_BY_OTHERS: Final[Mapping[str, str]] = {
    "application/graphml+xml": OF_GRAPHS.format("read_graphml", "Read_GraphML"),
    "text/gml": OF_GRAPHS.format("read_gml", "Read_GML"),
    "application/gml": OF_GRAPHS.format("read_gml", "Read_GML"),
    "application/vnd.ms-excel": OF_TABLES,
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": OF_TABLES,
    "application/vnd.oasis.opendocument.spreadsheet": OF_TABLES,
    "application/vnd.apache.parquet": "; put_graph of the Python client loads the table that pandas or Polars has read",
}
"""Of media types that no route reads: the end of the sentence where a load is refused, which says what reads them."""


def request_id_of(asked: str) -> str:
    """The id of a request whose `X-Request-Id` is `asked`: that, or a new one where there is none or it is no id."""
    return asked if REQUEST_ID.fullmatch(asked) else uuid.uuid4().hex


@dataclass(frozen=True, slots=True)
class Waiting:
    """How long the caller waits in place; 0: not at all."""

    wait_s: float
    applied: str | None = None
    """What Preference-Applied says; None when the caller had no preference, or none that was understood."""


def waiting(headers: Headers, settings: Settings, default_s: float | None = None) -> Waiting:
    """`Prefer: wait=SECONDS`, `respond-async`, or both, which is to wait so long first (RFC 7240, section 4.3).

    Preferences we do not know are ignored, as it says, and of those that are said twice the first counts. Without one
    it is `default_s`, or the settings' `default_wait_s`. A time to wait that is none is refused before.
    """
    is_async, wait_s = False, None
    for name, value in preferences(headers):
        if name == "respond-async":
            is_async = True
        elif name == "wait" and wait_s is None and value.isascii() and value.isdecimal():
            wait_s = min(int(value) if len(value) <= MAX_SECONDS_DIGITS else math.inf, settings.max_wait_s)
    applied = [*(["respond-async"] if is_async else []), *([] if wait_s is None else [f"wait={wait_s:g}"])]
    if applied:
        return Waiting(wait_s or 0.0, ", ".join(applied))
    return Waiting(min(settings.default_wait_s, settings.max_wait_s) if default_s is None else default_s)


def preferences(headers: Headers) -> Iterator[tuple[str, str]]:
    """The first preferences of `Prefer`, each with its value, in lower case and without its parameters."""
    for preference in ",".join(headers.getlist("prefer")).lower().split(",", MAX_PREFERENCES)[:MAX_PREFERENCES]:
        name, _, value = preference.split(";")[0].partition("=")
        yield name.strip(), value.strip().strip('"')


def if_match(headers: Headers) -> Wanted | None:
    """The version of `If-Match: "9f3c02aa-7"` or `"7"`, or those of a list; None without the header or for `*`.

    What else an ETag of ours says, as `"npz.9f3c02aa-7"` does, is passed over: any answer of a version stands for it.

    Raises invalid_request for what is no list of ETags, and version_conflict if none of them is ours: a weak tag, or
    one of another kind, names no version there is.
    """
    value = ",".join(headers.getlist("if-match"))
    if "if-match" not in headers or value.strip() == "*":
        return None
    tags = _etags(value, "If-Match")
    strong = [found[1] for weak, tag in tags if not weak and (found := VERSION.fullmatch(tag))]
    versions: list[int | str] = [tag if "-" in tag else int(tag) for tag in strong]
    if not versions:
        why = "matches no weak ETag (W/)" if all(weak for weak, _ in tags) else "names no version that there can be"
        raise ServiceError("version_conflict", f"If-Match {why}: {value[:100]}", header="If-Match")
    return versions[0] if len(versions) == 1 else versions


def if_none_match(headers: Headers) -> Collection[str]:
    """The ETags in quotes that `If-None-Match` of a GET names, weak or not; `*` for any, and none without the header.

    Raises invalid_request for what is no list of ETags.
    """
    if "if-none-match" not in headers:
        return ()
    value = ",".join(headers.getlist("if-none-match"))
    return ("*",) if value.strip() == "*" else [f'"{tag}"' for _, tag in _etags(value, "If-None-Match")]


def must_be_new(headers: Headers) -> bool:
    """Whether `If-None-Match: *` says that nothing may be replaced. Raises invalid_request for any other value."""
    value = ",".join(headers.getlist("if-none-match")).strip()
    if "if-none-match" not in headers:
        return False
    if value != "*":
        detail = "If-None-Match is * here, which says that no graph may be replaced"
        raise ServiceError("invalid_request", detail, header="If-None-Match")
    if "if-match" in headers:
        detail = "If-Match wants a graph that is there, If-None-Match: * wants none"
        raise ServiceError("invalid_request", detail, header="If-None-Match")
    return True


def refuse_if_none_match(headers: Headers) -> None:
    """Raise invalid_request for a condition of a change that only a load can have: it would not be looked at."""
    if "if-none-match" in headers:
        raise ServiceError("invalid_request", 'If-None-Match is for PUT; here If-Match: "7" names the version')


def _etags(value: str, header: str) -> list[tuple[bool, str]]:
    """Each ETag of a list: whether it is weak, and what stands between its quotes. Raises invalid_request."""
    found: list[tuple[bool, str]] = []
    gaps, at = [], 0
    for match in ETAG.finditer(value):
        gaps.append(value[at : match.start()])
        found.append((match[1] is not None, match[2]))
        at = match.end()
    only_commas = not any(gap.strip(" \t,") for gap in (*gaps, value[at:]))
    if not only_commas or not all("," in gap for gap in gaps[1:]) or not 0 < len(found) <= MAX_ETAGS:
        form = f'is *, or 1 to {MAX_ETAGS} ETags in quotes, as in {header}: "7"'
        raise ServiceError("invalid_request", f"{header} {form}, not {value[:100]}", header=header)
    return found


def idempotency_key(headers: Headers) -> str | None:
    """`Idempotency-Key`, 1 to 256 printable ASCII characters."""
    key = headers.get("idempotency-key")
    if key is not None and not IDEMPOTENCY_KEY.fullmatch(key):
        detail = "an Idempotency-Key is 1 to 256 printable ASCII characters"
        raise ServiceError("invalid_request", detail, header="Idempotency-Key")
    return key


def media_type(headers: Headers) -> str:
    """The body's media type without parameters, lower case; "" if there is none."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def require_json(request: Request) -> None:
    """Refuse a body that is not declared as JSON (which also keeps web pages of other origins out)."""
    require_media_type(request.headers, (JSON,))


def require_media_type(headers: Headers, known: Collection[str]) -> str:
    """The body's media type, one of those `known`; raises unsupported_media_type."""
    given = media_type(headers)
    if given in known:
        _refuse_other_charsets(headers, given)
        return given
    hint = _hint_of(given, known)
    found = f"Content-Type {given[:100]!r} is not read here" if given else "there is no Content-Type"
    detail = f"{found}: send {', '.join(sorted(known))}{hint}"
    raise ServiceError("unsupported_media_type", detail, header="Content-Type")


def _hint_of(given: str, known: Collection[str]) -> str:
    """The end of the sentence that refuses a media type: the one that is meant, or what reads it. Names are near where
    what stands behind the slash is: most of them begin alike."""
    if given == FORM and JSON in known:
        return "; curl sends that with -d, unless told -H 'Content-Type: application/json'"
    if given in READ_BY_OTHERS:
        return READ_BY_OTHERS[given] if CSV in known else ""
    kind = given.rpartition("/")[2]
    kinds = {one.rpartition("/")[2]: one for one in known}
    meant = MEANT[given] if given in MEANT else kinds.get(kind if kind in kinds else nearest(kind, kinds) or "", "")
    return f"; did you mean {meant}?" if meant in known else ""


def _refuse_other_charsets(headers: Headers, given: str) -> None:
    """Raises unsupported_media_type for text that is said to be no UTF-8. Other types than text have no charset."""
    parameters = (parameter.partition("=") for parameter in headers["content-type"].lower().split(";")[1:])
    for name, _, value in parameters:
        charset = value.strip().strip('"')
        if given.startswith("text/") and name.strip() == "charset" and charset not in UTF_8:
            detail = f"Content-Type says the charset {charset[:100]!r}: text is read as UTF-8"
            raise ServiceError("unsupported_media_type", detail, header="Content-Type")
