"""`make demo`, the first thing that a new user runs."""

import os
import subprocess
import sys
from pathlib import Path


def test_the_demo_ends_well(tmp_path: Path) -> None:
    """Load, solve, update, kill -9 and back: it fails by itself if a value or a certificate is wrong."""
    command = [sys.executable, "-m", "service.cli", "demo"]
    done = subprocess.run(
        command,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "Same version and value after kill -9" in done.stdout
