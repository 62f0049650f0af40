"""The client as NetworkX finds it when it is installed: its entry points, from `pyproject.toml`.

An environment that was made before the entry points were written has none, and a check-out beside another one has those
of the other.
"""

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "python"


def write_metadata(folder: Path) -> None:
    """What an installation of the client would leave beside its modules, for whoever has `folder` on the path."""
    project: dict[str, Any] = tomllib.loads((CLIENT / "pyproject.toml").read_text())["project"]
    info = folder / f"{project['name']}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"]
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {at}\n" for name, at in named.items()) for group, named in groups.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))


def search_path(folder: Path) -> str:
    """`PYTHONPATH` of a process that has the client with these metadata."""
    return ":".join(map(str, (folder, ROOT, CLIENT / "src")))
