"""A parser process: reads bodies for an API process, one at a time, with a limit on its own memory.

``python -m service.api.bodies.parser FD PARENT``: FD is one end of a socket, PARENT the API process. A job comes as a
pickled `Job` with the descriptors of the body and of a file for what it becomes. The answer is a line of JSON, not
pickled: who has read a stranger's bytes is not trusted. A parser knows neither Redis nor the settings, and dies with
its parent.
"""

import json
import mmap
import os
import pickle
import resource
import signal
import socket
import sys
from pathlib import Path
from typing import Any, Final

from service.collector import paused
from service.left_out import leave_out_pandas, without_unused

with paused(), without_unused():
    import numpy as np
    import pyarrow as pa
    import structlog

    from gpu_engine import formats
    from gpu_engine.child import end_with
    from gpu_engine.errors import EngineError, Where
    from gpu_engine.networks.edgelist import EdgeList
    from service.api.bodies.tasks import JOB_LENGTH, GraphTask, Job, Task
    from service.errors import STATUS, ServiceError
    from service.telemetry import logs

OOM_SCORE: Final = 500
"""If the machine runs out of memory, the kernel ends a parser before processes that others depend on."""

NICENESS: Final = 5
"""Where both want one core, the API process gets three quarters of it: callers with short questions wait for it."""

log = structlog.get_logger("headrace.parser")


def main() -> None:
    """Take bodies from the socket until it is closed."""
    leave_out_pandas()
    connection = socket.socket(fileno=int(sys.argv[1]))
    _prepare(parent=int(sys.argv[2]))
    at_rest = _data_bytes()
    while (received := _receive(connection)) is not None:
        job, body, out = received
        answer = _limited(job, body, out)
        answer["grown_bytes"] = _data_bytes() - at_rest
        connection.sendall(json.dumps(answer).encode() + b"\n")


def _prepare(parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the API process's to obey
    end_with(parent)
    if sys.platform == "linux":
        Path("/proc/self/oom_score_adj").write_text(str(OOM_SCORE))
    os.nice(NICENESS)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    logs.configure("parser")
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    _warm_up()


def _warm_up() -> None:
    """Load what libraries load late, so that it is not counted as a body's memory."""
    ends = np.array([0, 1], np.int32)
    limits = formats.Limits()
    for labels in (None, ["a", "b"]):
        edges = EdgeList(2, ends, ends[::-1].copy(), np.array([1, 2]), vertex_labels=labels)
        bodies = {
            "application/json": formats.write_json(edges),
            "application/vnd.apache.arrow.stream": formats.write_arrow(edges, "zstd"),
            "application/x-npz": formats.write_npz(edges),
            "text/csv": formats.write_csv(edges),
        }
        for media_type, content in bodies.items():
            with open(os.devnull, "wb") as out:
                GraphTask(media_type, limits).run(memoryview(content), out)


def _receive(connection: socket.socket) -> tuple[Job, int, int] | None:
    """The next job, with the descriptors of its body and of the file for what it becomes; None: there will be none."""
    try:
        head, descriptors, _, _ = socket.recv_fds(connection, JOB_LENGTH.size, 2, socket.MSG_WAITALL)
    except ConnectionError:
        return None
    if len(head) < JOB_LENGTH.size:
        return None
    (length,) = JOB_LENGTH.unpack(head)
    return pickle.loads(connection.recv(length, socket.MSG_WAITALL)), descriptors[0], descriptors[1]


def _limited(job: Job, body: int, out: int) -> dict[str, Any]:
    """Run it with its limit; {} or the refusal."""
    has, (_, hard) = _data_bytes(), resource.getrlimit(resource.RLIMIT_DATA)
    if has:
        resource.setrlimit(resource.RLIMIT_DATA, (has + job.memory_bytes, hard))
    try:
        _run(job.task, body, out)
    except ServiceError as error:
        return _refusal(error.code, error.detail, error.where)
    except EngineError as error:
        return _refusal(error.code if error.code in STATUS else "internal_error", error.message, error.where)
    except (MemoryError, OSError) as error:  # libraries that cannot allocate say either
        log.warning("out_of_memory", error=str(error)[:200], memory_bytes=job.memory_bytes)
        return _refusal("too_large", f"reading the body took more than {job.memory_bytes} bytes of memory")
    except Exception:
        log.exception("unexpected error")
        return _refusal("internal_error", "the body could not be read, through no fault of its own")
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
    return {}


def _run(task: Task, body: int, out: int) -> None:
    with os.fdopen(body, "rb"), os.fdopen(out, "wb") as target:
        n_bytes = os.fstat(body).st_size
        view = memoryview(mmap.mmap(body, n_bytes, prot=mmap.PROT_READ) if n_bytes else b"")
        task.run(view, target)


def _refusal(code: str, detail: str, where: Where | None = None) -> dict[str, Any]:
    return {"code": code, "detail": detail, "where": where.members() if where else {}}


def _data_bytes() -> int:
    """What the limit counts; 0 where it cannot be told, and no limit is set."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmData:"))


if __name__ == "__main__":
    main()
