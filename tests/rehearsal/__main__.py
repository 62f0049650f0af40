"""``python -m tests.rehearsal``: what `deploy/` describes, run here without a container engine or a cluster.

Docker Compose, HAProxy, Prometheus, promtool and kubectl are used where they are on PATH; what is missing is said.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.rehearsal import runs
from tests.rehearsal.checks import check_manifests, lint
from tests.rehearsal.compose import engine


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.rehearsal", description=__doc__)
    parser.add_argument("--only", default="", help="those whose name contains this")
    wanted = parser.parse_args().only
    with tempfile.TemporaryDirectory(prefix="headrace-rehearsal-") as folder:
        root = Path(folder)
        certificate = make_certificate(root)
        rehearsals: dict[str, Callable[[Path], None]] = {
            "compose": lambda at: runs.compose_plain(at, say),
            "compose, TLS and keys": lambda at: runs.compose_secured(at, say, certificate),
            "kubernetes": lambda at: runs.kubernetes(at, say),
            "kubernetes, TLS": lambda at: runs.kubernetes(at, say, certificate),
            "manifests": lambda at: check_manifests(at, say),
            "Dockerfile": lambda at: lint(say),
        }
        say(f"docker compose {'reads' if engine() else 'is not here; tests/rehearsal/compose.py reads'} the file")
        for number, (name, rehearse) in enumerate(rehearsals.items()):
            if wanted not in name:
                continue
            if name.startswith(("kubernetes", "manifests")) and shutil.which("kubectl") is None:
                say(f"{name}: not tried, as there is no kubectl")
                continue
            say(f"--- {name}")
            began = time.monotonic()
            at = root / str(number)
            at.mkdir()
            rehearse(at)
            say(f"{time.monotonic() - began:.0f} s")
    return 0


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """For a host that no container has, as in life: nobody within asks by the name that callers know."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=headrace.example.com", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True)
    return cert, key


def say(text: str) -> None:
    print(time.strftime("%X"), text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
