"""schemathesis against a real service: every operation of the OpenAPI document, and what its links lead to."""

import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Final

from tests.serving import serving

CHECKS: Final = "answered_or_refused,response_schema_conformance,content_type_conformance,status_code_conformance"
HANG_S: Final = 20
EXAMPLES: Final = 250
"""Of each operation, in one round."""

EDGES: Final = {"tail": [0, 0, 1, 2], "head": [1, 2, 3, 3], "capacity": [3, 2.5, "inf", 2], "source": 0, "sink": 3}
LIMITS: Final = {
    "HEADRACE_DEFAULT_WAIT_S": "5",
    "HEADRACE_MAX_WAIT_S": "5",
    "HEADRACE_MAX_BODY_BYTES": str(16 << 20),
    "HEADRACE_MEMORY_BUDGET_BYTES": str(512 << 20),
}
"""So that neither a wait nor a large body of the fuzzer's is the service's time."""


def run(cases: int, seed: int) -> int:
    """About `cases` requests, in rounds of a seed each; 0 if every check held."""
    counts: Counter[str] = Counter()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="headrace-fuzz-") as folder:
        os.environ.update(LIMITS)
        with serving(Path(folder) / "data") as service:
            while counts.total() < cases:
                service.http.put("/v1/graphs/city", json=EDGES).raise_for_status()  # it lives, and still works
                seen = Path(folder) / "seen"
                failed += _schemathesis(service.url, seed, seen) != 0
                before = counts.total()
                for line in seen.read_text().splitlines():
                    number, name = line.split(" ", 1)
                    counts[name] += int(number)
                print(f"api: seed {seed}: {counts.total() - before} cases, {failed} failed rounds", flush=True)
                seed += 1
    print(f"api: {counts.total()} cases: {dict(sorted(counts.items()))}")
    return 1 if failed else 0


def _schemathesis(url: str, seed: int, seen: Path) -> int:
    command = [str(Path(sys.executable).with_name("schemathesis"))]
    command += ["run", f"{url}/openapi.json", "--seed", str(seed), "--max-examples", str(EXAMPLES)]
    command += ["--checks", CHECKS, "--continue-on-failure", "--no-shrink", "--warnings", "off"]
    command += ["--request-timeout", str(HANG_S), "--max-response-time", str(HANG_S)]
    command += ["--suppress-health-check", "all"]
    environment = os.environ | {"SCHEMATHESIS_HOOKS": "tests.fuzz.hooks", "HEADRACE_FUZZ_SEEN": str(seen)}
    return subprocess.run(command, env=environment, check=False).returncode
