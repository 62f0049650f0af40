"""What schemathesis checks beside its own: loaded by the child process of `tests.fuzz.api`."""

import atexit
import json
import os
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import schemathesis

from service.errors import STATUS

SEEN: Counter[str] = Counter()
"""Responses by status and code; of the child process, which ends with the run."""

TIMES_S = [0.0]
"""The slowest answer so far, alone."""

ASKED_FOR = {"timeout": b"time_limit_s", "out_of_memory": b"n_vertices"}
"""A 5xx that is no fault: the caller set the limit, or loads a graph larger than the memory."""


@schemathesis.hook
def after_call(context: Any, case: Any, response: Any) -> None:
    code = response.json().get("code", "?") if "problem+json" in str(response.headers.get("content-type")) else "-"
    SEEN[f"{response.status_code} {code}"] += 1
    TIMES_S[0] = max(TIMES_S[0], response.elapsed)
    if SEEN.total() % 500 == 0:
        write()


def write() -> None:
    found = {"cases": SEEN.total(), "slowest_s": round(TIMES_S[0], 2), "answers": dict(sorted(SEEN.items()))}
    Path(os.environ["HEADRACE_FUZZ_SEEN"]).write_text(json.dumps(found))


@schemathesis.hook
def map_path_parameters(context: Any, path_parameters: Any) -> Any:
    """Most requests are about a graph that is there; deletes are about any other. Matchings have one of their own."""
    if path_parameters and "name" in path_parameters and context.operation.method.upper() != "DELETE":
        pick = zlib.crc32(repr(path_parameters).encode()) % 4
        there = "shift" if context.operation.path.endswith("/matching") else "city"
        path_parameters["name"] = [there, there, "town", path_parameters["name"]][pick]
    return path_parameters


@schemathesis.hook
def map_headers(context: Any, headers: Any) -> Any:
    """A made-up If-Match or If-None-Match is refused before all else is looked at: half of them go."""
    if headers and zlib.crc32(repr(headers).encode()) % 2:
        return {name: value for name, value in headers.items() if not name.lower().endswith("-match")}
    return headers


@schemathesis.check
def answered_or_refused(ctx: Any, response: Any, case: Any) -> None:
    """No 5xx, and each refusal is problem+json with a listed code under its own status."""
    if response.status_code < 400:
        return
    kind = str(response.headers.get("content-type"))
    assert "application/problem+json" in kind, f"{response.status_code} as {kind}"
    code = response.json()["code"]
    assert STATUS.get(code) == response.status_code, f"{response.status_code} with the code {code}"
    if response.status_code >= 500:
        assert code in ASKED_FOR, f"{response.status_code} {code}"
        assert ASKED_FOR[code] in (response.request.body or b""), f"{response.status_code} {code} unasked"


atexit.register(write)
