"""Tests that ask Git for the list of files are skipped where it has none."""

from pathlib import Path

import pytest

from tests.checkouts import lacking


def test_files_of_an_archive_are_no_clone(tmp_path: Path) -> None:
    (tmp_path / "Makefile").touch()
    assert "no " in str(lacking(tmp_path))


def test_a_machine_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert lacking(tmp_path) == "there is no git to list the files"
