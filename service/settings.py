"""Settings of every process, from the environment (prefix HEADRACE_; REDIS_URL is read as well)."""

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import quote

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from service.connections import redis_address
from service.machine import memory_bytes

PREFIX: Final = "HEADRACE_"
READ_ELSEWHERE: Final = frozenset(
    {
        *("API_KEY", "URL", "KEPT_PREFIX", "BENCH_REAL", "FUZZ_SEEN"),
        *("PUBLISH", "TLS_DIR", "CUDA_VERSION"),
        *("METRICS_KEY_FILE", "PROMETHEUS_CONFIG", "PROMETHEUS_PUBLISH", "GRAFANA_PUBLISH"),
    }
)
"""Names after the prefix that others read: the client, the command line, the compose file, benchmarks and tests."""

MAX_SOCKET_PATH = 100
"""A unix socket's path has room for 107 bytes; Redis appends to it while it starts."""

MAX_SOCKET_FOLDER = MAX_SOCKET_PATH - len("/headrace-0123456789abcdef/redis.sock")
"""Bytes in the path of a folder in which folders with sockets are made."""

MOST: Final = 1 << 53
"""No count and no size is larger: they go to Redis, and as JSON to readers that keep numbers as binary floats."""

MOST_AT_ONCE: Final = 1024
"""Processes, or threads of one process."""

LONGEST_S: Final = 315_360_000
"""Ten years: Redis refuses to keep what expires in some million."""

REDIS_USER = "headrace"
"""The user of the embedded server that the service is: see `service.host.redis_acl`."""


OVERRULED: Final = (
    "HEADRACE_REDIS_URL counts, and REDIS_URL, which names another server, does not: unset one, or make them equal"
)


class SettingsError(ValueError):
    """The environment does not say what the settings are to be; one line."""


def _known_engine(name: str) -> str:
    if re.fullmatch("auto|cpu|cuda-peers|cuda(:[a-z-]+)?", name) is None:
        raise ValueError(
            f"should be auto, cpu, cuda, cuda-peers, or cuda:NAME for a published system, not {name[:50]!r}"
        )
    return name


def _hosts_alone(hosts: str) -> str:
    for host in filter(None, map(str.strip, hosts.split(","))):
        if re.fullmatch(r"[A-Za-z0-9._-]+|[0-9A-Fa-f.]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*", host) is None:
            raise ValueError(f"should be names and addresses with commas between and nothing else, not {host[:50]!r}")
    return hosts


def _size_of_redis(size: str) -> str:
    if re.fullmatch(r"([0-9]{1,15}(b|[kmg]b?)?)?", size, re.IGNORECASE) is None:
        raise ValueError(f"should be a size in the words of Redis, such as 4gb, 512mb or 0 for none, not {size[:50]!r}")
    return size


def _no_empty_path(path: object) -> object:
    if path == "":
        raise ValueError("is empty, which would be the folder that this was started in: unset it, or name a path")
    return path


NamedPath = Annotated[Path, BeforeValidator(_no_empty_path)]


class Settings(BaseSettings):
    """One immutable object per process; no module keeps one of its own."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore", allow_inf_nan=False)

    redis_url: str | None = Field(
        default=None, validation_alias=AliasChoices("HEADRACE_REDIS_URL", "REDIS_URL", "redis_url")
    )
    """None: the embedded server under `data_dir`."""
    redis_wait_s: float | None = Field(default=None, ge=0)
    """How long `headrace serve` and `headrace worker` wait for that server when they start, before they end; None: for
    ever, and so they do once it has answered."""
    redis_prefix: str = "headrace:"
    data_dir: NamedPath = Path(".headrace")
    fsync: Literal["everysec", "always"] = "everysec"
    """When the embedded server's append-only file reaches the disk. What a *process* kill leaves is the same."""
    redis_maxmemory: Annotated[str, AfterValidator(_size_of_redis)] = ""
    """Memory of the embedded server in its own words, such as `4gb`; 0: no limit. Empty: half of what there is."""

    host: str = Field(default="127.0.0.1", min_length=1)
    access_log: bool = True
    """One log line for each request and for each command."""
    port: int = Field(default=8080, ge=0, le=65535)
    default_wait_s: float = Field(default=30, ge=0)
    max_wait_s: float = Field(default=300, ge=0)
    max_body_bytes: int = Field(default=1 << 30, gt=0, le=MOST)
    max_json_bytes: int = Field(default=256 << 20, gt=0, le=MOST)
    """Limit of a body of JSON, and of any PATCH, once it is decoded."""
    body_memory_bytes: int = Field(default_factory=lambda: min(8 << 30, memory_bytes() // 4), gt=0, le=MOST)
    """Memory of one API process and its parsers for bodies: as received, decoded, and what reading them may take."""
    max_edges: int = Field(default=2**30 - 1, gt=0, le=2**30 - 1)
    max_vertices: int = Field(default=2**31 - 2, gt=0, le=2**31 - 2)
    max_patch_rows: int = Field(default=1_000_000, gt=0, le=MOST)
    max_question_rows: int = Field(default=100_000, gt=0, le=MOST)
    """Scenarios of one question, pairs of one, or terminals of a tree."""

    api_processes: int | None = Field(default=None, ge=1, le=64)
    """How many share the port of `headrace serve`; None: one for each four cores, at most eight."""
    workers: int = Field(default=1, ge=1, le=MOST_AT_ONCE)
    """Worker processes. Beside `gpus` it is the number of further workers without a device, 0 unless it is set."""
    gpus: str = Field(default="", max_length=1000)
    """GPUs that get a worker each: `all`, the first N, or a list such as `0,2`. Empty: workers are bound to none."""
    threads: int = Field(default=2, ge=1, le=MOST_AT_ONCE)
    """Long work that one worker does side by side, one piece for each graph. Short work has slots of its own."""
    question_threads: int = Field(default=1, ge=1, le=MOST_AT_ONCE)
    """Questions of several rows that one worker answers side by side, beside its other work."""
    row_threads: int = Field(default=2, ge=1, le=MOST_AT_ONCE)
    """Threads on which the rows of one question are tried side by side, no more than there are cores."""
    engine: Annotated[str, AfterValidator(_known_engine)] = "auto"
    """`cuda:NAME` drains by a published system, for comparisons; the worker refuses unknown names."""
    memory_budget_bytes: int = Field(default=0, ge=0, le=MOST)
    """Host memory of one worker, for its graphs, their flow states and the solves that run. 0: half of what there is,
    in equal parts for the workers that one command starts."""
    device_budget_bytes: int = Field(default=0, ge=0, le=MOST)
    """Device memory of one worker. 0: an equal part of `service.worker.process.DEVICE_SHARE` of the device, or all of
    that for a worker which is bound to it."""
    lease_s: float = Field(default=5, ge=0.1, le=86_400)
    """A worker silent for longer may lose its graphs to another."""
    queue_limit: int = Field(default=1000, gt=0, le=MOST)
    """Commands that may wait for one worker."""
    graph_queue_limit: int = Field(default=128, gt=0, le=MOST)
    """Commands for one graph, unfinished, that one API process lets in."""
    graph_queue_short: int = Field(default=8, gt=0, le=MOST)
    """Commands of waiting callers for one graph, unfinished, that one API process lets in when commands take long."""
    queue_target_s: float = Field(default=2.0, ge=0)
    """More commands of waiting callers than `graph_queue_short` are let in if all of them are expected to end within
    this time. After the line was full it is shorter for a while (`service/api/guards/admission.py`)."""
    key_queue_limit: int = Field(default=128, gt=0, le=MOST)
    """Commands of one API key, unfinished, that one API process lets in."""
    max_requests: int = Field(default=1024, gt=0, le=MOST)
    """Requests open at one API process, those that wait for an answer included."""
    max_sending_bytes: int = Field(default=256 << 20, gt=0, le=MOST)
    """Bytes of long answers on their way to readers, at one API process; one answer alone may have more."""
    max_event_streams: int = Field(default=256, gt=0, le=MOST)
    """Event streams open at one API process."""
    max_watches: int = Field(default=16, ge=0, le=MOST)
    """Watches of one graph: each keeps a flow state of its own, and is solved again at each version."""
    event_history: int = Field(default=10_000, ge=100, le=MOST)
    """Events that are kept of one graph, for readers that come back: a page of them at least."""
    max_webhooks: int = Field(default=100, ge=0, le=MOST)
    """Webhooks of the whole service."""
    webhook_hosts: Annotated[str, AfterValidator(_hosts_alone)] = ""
    """Hosts, separated by commas, that webhooks may name although their addresses are private; by http, too."""
    send_webhooks: bool = True
    """Whether events are sent to webhooks. Not by a copy of a service that is tried beside it: receivers would get what
    waits twice, and what is changed in the copy as well."""
    webhook_give_up_s: float = Field(default=259_200, gt=0)
    """How long an event is tried before it is given up."""
    require_keys: bool = False
    """Let nobody in without an API key, even while there are none. Without: open until the first key is made."""
    insecure_any_host: bool = False
    """Answer, without keys, whoever reaches the port by whatever name: something else guards it."""
    keys_seen_file: NamedPath | None = None
    """Where it is kept that there were API keys; `headrace serve` sets it to a file in `data_dir`."""
    metrics_file: NamedPath | None = None
    """Where an API process keeps its figures for those that share its port; `headrace serve` sets it."""
    only_workers: str = ""
    """Set by `headrace serve` with its own Redis: its workers, separated by commas. Any other name is left over from a
    start with more workers; its graphs are taken as soon as its lease has ended."""
    lock_descriptor: int | None = Field(default=None, ge=0)
    """The lock file of `headrace serve`, as an API process inherits it: it says whether the data is gone."""
    tls_cert: NamedPath | None = None
    """PEM file of the certificate chain the API shows; None: plain HTTP."""
    tls_key: NamedPath | None = None
    """PEM file of its private key."""
    job_ttl_s: int = Field(default=3600, gt=0, le=LONGEST_S)
    snapshot_every_updates: int = Field(default=1000, gt=0, le=MOST)
    snapshot_every_s: float = Field(default=300, gt=0)

    @property
    def redis_socket(self) -> Path:
        """Where the embedded server listens: in `data_dir`, or in a private directory if that path is too long."""
        socket = self.data_dir.absolute() / "redis.sock"
        if len(os.fsencode(socket)) <= MAX_SOCKET_PATH:
            return socket
        digest = hashlib.sha256(os.fsencode(socket)).hexdigest()[:16]
        return folder_of_sockets() / f"headrace-{digest}" / "redis.sock"

    @property
    def host_budget(self) -> int:
        """Bytes of host memory that a worker has, which shares them with no other."""
        return self.memory_budget_bytes or memory_bytes() // 2

    def of_one_worker(self, n_workers: int) -> "Settings":
        """The settings of each of so many workers that share a machine."""
        budget = self.memory_budget_bytes or self.host_budget // n_workers
        return self.model_copy(update={"memory_budget_bytes": budget})

    @property
    def redis_location(self) -> str:
        """The URL every process connects to."""
        if self.redis_url:
            return redis_address.heeded(self.redis_url)
        return f"unix://{REDIS_USER}@{quote(str(self.redis_socket))}"


def folder_of_sockets() -> Path:
    """Where folders are made for sockets: that of other temporary files, unless its own path is too long for it."""
    folder = tempfile.gettempdir()
    return Path(folder if len(os.fsencode(folder)) <= MAX_SOCKET_FOLDER else "/tmp")


def read_settings(**given: Any) -> Settings:
    """The settings of this process; what is `given` goes before the environment.

    Raises `SettingsError` for a variable with our prefix that nothing reads, since a setting that is only almost named
    would be off in silence, and for a value that is out of its form.
    """
    refuse_unknown(os.environ)
    try:
        settings = Settings(**given)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        said = [(_shown(fault["loc"]), _plain(fault["msg"])) for fault in faults]
        raise SettingsError("; ".join(f"{name}: {text}" for name, text in said)) from None
    settings = _clipped(settings)
    _refuse_no_text(settings.data_dir)
    if settings.tls_key is not None and settings.tls_cert is None:
        raise SettingsError("HEADRACE_TLS_KEY is set and HEADRACE_TLS_CERT is not: nothing would be encrypted")
    if settings.redis_url is not None:
        reason = redis_address.fault(settings.redis_url)
        if reason is not None:
            raise SettingsError(f"REDIS_URL, HEADRACE_REDIS_URL or --redis-url {reason}")
    return settings


def _plain(message: str) -> str:
    """A message of pydantic without its Python."""
    said = message.removeprefix("Value error, ").removeprefix("Input ")
    return said.partition(", unable to parse")[0]


def refuse_idle(settings: Settings) -> None:
    """Raise `SettingsError` for what a command that starts processes is told, and none of them would heed."""
    if settings.redis_url is not None and "fsync" in settings.model_fields_set:
        raise SettingsError("HEADRACE_FSYNC is for the embedded Redis server: one of your own has its own settings")
    if settings.redis_url is None and settings.redis_wait_s is not None:
        raise SettingsError("HEADRACE_REDIS_WAIT_S is for a Redis of your own: the embedded one is started here")
    if settings.redis_url is not None and settings.redis_maxmemory:
        raise SettingsError("HEADRACE_REDIS_MAXMEMORY is for the embedded Redis server: one of your own has its own")
    if settings.engine == "cpu" and settings.device_budget_bytes:
        raise SettingsError("HEADRACE_DEVICE_BUDGET_BYTES does nothing beside HEADRACE_ENGINE=cpu")


def overruled_redis(settings: Settings, environment: Mapping[str, str]) -> str | None:
    """The address in REDIS_URL, where HEADRACE_REDIS_URL has another one, which is the one that counts; else None, as
    for what is neither of them and was given otherwise. It may have a password."""
    said = {name.upper(): value for name, value in environment.items()}
    ours, other = said.get(f"{PREFIX}REDIS_URL"), said.get("REDIS_URL")
    return other if ours not in (None, other) and settings.redis_url == ours else None


def _clipped(settings: Settings) -> Settings:
    """The settings with defaults that lie beyond what is said of another bound lowered to that. Raise `SettingsError`
    for a bound that is said itself and lies beyond another one."""
    said = settings.model_fields_set
    if "default_wait_s" in said and settings.default_wait_s > settings.max_wait_s:
        most = f"{settings.max_wait_s:g}"
        raise SettingsError(f"HEADRACE_DEFAULT_WAIT_S is more than HEADRACE_MAX_WAIT_S, which is {most}")
    if "max_json_bytes" in said and settings.max_json_bytes > settings.max_body_bytes:
        raise SettingsError(
            f"HEADRACE_MAX_JSON_BYTES is more than HEADRACE_MAX_BODY_BYTES, which is {settings.max_body_bytes}"
        )
    wait_s, json_bytes = settings.default_wait_s, settings.max_json_bytes
    lower = {"default_wait_s": min(wait_s, settings.max_wait_s)}
    lower["max_json_bytes"] = min(json_bytes, settings.max_body_bytes)
    return settings.model_copy(update=lower)


def _refuse_no_text(data_dir: Path) -> None:
    """Raise `SettingsError` for a path that cannot stand in the address of the embedded server."""
    try:
        str(data_dir.absolute()).encode()
    except UnicodeEncodeError:
        told = "the path of the data directory is no text in UTF-8, as this process reads it"
        raise SettingsError(f"{told}: choose another --data-dir, or a locale such as LC_ALL=C.UTF-8") from None


def refuse_unknown(variables: Iterable[str]) -> None:
    """Raise `SettingsError` for the first name with our prefix that is no setting's, with the near name if any is."""
    known = {name.upper() for name in Settings.model_fields}
    for variable in sorted(variables):
        name = variable.upper().removeprefix(PREFIX)
        if not variable.upper().startswith(PREFIX) or name in known:
            continue
        if variable.removeprefix(PREFIX) in READ_ELSEWHERE:  # by programs that heed the case
            continue
        near = get_close_matches(name, sorted(known | READ_ELSEWHERE), 1)
        hint = f"did you mean {PREFIX}{near[0]}?" if near else "service/settings.py lists the settings"
        raise SettingsError(f"{variable} is set in the environment, but nothing reads it: {hint}")


def _shown(place: tuple[int | str, ...]) -> str:
    """The variable of the field at fault: a field with several names is reported by the one that was read."""
    name = str(place[0]).upper()
    return name if name.startswith(PREFIX) or name == "REDIS_URL" else PREFIX + name
