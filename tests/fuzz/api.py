"""schemathesis against a real service: every operation of the OpenAPI document, and what its links lead to."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.results import Row
from tests.serving import Service, serving

CHECKS: Final = "answered_or_refused,response_schema_conformance,content_type_conformance,status_code_conformance"
HANG_S: Final = 20
EXAMPLES: Final = 250
"""Of each operation, in one round."""

EDGES: Final = {"tail": [0, 0, 1, 2], "head": [1, 2, 3, 3], "capacity": [3, 2.5, "inf", 2], "source": 0, "sink": 3}
PAIRS: Final = {"tail": [0, 0, 1, 2], "head": [3, 4, 3, 4], "capacity": [1, 2.5, "inf", 0]}
"""Edges from left to right, for matchings."""

LIMITS: Final = {
    "HEADRACE_ACCESS_LOG": "false",
    "HEADRACE_DEFAULT_WAIT_S": "5",
    "HEADRACE_MAX_WAIT_S": "5",
    "HEADRACE_MAX_BODY_BYTES": str(16 << 20),
    "HEADRACE_MEMORY_BUDGET_BYTES": str(512 << 20),
}
"""So that neither a wait nor a large body of the fuzzer's is the service's time."""


def run(cases: int, seed: int) -> Iterator[Row]:
    """About `cases` requests, in rounds of a seed each: one row a round, `failed` if a check did not hold."""
    done = 0
    folder = tempfile.TemporaryDirectory(prefix="headrace-fuzz-")
    with folder as data, serving(Path(data) / "data", environment=LIMITS) as service:
        children, seen = service.children(), Path(data) / "seen.json"
        while done < cases:
            yield (row := one_round(service, seed, seen))
            if (now := service.children()) != children:
                raise RuntimeError(f"a process died: {children} are {now}")
            done, seed = done + row["cases"], seed + 1


def one_round(service: Service, seed: int, seen: Path) -> Row:
    """Requests of one seed to a service that runs; `seen` is a file for the child process to write its counts to."""
    began = time.perf_counter()
    for name, edges in (("city", EDGES), ("shift", PAIRS)):
        service.http.put(f"/v1/graphs/{name}", json=edges).raise_for_status()  # it lives, and still works
    failed = _schemathesis(service.url, seed, seen) != 0
    row: Row = {"what": "api", "seed": seed, "failed": int(failed)} | json.loads(seen.read_text())
    return row | {"minutes": round((time.perf_counter() - began) / 60, 2)}


def _schemathesis(url: str, seed: int, seen: Path) -> int:
    command = [str(Path(sys.executable).with_name("schemathesis"))]
    command += ["run", f"{url}/openapi.json", "--seed", str(seed), "--max-examples", str(EXAMPLES)]
    command += ["--checks", CHECKS, "--continue-on-failure", "--no-shrink", "--warnings", "off"]
    command += ["--request-timeout", str(HANG_S), "--max-response-time", str(HANG_S)]
    command += ["--suppress-health-check", "all"]
    environment = os.environ | {"SCHEMATHESIS_HOOKS": "tests.fuzz.hooks", "HEADRACE_FUZZ_SEEN": str(seen)}
    return subprocess.run(command, env=environment, check=False).returncode
