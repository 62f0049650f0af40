"""requirements/*.txt pin what pyproject.toml asks for, for every Python and machine, and name no index."""

import re
import tomllib
from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
SERVICE: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
CLIENT: dict[str, Any] = tomllib.loads((ROOT / "clients" / "python" / "pyproject.toml").read_text())
FILES = {path.stem: path.read_text() for path in (ROOT / "requirements").glob("*.txt")}

PYTHONS = ("3.11.2", "3.12.3", "3.13.5", "3.14.0")
MACHINES = ("x86_64", "aarch64")
PLACES = [
    {"python_version": python.rpartition(".")[0], "python_full_version": python, "platform_machine": machine}
    | {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"}
    for python, machine in product(PYTHONS, MACHINES)
]

OURS = {"headrace", "headrace-server"}
CORE = [*SERVICE["project"]["dependencies"], *CLIENT["project"]["dependencies"]]
EXTRAS = SERVICE["project"]["optional-dependencies"] | CLIENT["project"]["optional-dependencies"]
GROUPS: dict[str, list[str]] = SERVICE["dependency-groups"]
RUN = [*CORE, *EXTRAS["embedded"], *EXTRAS["progress"], *GROUPS["build"]]
DEV = [*RUN, *GROUPS["test"], *GROUPS["lint"], *GROUPS["docs"], *GROUPS["examples"]]
WANTED = {
    "run": RUN,
    "dev": DEV,
    "all": [*DEV, *EXTRAS["otel"], *GROUPS["fuzz"], *GROUPS["audit"], *GROUPS["deploy"]],
    "build": GROUPS["build"],
    "image": [*CORE, *EXTRAS["otel"]],
    "image-gpu12": [*CORE, *EXTRAS["otel"], *EXTRAS["gpu12"], *GROUPS["cuda12"]],
    "image-gpu13": [*CORE, *EXTRAS["otel"], *EXTRAS["gpu13"], *GROUPS["cuda13"]],
}


def pins(name: str) -> Iterator[tuple[Requirement, list[str]]]:
    """Each pin of a file, and its hashes."""
    for line in FILES[name].replace("\\\n", "").splitlines():
        if not line.startswith("#"):
            pin, *hashes = re.split(r"\s+--hash=", line)
            yield Requirement(pin), hashes


PINS = {name: list(pins(name)) for name in FILES}


def versions(name: str, place: dict[str, str]) -> dict[str, Version]:
    """What a file installs at a place: one version of each package."""
    found: dict[str, Version] = {}
    for pin, _ in PINS[name]:
        if pin.marker is None or pin.marker.evaluate(place):
            package = canonicalize_name(pin.name)
            assert package not in found, f"{name} pins {package} twice for {place}"
            (one,) = pin.specifier
            assert one.operator == "=="
            found[package] = Version(one.version)
    return found


def test_each_file_has_its_wants() -> None:
    assert FILES.keys() == WANTED.keys()


@pytest.mark.parametrize("name", WANTED)
@pytest.mark.parametrize("place", PLACES, ids=lambda place: f"{place['python_version']}-{place['platform_machine']}")
def test_what_is_asked_for_is_pinned(name: str, place: dict[str, str]) -> None:
    """Where this fails, pyproject.toml was changed and `make lock` has to follow."""
    pinned = versions(name, place)
    for wanted in map(Requirement, WANTED[name]):
        if wanted.name not in OURS and (wanted.marker is None or wanted.marker.evaluate(place)):
            version = pinned.get(canonicalize_name(wanted.name))
            assert version is not None, f"requirements/{name}.txt lacks {wanted}"
            assert version in wanted.specifier, f"requirements/{name}.txt has {wanted.name} {version}, not {wanted}"


@pytest.mark.parametrize("place", PLACES[:: len(MACHINES)], ids=lambda place: place["python_version"])
def test_all_files_agree(place: dict[str, str]) -> None:
    everything = versions("all", place)
    for name in WANTED:
        found = versions(name, place)
        if name.startswith("image-gpu"):
            found = {package: found[package] for package in found.keys() & everything.keys()}
        assert found.items() <= everything.items(), name
    for smaller, larger in pairwise(("run", "dev", "all")):
        assert versions(smaller, place).keys() < versions(larger, place).keys()


@pytest.mark.parametrize("name", WANTED)
def test_every_pin_has_hashes_and_no_place(name: str) -> None:
    for pin, hashes in PINS[name]:
        assert hashes, f"{pin} has none"
        assert all(re.fullmatch("sha256:[0-9a-f]{64}", one) for one in hashes), pin
        assert pin.url is None, pin
    assert "://" not in FILES[name]
