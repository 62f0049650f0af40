"""Connections: whose certificates are trusted, and what is said of one that does not come about."""

import os
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias, TypeVar
from urllib.request import getproxies, proxy_bypass

import httpx

from headrace._errors import ConnectionFailed, InvalidInput, UnexpectedAnswer
from headrace._exchange import shown, through_proxy

Http = TypeVar("Http")
Verify: TypeAlias = bool | str | os.PathLike[str] | ssl.SSLContext

HINTS = {
    "WRONG_VERSION_NUMBER": ": does it speak http, without the s?",
    "CERTIFICATE_VERIFY_FAILED": ": verify=, or SSL_CERT_FILE of the environment, names certificates to trust",
    "SSL": "",
}
"""What is said of a connection that does not come about, by what stands in its error; the first that fits."""


def trusted(verify: Verify, url: str) -> bool | ssl.SSLContext:
    """Which certificates of servers are accepted, as httpx takes it: none where the service speaks http, since to read
    those of all authorities takes a client 20 ms. Raises `InvalidInput` for a file that is none."""
    named = os.environ.get("SSL_CERT_FILE") if verify is True else None
    if verify is True and url.startswith("http:") and not (named and os.path.isfile(named)):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # a file that is there is for a redirect to https
    if isinstance(verify, bool | ssl.SSLContext) and not named:
        return verify
    try:
        return ssl.create_default_context(cafile=named or str(verify))
    except OSError as error:  # SSLError is one
        if error.filename and error.filename == os.environ.get("SSLKEYLOGFILE"):
            raise InvalidInput(f"SSLKEYLOGFILE={error.filename} cannot be written: {error.strerror}") from error
        said = f"SSL_CERT_FILE={named}" if named else f"verify={str(verify)!r}"
        raise InvalidInput(f"{said} is no file of certificates: {error}") from error


def opened(http: Callable[[], Http]) -> Http:
    """A client of httpx. Raises `InvalidInput` for a proxy of the environment that it does not know the kind of."""
    try:
        return http()
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        raise InvalidInput(f"a proxy of the environment (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY): {error}") from error


@contextmanager
def translated() -> Iterator[None]:
    """The one place where errors of httpx become ours."""
    try:
        yield
    except (httpx.DecodingError, httpx.TooManyRedirects, httpx.UnsupportedProtocol) as error:
        raise UnexpectedAnswer(str(error)) from error
    except httpx.InvalidURL as error:  # httpx reads where a redirect leads, and some lead to no page, as mailto: does
        raise UnexpectedAnswer(f"a redirect to what is no address: {error}") from error
    except httpx.PoolTimeout as error:
        raise ConnectionFailed("all 100 connections of this client were in use by other calls") from error
    except httpx.TimeoutException as error:
        raise ConnectionFailed(f"{_url_of(error)} did not answer in time ({type(error).__name__})") from error
    except httpx.ConnectError as error:
        hint = next((hint for sign, hint in HINTS.items() if sign in str(error)), ": is it running?")
        if proxy := _proxy_of(error):
            hint = f" by the proxy {proxy} of the environment (NO_PROXY names hosts that are asked without it)"
        raise ConnectionFailed(f"no connection to {_url_of(error)}{hint} ({error})") from error
    except httpx.RequestError as error:
        url, said = _url_of(error), str(error) or type(error).__name__
        # A server of https says nothing to who speaks http.
        is_silent = url.startswith("http:") and "sending a response" in said
        raise ConnectionFailed(f"{url}: {said}{' Does it speak https?' if is_silent else ''}") from error


def _url_of(error: httpx.RequestError) -> str:
    """Where the request went, without its path or anything secret."""
    try:
        url = error.request.url
    except RuntimeError:  # it never came to a request
        return "the service"
    return f"{url.scheme}://{url.netloc.decode('ascii', 'replace')}"


def _proxy_of(error: httpx.RequestError) -> str | None:
    """The proxy of the environment that the request went to, without a password."""
    try:
        url = error.request.url
    except RuntimeError:
        return None
    found = getproxies()
    proxy = found.get(url.scheme) or found.get("all")
    if not proxy or not through_proxy(str(url)) or proxy_bypass(url.host):
        return None
    return shown(proxy if "://" in proxy else f"http://{proxy}")
