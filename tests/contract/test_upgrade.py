"""Data directories of earlier releases open, with every graph, version and value, and with what was promised."""

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.serving import Service, serving
from tests.upgrade.write import answers

WRITTEN = sorted((Path(__file__).parents[1] / "upgrade").glob("*.tar.xz"))


@pytest.mark.parametrize("archive", WRITTEN, ids=lambda path: path.name.partition(".")[0])
def test_it_opens(archive: Path, tmp_path: Path) -> None:
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path / "data", filter="data")
    said = json.loads((tmp_path / "data" / "said.json").read_text())
    (tmp_path / "data" / "said.json").unlink()
    with serving(tmp_path / "data") as service:
        names = [graph["name"] for graph in service.http.get("/v1/graphs").json()["graphs"]]
        assert names == sorted(said["graphs"])
        for name, versions in said["graphs"].items():
            assert answers(service.http, name, name == "shift") == versions[-1]
        a_key_from_before_changes_nothing_again(service, said["last"])
        for name, versions in said["graphs"].items():
            for version in versions:
                restored_to(service, name, version)
    with serving(tmp_path / "data") as service:  # what this release has added to it is read as well
        for name, versions in said["graphs"].items():
            restored_to(service, name, versions[-1])


def a_key_from_before_changes_nothing_again(service: Service, last: dict[str, Any]) -> None:
    """Its body was written down in another form then, so that it cannot be told from a different one."""
    headers = {"Idempotency-Key": last["key"]}
    again = service.http.patch("/v1/graphs/numbers/capacities", json=last["body"], headers=headers)
    assert (again.status_code, again.json()["code"]) == (409, "idempotency_conflict")
    assert service.http.get("/v1/graphs/numbers").json()["version"] == last["version"]


def restored_to(service: Service, name: str, version: dict[str, Any]) -> None:
    restored = service.http.post(f"/v1/graphs/{name}:restore", json={"version": version["version"]})
    assert restored.status_code == 200, restored.text
    found = answers(service.http, name, name == "shift")
    assert found | {"version": version["version"]} == version
