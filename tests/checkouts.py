"""Whether the sources are a clone, for tests that ask Git which files there are; those of an archive are none."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def lacking(folder: Path) -> str | None:
    """Why Git has no list of the files in a folder, if it has none."""
    if shutil.which("git") is None:
        return "there is no git to list the files"
    listed = subprocess.run(["git", "ls-files", "--error-unmatch", "Makefile"], cwd=folder, capture_output=True)
    return None if listed.returncode == 0 else "Git has no list of the files: they are no clone"


LACKING = lacking(ROOT)
needs_clone = pytest.mark.skipif(LACKING is not None, reason=str(LACKING))
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
