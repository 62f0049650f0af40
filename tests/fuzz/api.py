"""schemathesis against a real service: every operation of the OpenAPI document, and what its links lead to."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.serving import serving

CHECKS: Final = "answered_or_refused,response_schema_conformance,content_type_conformance,status_code_conformance"
HANG_S: Final = 20
EDGES: Final = {"tail": [0, 0, 1, 2], "head": [1, 2, 3, 3], "capacity": [3, 2.5, "inf", 2], "source": 0, "sink": 3}
LIMITS: Final = {
    "HEADRACE_DEFAULT_WAIT_S": "5",
    "HEADRACE_MAX_WAIT_S": "5",
    "HEADRACE_MAX_BODY_BYTES": str(16 << 20),
    "HEADRACE_MEMORY_BUDGET_BYTES": str(512 << 20),
}
"""So that neither a wait nor a large body of the fuzzer's is the service's time."""


def run(cases: int, seed: int) -> int:
    """About `cases` requests, most of them in the fuzzing phase; 0 if every check held."""
    with tempfile.TemporaryDirectory(prefix="headrace-fuzz-") as folder:
        os.environ.update(LIMITS)
        with serving(Path(folder) / "data") as service:
            service.http.put("/v1/graphs/city", json=EDGES).raise_for_status()
            document = service.http.get("/openapi.json")
            operations = sum(len(methods) for methods in document.json()["paths"].values())
            seen = Path(folder) / "seen"
            status = _schemathesis(service.url, max(1, cases // operations), seed, seen)
            service.http.put("/v1/graphs/city", json=EDGES).raise_for_status()  # it lives, and still works
            counts = dict(reversed(line.split(" ", 1)) for line in seen.read_text().splitlines())
    print(f"api: {sum(map(int, counts.values()))} cases: {counts}")
    return status


def _schemathesis(url: str, examples: int, seed: int, seen: Path) -> int:
    command = [
        os.environ.get("ST", str(Path(sys.executable).with_name("schemathesis"))),
        "run",
        f"{url}/openapi.json",
        "--workers",
        "2",
    ]
    command += ["--max-examples", str(examples), "--seed", str(seed), "--checks", CHECKS, "--continue-on-failure"]
    command += ["--request-timeout", str(HANG_S), "--max-response-time", str(HANG_S), "--warnings", "off"]
    command += ["--suppress-health-check", "all", "--no-shrink"]
    environment = os.environ | {"SCHEMATHESIS_HOOKS": "tests.fuzz.hooks", "HEADRACE_FUZZ_SEEN": str(seen)}
    return subprocess.run(command, env=environment, check=False).returncode
