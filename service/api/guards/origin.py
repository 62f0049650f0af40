"""Requests that a web page of somebody else's makes a browser send are refused.

Such a page cannot read the answers, as there is no CORS; but a request without a body would be carried out, with or
without keys, by whoever's browser stands nearest. Browsers say where a request comes from, in headers that no page can
set, and other clients send neither. Links still work: who follows one to a page of ours sees it.
"""

from typing import Final

from starlette.datastructures import Headers

from service.errors import ServiceError

OURS: Final = frozenset({"same-origin", "none"})
"""Values of Sec-Fetch-Site that are let in: a page of the service itself, and an address that was typed in.

The value `same-site` is another port or subdomain, and is not let in.
"""

DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}
"""Ports that an Origin leaves out, and a Host not always."""


OTHER_HOST: Final = (
    "the Origin is another than the Host: a web page of another origin asks, or a proxy in front has not passed on the "
    "Host as the browser sent it, with its port"
)


def refuse_other_origins(method: str, headers: Headers) -> None:
    """Raises forbidden."""
    from_elsewhere = any(site.lower() not in OURS for site in headers.getlist("sec-fetch-site"))
    if from_elsewhere and not _is_visit(method, headers):
        raise ServiceError("forbidden", "a web page of another origin may not ask for this")
    if any(not _is_own(origin, headers.get("host", "")) for origin in headers.getlist("origin")):
        raise ServiceError("forbidden", OTHER_HOST)


def _is_visit(method: str, headers: Headers) -> bool:
    """Whether somebody follows a link, so that a window shows the answer."""
    kind = (headers.get("sec-fetch-mode", "").lower(), headers.get("sec-fetch-dest", "").lower())
    return method == "GET" and kind == ("navigate", "document")


def _is_own(origin: str, host: str) -> bool:
    """`null`, of a page that has none to tell, is another."""
    scheme, separator, authority = origin.lower().partition("://")
    return bool(separator) and authority == host.lower().removesuffix(DEFAULT_PORTS.get(scheme, ""))
