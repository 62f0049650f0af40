"""`headrace serve`: Redis (if embedded), the workers and the API on one machine, kept alive, stopped in order."""

import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Final

from service.connections.certificate import load_certificate
from service.host import redis_server
from service.host.children import Child, Popen, spawn_options, stop_together
from service.host.data_dir import Lock, locked
from service.host.ending import end_by_signals
from service.host.files import take_files
from service.host.gpus import WorkerPlan, check_engine, plan
from service.host.kept import FileWatch, Kept
from service.host.kernels import check_kernels
from service.host.listeners import is_loopback, listening, url_of
from service.host.manifest import FOLDER
from service.host.redis_wait import await_redis
from service.host.refusal import CannotServe
from service.settings import PREFIX, Settings
from service.store import keys_seen
from service.store.api_keys import ApiKeys
from service.store.connection import AWAY, connect
from service.store.keys import Keys
from service.telemetry.probing import SUPERVISOR

STDIN, STDERR = 0, 2
CHECKOUT: Final = Path(__file__).parents[2]
"""The folder that this package lies in."""

POLL_S: Final = 0.05
HOPELESS_ENDS: Final = 5
"""The service gives up when a child has ended so often before it was ever ready."""

CORES_PER_API: Final = 4
MOST_API_PROCESSES: Final = 8
"""Unless more are wanted: a single Redis has no time for more."""

STOP_API_S: Final = 15.0
STOP_WORKER_S: Final = 30.0
STOP_REDIS_S: Final = 60.0


def serve(
    settings: Settings,
    *,
    any_host: bool = False,
    stop_on_eof: bool = False,
    announce: Callable[[str], None] = print,
) -> None:
    """Run until one of `ending.ENDING`, or the end of standard input. `announce` gets the URL once /readyz is 200.

    Raises `CannotServe`, `gpus.NoSuchGpu`, `data_dir.DataDirInUse` or `redis_server.NoRedisServer` before anything is
    started, `CannotServe` also when a child cannot be brought up.
    """
    _check_certificate(settings)
    check_kernels()
    workers = plan(settings)
    check_engine(settings)
    settings = settings.model_copy(update={"insecure_any_host": any_host})
    is_local = any_host or is_loopback(settings.host)
    take_files()
    stop = threading.Event()
    end_by_signals(stop)
    if stop_on_eof:
        threading.Thread(target=_await_eof, args=(stop,), daemon=True).start()
    settings = settings.model_copy(update={"keys_seen_file": settings.data_dir.absolute() / keys_seen.FILE})
    await_redis(settings, stop)
    if settings.redis_url is None:
        redis_server.check_owner(settings)
    with locked(settings.data_dir) as lock:
        if not is_local:
            _require_keys(settings)
            settings = settings.model_copy(update={"require_keys": True})
        _serve(settings, workers, lock, stop, announce)


def _await_eof(stop: threading.Event) -> None:
    with suppress(OSError):  # there is none
        while os.read(STDIN, 4096):
            pass
    stop.set()


def _serve(
    settings: Settings,
    workers: Sequence[WorkerPlan],
    lock: Lock,
    stop: threading.Event,
    announce: Callable[[str], None],
) -> None:
    with listening(settings.host, settings.port, api_processes(settings)) as listeners:
        url = url_of(listeners[0], "http" if settings.tls_cert is None else "https")
        lock.write(url=url)
        children = _children(settings, workers, lock, listeners)
        try:
            files = FileWatch(partial(_kept, settings), partial(lock.tell, url=url))
            _watch(children, url, stop, announce, files)
        finally:
            first_api = len(children) - len(listeners)
            first_worker = first_api - len(workers)
            stop_together(children[first_api:])  # each lets open requests finish, by the workers
            stop_together(children[first_worker:first_api])  # else those that are left would take graphs over
            stop_together(children[:first_worker])


def _children(
    settings: Settings, workers: Sequence[WorkerPlan], lock: Lock, listeners: Sequence[socket.socket]
) -> Sequence[Child]:
    """In the order of starting: Redis if it is ours, the workers, the API processes. They are stopped the other way
    round."""
    environment = environment_of(settings.of_one_worker(len(workers)))

    def python(
        module: str, *arguments: str, more: Mapping[str, str], descriptors: Sequence[int] = ()
    ) -> Callable[[], Popen]:
        command = [sys.executable, "-m", module, *arguments]
        options = spawn_options(lock.descriptor, *descriptors) | {"env": environment | dict(more)}
        options |= {"stdin": subprocess.DEVNULL, "stdout": STDERR}  # stdout is for the announcement alone
        return lambda: subprocess.Popen(command, **options)

    children: list[Child] = []
    if settings.redis_url is None:
        redis_server.find_server(redis_server.data_of(settings))
        options = spawn_options(lock.descriptor)
        hint = f"see {redis_server.data_of(settings) / 'redis.log'}"
        redis = Child("redis", lambda: redis_server.start(settings, **options), STOP_REDIS_S, hint)
        redis.keep_alive()
        children.append(redis)
    # Another Redis may have workers elsewhere.
    only = {} if settings.redis_url else {"HEADRACE_ONLY_WORKERS": ",".join(worker.name for worker in workers)}
    for worker in workers:
        start = python("service.worker", *worker.arguments, more={**worker.environment, **only})
        # All end together: nobody is left whom graphs could be handed to, as SIGTERM would have it.
        children.append(Child(worker.name, start, STOP_WORKER_S, stop_signal=signal.SIGINT))
    folder = _metrics_folder(settings) if len(listeners) > 1 else None
    for number, listener in enumerate(listeners):
        beside = {} if folder is None else {"HEADRACE_METRICS_FILE": str(folder / f"{number}.json")}
        beside["HEADRACE_LOCK_DESCRIPTOR"] = str(lock.descriptor)
        arguments = "--fd", str(listener.fileno())
        api = python("service.api", *arguments, more=beside, descriptors=[listener.fileno()])
        children.append(Child("api" if folder is None else f"api-{number}", api, STOP_API_S))
    return children


def _metrics_folder(settings: Settings) -> Path:
    """Where API processes keep their figures for one another. Those of more processes than there are now are removed,
    and nothing else: the data directory may hold what is not ours."""
    folder = settings.data_dir.absolute() / "api-processes"
    folder.mkdir(mode=0o700, exist_ok=True)
    for left in folder.glob("[0-9]*.json"):
        left.unlink()
    return folder


def api_processes(settings: Settings) -> int:
    """How many share the port: as many as are wanted, else one for each four cores, since the others do the work that
    is asked for."""
    cores = len(os.sched_getaffinity(0))
    return settings.api_processes or min(max(cores // CORES_PER_API, 1), MOST_API_PROCESSES)


def _watch(
    children: Sequence[Child],
    url: str,
    stop: threading.Event,
    announce: Callable[[str], None],
    files: FileWatch,
) -> None:
    """Keep the children alive, and look after the `files` once all are ready, until `stop`."""
    announced, next_probe = False, 0.0
    while not stop.wait(POLL_S):
        for child in children:
            child.keep_alive()
            if not announced and child.ends >= HOPELESS_ENDS:
                raise CannotServe(f"{child.name} ended {child.ends} times before it was ready; {child.log_hint}")
        now = time.monotonic()
        if not announced and now >= next_probe:
            announced = _is_ready(url)
            next_probe = time.monotonic() + 2 * POLL_S
            if announced:
                files.begin()
                announce(url)
        files.look(now)


def _kept(settings: Settings) -> Kept:
    """What the embedded server must find again when it is started the next time."""
    data = redis_server.data_of(settings)
    return Kept() if settings.redis_url is not None else Kept(data, data / FOLDER, data=data)


def _is_ready(url: str) -> bool:
    ours = urllib.request.HTTPSHandler(context=ssl._create_unverified_context())  # our own socket, by its address
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), ours)  # never through a proxy
    opener.addheaders = [("User-Agent", SUPERVISOR)]
    try:
        with opener.open(f"{url}/readyz", timeout=1) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def environment_of(settings: Settings) -> dict[str, str]:
    """The environment of the children: our own, and the settings in it. REDIS_URL counts for nothing any more.

    They import nothing from the folder in which somebody stands who starts a service: there may be a `redis.py`. It is
    where a checkout that is not installed lies, as `python -m service.cli` finds it, that is imported from.
    """
    ours = {name: value for name, value in os.environ.items() if name.upper() != "REDIS_URL"}
    ours["PYTHONSAFEPATH"] = "1"
    if sys.path[0] == str(CHECKOUT):
        ours["PYTHONPATH"] = os.pathsep.join([str(CHECKOUT), *filter(None, [ours.get("PYTHONPATH")])])
    values = settings.model_dump(mode="json", exclude_none=True) | {"data_dir": str(settings.data_dir.absolute())}
    return ours | {f"{PREFIX}{name.upper()}": str(value) for name, value in values.items()}


def _check_certificate(settings: Settings) -> None:
    """Raise `CannotServe` for files that the API process would end over again and again."""
    if settings.tls_cert is None:
        return
    try:
        load_certificate(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), settings.tls_cert, settings.tls_key)
    except OSError as error:  # SSLError is one
        raise CannotServe(f"HEADRACE_TLS_CERT or HEADRACE_TLS_KEY cannot be used: {error}") from None


def _require_keys(settings: Settings) -> None:
    """Look for API keys where they are kept. The lock is held, so an embedded server is not running."""
    if not _has_keys(settings):
        embedded = settings.redis_url is None
        where = f"in {settings.data_dir.absolute()}" if embedded else "in its Redis"
        option = f" --data-dir {settings.data_dir}" if embedded and settings.data_dir != Path(".headrace") else ""
        raise CannotServe(
            f"{settings.host} is reachable from other machines and there are no API keys {where}; make one with "
            f"`headrace keys create NAME --scope admin{option}`, bind 127.0.0.1, or say --insecure-any-host if "
            "something else guards the port"
        )


def _has_keys(settings: Settings) -> bool:
    embedded = settings.redis_url is None
    if embedded and not redis_server.data_of(settings).exists():
        return False
    client = connect(settings)
    try:
        with redis_server.running(settings) if embedded else nullcontext():
            return bool(ApiKeys(client, Keys(settings.redis_prefix)).list())
    except AWAY as error:
        raise CannotServe(f"Redis does not answer, so it is not known whether there are API keys: {error}") from None
    finally:
        client.close()
