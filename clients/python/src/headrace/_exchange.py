"""How a call becomes requests: retries, waits and errors, without I/O.

Each function is a generator of steps. It yields a `Send` or a `Pause`, is sent back what came of it, and returns
the result; `Client` and `AsyncClient` only carry the steps out. (The pattern of httpx's `Auth.auth_flow`.)
"""

import math
import os
import random
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Any, BinaryIO, TypeAlias, TypeVar
from uuid import uuid4

import httpx

from headrace import _calls as calls
from headrace._amounts import loads
from headrace._bodies import Body
from headrace._calls import Call
from headrace._codes import api_error
from headrace._errors import ApiError, DataGone, InvalidInput, TransportError, UnexpectedAnswer, WaitTimeout
from headrace._files_of_columns import NPZ, read_npz
from headrace._mistakes import seconds
from headrace._records import JobInfo

T = TypeVar("T")

CONNECTIONS = httpx.Limits(max_connections=100, max_keepalive_connections=100)
"""Of one client, all kept. A call that finds none free waits for one, as long as its caller waits."""

UNBOUNDED = httpx.Limits(max_connections=None)
"""Of its streams of events and rows, which keep theirs for hours: the service says how many there may be."""

DEFAULT_URL = "http://127.0.0.1:8080"

HOLD_S = 30
"""The service holds a request this long at most before it answers 202; proxies often cut at 60 s."""

LONGEST_HOLD_S = 300
"""A file is answered in place or not at all; the service holds no request for longer."""

RETRIED_STATUS = frozenset({429, 503})

RETRIED_GATEWAY_STATUS = frozenset({429, 502, 503, 504})
"""Of a proxy, which has no answer of the service: it is being restarted, say."""

SHORT_HOLD_S = 0.05
"""A service that answers "still running" sooner than this did not hold the request."""

PROBE_S = 5.0
"""A service that is ready says so at once; one that starts may accept the connection and be silent."""

LONGEST_PROBE_PAUSE_S = 0.5

MOST_DOUBLED = 30
"""Pauses are doubled no more often."""


@dataclass(frozen=True, slots=True)
class Retry:
    """How a call is tried again after a lost connection, a 429 or a 503, or a 502 or 504 of a proxy.

    Every call may be: those that change something carry an Idempotency-Key, which questions do not need. What the
    service says in Retry-After is heeded, with up to half as much more at random so that callers do not come back
    together, until the `timeout_s` of the call, or without one for `patience_s` in all. Where it does not say when, as
    one that is being restarted, it is tried for `restart_s` from when it last said so or answered, or `attempts` times
    if that is given; the pause after n failures is ``base_s * 2**(n - 1)``, `longest_s` at most, half of it at random.
    Before a service has answered a client at all it is tried for `first_s` at most, as the URL may be wrong:
    `wait_ready` waits for a service that starts.
    """

    attempts: int | None = None
    base_s: float = 0.1
    longest_s: float = 10.0
    patience_s: float = 180.0
    restart_s: float = 30.0
    first_s: float = 3.0

    def __post_init__(self) -> None:
        """Raises `InvalidInput` for what is no count, and for what is no time."""
        given = self.attempts
        if given is not None and (isinstance(given, bool) or not isinstance(given, int) or given < 1):
            raise InvalidInput(f"attempts says how often a call is tried, 1 or more, not {given!r}")
        for name in ("base_s", "longest_s", "patience_s", "restart_s", "first_s"):
            if seconds(getattr(self, name), name) < 0:
                raise InvalidInput(f"{name} is a number of seconds, 0 or more, not {getattr(self, name)!r}")

    def at_first(self) -> "Retry":
        """The same for a client that has had no answer yet."""
        return replace(self, restart_s=min(self.restart_s, self.first_s))

    def pause_s(
        self, failures: int, retry_after_s: float | None, left_s: float = math.inf, silent_s: float = 0.0
    ) -> float | None:
        """Seconds until the next attempt after so many failed ones; None to give up, also for want of time. `silent_s`:
        since the first of those in a row of which nothing said when to come back."""
        if retry_after_s is not None:
            least_s = max(retry_after_s, self.base_s)
            return None if least_s > left_s else min(least_s * random.uniform(1, 1.5), left_s)
        doubled_s: float = self.base_s * 2 ** min(failures - 1, MOST_DOUBLED)
        pause_s = min(doubled_s, self.longest_s) * random.uniform(0.5, 1)
        if self.attempts is not None:
            return None if failures >= self.attempts or pause_s > left_s else pause_s
        left_s = min(left_s, self.restart_s - silent_s)
        return None if left_s <= 0 else min(max(pause_s, SHORT_HOLD_S), left_s)


@dataclass(frozen=True, slots=True)
class Deadline:
    """When the caller's patience ends, on the monotonic clock."""

    ends_at: float = math.inf

    @classmethod
    def after(cls, timeout_s: float | None) -> "Deadline":
        return cls() if timeout_s is None else cls(time.monotonic() + seconds(timeout_s))

    @property
    def remaining_s(self) -> float:
        return max(0.0, self.ends_at - time.monotonic())

    @property
    def hold_s(self) -> int:
        """What to ask the service to hold a request for: whole seconds (RFC 7240), rounded up."""
        return math.ceil(min(HOLD_S, self.remaining_s))


@dataclass(slots=True)
class Retries:
    """How all calls of one client are repeated: for longer once the service has answered one of them."""

    retry: Retry
    was_answered: bool = False

    @property
    def now(self) -> Retry:
        """How long it is worth while as far as is known."""
        return self.retry if self.was_answered else self.retry.at_first()


@dataclass(slots=True)
class Tries:
    """One call, or one wait for what comes next in a stream, and how often it has failed."""

    retries: Retries
    until: Deadline = Deadline()
    failures: int = 0
    _first_at: float = 0.0
    _silent_since: float | None = None

    def pause_s(self, error: BaseException) -> float | None:
        """Seconds until the next attempt after this failure; None to give up."""
        now, retry, retry_after_s = time.monotonic(), self.retries.now, getattr(error, "retry_after_s", None)
        if not self.failures:
            self._first_at = now
        self.failures += 1
        if retry_after_s is not None:
            self._silent_since = None
        elif self._silent_since is None:
            self._silent_since = now
        left_s = self.until.remaining_s if self.until.ends_at < math.inf else retry.patience_s - now + self._first_at
        return retry.pause_s(self.failures, retry_after_s, left_s, now - (self._silent_since or now))


@dataclass(frozen=True, slots=True)
class Send:
    """Carry out one HTTP request."""

    method: str
    path: str
    params: Mapping[str, str]
    headers: Mapping[str, str]
    body: Body | None
    hold_s: float = 0
    """How much longer than usual the answer may take."""
    at_most_s: float = math.inf
    """A bound on the usual time."""
    into: BinaryIO | None = None
    """Where the body of an answer below 400 goes, from its beginning; what was in it before is gone."""
    connection_s: float = PROBE_S
    """How long to wait for one of this client's connections, which other calls may hold."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait before the next step."""

    seconds: float


Step: TypeAlias = Send | Pause
Outcome: TypeAlias = httpx.Response | TransportError | None
"""What a `Send` came to; None after a `Pause`."""

Steps: TypeAlias = Generator[Step, Outcome, T]


def ask(call: Call[T], retries: Retries) -> Steps[T]:
    """A call that is answered at once."""
    response = yield from _exchange(call, retries, Deadline())
    return parsed(call.parse, read_body(response))


def command(call: Call[T], retries: Retries, deadline: Deadline) -> Steps[T]:
    """A call that may take long: the service holds it, and after a 202 its job is held, until it ends.

    A GET has no job, and is held for as long as it may take.
    """
    hold_s = _longest_hold_s(deadline) if call.method == "GET" else deadline.hold_s
    response = yield from _exchange(call, retries, deadline, f"wait={hold_s}", hold_s)
    if response.status_code != httpx.codes.ACCEPTED:
        return parsed(call.parse, read_body(response))
    return (yield from follow(pending_job_id(response), call.parse, retries, deadline))


def download(call: Call[int], retries: Retries, deadline: Deadline) -> Steps[int]:
    """A call whose answer is a file; the version of the graph that it holds."""
    hold_s = _longest_hold_s(deadline)
    response = yield from _exchange(call, retries, deadline, f"wait={hold_s}", hold_s)
    return parsed(call.parse, response.headers.get("etag", "").strip('"'))


def _longest_hold_s(deadline: Deadline) -> int:
    return max(1, math.ceil(min(LONGEST_HOLD_S, deadline.remaining_s)))


def submit(call: Call[T], retries: Retries, deadline: Deadline | None = None) -> Steps[JobInfo]:
    """Start a call and come back with its job."""
    response = yield from _exchange(call, retries, deadline or Deadline(), "respond-async")
    return (yield from ask(calls.job(pending_job_id(response)), retries))


def follow(job_id: str, parse: Callable[[Any], T], retries: Retries, deadline: Deadline) -> Steps[T]:
    """Hold on to a job until it ends. Raises its error, or `WaitTimeout` at the deadline."""
    pause_s = SHORT_HOLD_S
    while True:
        asked_at = time.monotonic()
        hold_s = deadline.hold_s
        response = yield from _exchange(calls.job(job_id), retries, deadline, f"wait={hold_s}", hold_s)
        info = parsed(JobInfo.from_json, read_body(response))
        if info.finished and info.has_file:
            response = yield from _exchange(calls.job_result(job_id, parse), retries, deadline)
            return parsed(parse, read_body(response))
        if info.finished:
            return job_result(info, parse)
        if deadline.remaining_s == 0:
            raise WaitTimeout(f"job {job_id} is still {info.status}", job_id)
        if time.monotonic() - asked_at < SHORT_HOLD_S:
            yield Pause(min(pause_s, deadline.remaining_s))
            pause_s = min(2 * pause_s, 1.0)


def readiness(at_most_s: float = PROBE_S) -> Steps[bool]:
    """Whether the service is up and ready; a refused connection is a no."""
    response = yield Send("GET", "/readyz", {}, {}, None, at_most_s=at_most_s)
    return isinstance(response, httpx.Response) and response.status_code == httpx.codes.OK


def until_ready(deadline: Deadline) -> Steps[None]:
    """Probe until ready, at growing distances: a service that is down cannot hold a request."""
    pause_s = SHORT_HOLD_S
    while not (yield from readiness(max(SHORT_HOLD_S, min(PROBE_S, deadline.remaining_s)))):
        if deadline.remaining_s == 0:
            raise WaitTimeout("the service is not ready")
        yield Pause(min(pause_s, deadline.remaining_s))
        pause_s = min(2 * pause_s, LONGEST_PROBE_PAUSE_S)


def with_key(headers: Mapping[str, str] | None, api_key: str | None) -> dict[str, str]:
    """The headers, and the API key as a bearer token. Raises `InvalidInput` for what no header can hold."""
    key = os.environ.get("HEADRACE_API_KEY", "") if api_key is None else api_key
    others = dict(headers or {})
    for name, value in others.items():
        if not (_is_printable(name) and _is_printable(value)):  # which may be secret
            raise InvalidInput(f"a header is printable ASCII, and that of {name!r:.80} is not")
    if not key:
        return others
    if not _is_printable(key) or " " in key:
        raise InvalidInput("an API key is printable ASCII without blanks")
    return {"Authorization": f"Bearer {key}"} | others


def _is_printable(text: object) -> bool:
    return isinstance(text, str) and text.isascii() and text.isprintable()


def patience(retry: Retry | None) -> Retry:
    """How calls are repeated. Raises `InvalidInput` for a number, which other libraries take."""
    if retry is not None and not isinstance(retry, Retry):
        raise InvalidInput(f"retry= is a Retry, as in Retry(attempts=3), not {retry!r}")
    return retry or Retry()


def through_proxy(base_url: str) -> bool:
    """Whether the proxies of the environment apply: never to this machine itself."""
    host = httpx.URL(base_url).host
    try:
        return not ip_address(host).is_loopback
    except ValueError:
        return host != "localhost"


def full_url(given: str | None) -> str:
    """The URL with its scheme, http by default; without one that of `HEADRACE_URL`, or else of this machine.

    Raises `InvalidInput` for another scheme and for what is no URL.
    """
    base_url = os.environ.get("HEADRACE_URL") or DEFAULT_URL if given is None else given
    if not isinstance(base_url, str):
        raise InvalidInput(f"a URL is text, as in {DEFAULT_URL!r}, not {base_url!r}")
    is_whole = "://" in base_url
    url = (base_url if is_whole else f"http://{base_url}").rstrip("/").removesuffix("/v1")
    try:
        parts = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise InvalidInput(f"{base_url!r} is no URL: {error}") from error
    has_half_a_scheme = not is_whole and ":/" in base_url  # "http:/host" would be a host of the name "http"
    if parts.query or parts.scheme not in ("http", "https") or not parts.host or has_half_a_scheme:
        raise InvalidInput(f"{base_url!r} is no http:// or https:// URL of a host, without a query")
    return url


def shown(url: str) -> str:
    """The URL without a user's name and password."""
    parts = httpx.URL(url)
    return f"{parts.scheme}://{parts.netloc.decode()}{parts.path.rstrip('/')}"


def request_of(http: httpx.Client | httpx.AsyncClient, step: Send, content: Any, silent_s: float) -> httpx.Request:
    """A step as httpx sends it, with the body in the form that this client of httpx takes."""
    timeout = httpx.Timeout(min(silent_s, step.at_most_s) + step.hold_s, pool=step.connection_s)
    given = {"params": step.params, "headers": step.headers, "content": content, "timeout": timeout}
    return http.build_request(step.method, step.path, **given)


def parsed(parse: Callable[[Any], T], body: Any) -> T:
    """The typed answer; `UnexpectedAnswer` if the JSON is not what the API describes."""
    try:
        return parse(body)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        told = f"an answer this client cannot read: {error!r}; is the service of the same release?"
        raise UnexpectedAnswer(told) from error


def read_body(response: httpx.Response) -> Any:
    """The body as exact JSON, with arrays for columns if it came as npz; None if there is none."""
    if not response.content:
        return None
    is_npz = response.headers.get("content-type", "").partition(";")[0].strip().lower() == NPZ
    try:
        return read_npz(response.content) if is_npz else loads(response.content)
    except ValueError as error:
        form = "npz" if is_npz else "JSON"
        said = f"status {response.status_code} with a body that is no {form}{_hint(response)}"
        raise UnexpectedAnswer(said) from error


def pending_job_id(response: httpx.Response) -> str:
    """The job of a 202, named by its Location."""
    job_id: str = response.headers.get("location", "").rpartition("/v1/jobs/")[2]
    if response.status_code != httpx.codes.ACCEPTED or not job_id:
        raise UnexpectedAnswer(f"status {response.status_code} where 202 with the Location of a job was due")
    return job_id


def job_result(info: JobInfo, parse: Callable[[Any], T]) -> T:
    """What a finished job came to; raises its error."""
    if info.status == "succeeded":
        return parsed(parse, info.result)
    problem = info.error or {"code": info.status, "detail": f"job {info.id} {info.status}"}
    raise _problem(problem, int(problem.get("status", httpx.codes.OK)))


def _exchange(
    call: Call[T], retries: Retries, deadline: Deadline, prefer: str | None = None, hold_s: int = 0
) -> Steps[httpx.Response]:
    """One request until it is answered below 400, within the bounds of `retries`."""
    headers = dict(call.headers)
    if prefer is not None:
        headers["Prefer"] = prefer
    if call.method != "GET":
        headers.setdefault("Idempotency-Key", uuid4().hex)
    if call.body is not None:
        headers["Content-Type"] = call.body.media_type
        headers["Content-Length"] = str(call.body.n_bytes)
        if call.body.encoding:
            headers["Content-Encoding"] = call.body.encoding
    until = deadline if deadline.ends_at < math.inf else Deadline.after(retries.retry.patience_s)
    tries = Tries(retries, until)
    while True:
        outcome = yield Send(
            call.method,
            call.path,
            call.params,
            headers,
            call.body,
            hold_s,
            into=call.into,
            connection_s=until.remaining_s,
        )
        if isinstance(outcome, httpx.Response) and outcome.is_success:
            retries.was_answered = True
            return outcome
        error = outcome if isinstance(outcome, TransportError) else error_of(outcome)
        retries.was_answered |= isinstance(error, ApiError)
        pause_s = tries.pause_s(error) if _may_retry(error) else None
        if pause_s is None:
            raise error
        yield Pause(pause_s)


def error_of(response: httpx.Response | None) -> ApiError | UnexpectedAnswer:
    """The exception for an answer of 400 or above (RFC 9457 problem+json)."""
    if response is None:
        return UnexpectedAnswer("no answer")
    retry_after_s = _seconds(response.headers.get("retry-after"))
    try:
        body = loads(response.content)
        return _problem(body, response.status_code, retry_after_s, response.headers.get("x-request-id"))
    except (LookupError, TypeError, ValueError, AttributeError):
        error = UnexpectedAnswer(f"status {response.status_code} without a problem of this API{_hint(response)}")
        error.status, error.retry_after_s = response.status_code, retry_after_s
        return error


def _hint(response: httpx.Response) -> str:
    """Who answers in place of the service: another address, which a redirect names, or a page for people."""
    leads_to, kind = response.headers.get("location"), response.headers.get("content-type", "").partition(";")[0]
    if response.has_redirect_location:
        return f": it leads to {shown(str(response.request.url.join(leads_to)))}, which may be where the service is"
    page = f", but a page ({kind})" if kind == "text/html" else ""
    return f"{page}: does a proxy or another program answer at {shown(str(response.request.url.join('/')))}?"


def _problem(
    body: Mapping[str, Any], status: int, retry_after_s: float | None = None, request_id: str | None = None
) -> ApiError:
    rows = body.get("rows") or ()
    return api_error(body["code"], status, body.get("detail") or "", rows, retry_after_s, request_id, body)


def _may_retry(error: TransportError | ApiError) -> bool:
    if isinstance(error, ApiError):
        return error.status in RETRIED_STATUS and not isinstance(error, DataGone)
    return not isinstance(error, UnexpectedAnswer) or error.status in RETRIED_GATEWAY_STATUS


def _seconds(text: str | None) -> float | None:
    """Retry-After in seconds; a date, or what is no number, counts as none given."""
    try:
        told = math.nan if text is None else float(text)
    except ValueError:
        return None
    return None if math.isnan(told) else told
