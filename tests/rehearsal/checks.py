"""Checks of files that nothing here can run: manifests by the schemas of Kubernetes, the Dockerfile by hadolint."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import yaml

from tests.rehearsal import manifests
from tests.rehearsal.plan import ROOT

VERSIONS: Final = "1.30", "1.34", "1.37"
"""Of Kubernetes, whose schemas lie in the package `kubernetes-validate`."""


def renderings(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """All that an operator may apply. `folder` is empty, and stays so but for one file in each folder below it."""
    found = {name: manifests.render(manifests.FOLDER / name) for name in ("base", "gpu")}
    for name in ("base", "gpu"):
        own = folder / f"{name}-tls"
        own.mkdir()
        found[f"{name}, TLS"] = manifests.secured(own, name)
    return found


def check_manifests(folder: Path, say: Callable[[str], None]) -> None:
    """Strictly: a misspelt field is an error. Nothing is asked of a network."""
    import kubernetes_validate  # of the group `deploy`; `make test` does without it

    n = 0
    for objects in renderings(folder).values():
        for one in objects:
            for version in VERSIONS:
                kubernetes_validate.validate(one, version, strict=True)
            n += 1
    say(f"{n} objects fit the schemas of Kubernetes {', '.join(VERSIONS)}")


def lint(say: Callable[[str], None]) -> None:
    """The linters of the group `deploy`, and YAML that is read twice the same."""
    hadolint = shutil.which("hadolint", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert hadolint is not None, "no hadolint: it is of the group `deploy`"
    done = subprocess.run([hadolint, str(ROOT / "docker" / "Dockerfile")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    say("hadolint finds nothing in the Dockerfile")
    for file in (ROOT / "deploy").rglob("*.y*ml"):
        list(yaml.safe_load_all(file.read_text()))
