"""Data directories of earlier releases open, with every graph, version and value, and with what was promised."""

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.serving import Service, serving
from tests.upgrade import richer
from tests.upgrade.write import answers

WRITTEN = sorted((Path(__file__).parents[1] / "upgrade").glob("*.tar.xz"))
OTHER_DIGESTS = {"a37304f"}
"""Releases that wrote down the body of an update in another form, so that it cannot be told from a different one."""

ALONE = {"HEADRACE_SEND_WEBHOOKS": "false"}
"""The receivers of webhooks have heard from the earlier release."""


@pytest.mark.parametrize("archive", WRITTEN, ids=lambda path: path.name.partition(".")[0])
def test_it_opens(archive: Path, tmp_path: Path) -> None:
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path / "data", filter="data")
    said = json.loads((tmp_path / "data" / "said.json").read_text())
    (tmp_path / "data" / "said.json").unlink()
    kept = said.get("richer", {"graphs": {}})
    with serving(tmp_path / "data", environment=ALONE) as service:
        names = [graph["name"] for graph in service.http.get("/v1/graphs").json()["graphs"]]
        assert names == sorted([*said["graphs"], *kept["graphs"]])
        for name, versions in said["graphs"].items():
            assert answers(service.http, name, name == "shift") == versions[-1]
        a_key_from_before_changes_nothing_again(service, said["last"], archive.name.partition(".")[0] in OTHER_DIGESTS)
        if "richer" in said:
            richer.check(service.http, kept)
        for name, versions in said["graphs"].items():
            for version in versions:
                restored_to(service, name, version)
    with serving(tmp_path / "data", environment=ALONE) as service:  # what this release has added to it is read as well
        for name, versions in said["graphs"].items():
            restored_to(service, name, versions[-1])
        if "richer" in said:
            richer.check(service.http, kept)


def a_key_from_before_changes_nothing_again(service: Service, last: dict[str, Any], is_of_another_form: bool) -> None:
    """It is in the log of its graph, and outlives the job that it stood for."""
    headers = {"Idempotency-Key": last["key"]}
    again = service.http.patch("/v1/graphs/numbers/capacities", json=last["body"], headers=headers)
    if is_of_another_form:
        assert (again.status_code, again.json()["code"]) == (409, "idempotency_conflict")
    else:
        assert (again.status_code, again.json()["version"]) == (200, last["version"])
    assert service.http.get("/v1/graphs/numbers").json()["version"] == last["version"]


def restored_to(service: Service, name: str, version: dict[str, Any]) -> None:
    restored = service.http.post(f"/v1/graphs/{name}:restore", json={"version": version["version"]})
    assert restored.status_code == 200, restored.text
    found = answers(service.http, name, name == "shift")
    assert found | {"version": version["version"]} == version
