"""The pages of docs/ that tell a story: their programs run from top to bottom, and print what stands beside them."""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
from headrace import Client, Scenario

from scripts.notebooks import EXAMPLES

ROOT = EXAMPLES.parent
DOCS = ROOT / "docs"
STORIES = [DOCS / f"{name}.md" for name in ("quick-start", "concepts", "engine", "running")]
STORIES += sorted((DOCS / "how-to").glob("*.md"))
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.S)
SHOWN = re.compile(r"print\(.*\)  # (.+)")
ADDRESS = "http://127.0.0.1:8080"


def test_programs_leave_nothing_where_the_sources_are(beside_examples: Path) -> None:
    for name in ("left.json", "examples/left.svg"):
        Path(name).write_text("")
        assert (beside_examples / name).exists()
        assert not (ROOT / name).exists()


@pytest.mark.parametrize("page", STORIES, ids=lambda page: page.stem)
def test_stories(page: Path, service_url: str, beside_examples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All programs of a page share their names, as somebody has them who types them one after the other. In a clone Git
    passes over what they write."""
    names: dict[str, Any] = {}
    for language, text in BLOCK.findall(page.read_text()):
        if language == "python":
            exec(compile(text.replace(ADDRESS, service_url), page.name, "exec"), names)
            printed = capsys.readouterr().out.splitlines()
            assert set(SHOWN.findall(text)) <= set(printed), printed
    assert "Client" in names
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    left = {f"/{path.name}{'/' * path.is_dir()}" for path in beside_examples.iterdir()} - {"/examples/"}
    assert {path for path in left if not any(fnmatch(path, pattern) for pattern in ignored)} == set()


def test_the_commands_about_a_spreadsheet(service_url: str, beside_examples: Path) -> None:
    """In the order in which they stand, with the file that the program before them writes."""
    page = (DOCS / "how-to" / "logistics.md").read_text()
    (commands,) = [text for language, text in BLOCK.findall(page) if language == "console"]
    program = next(text for language, text in BLOCK.findall(page) if "roads.csv" in text)
    roads = re.search(r'Path\("roads.csv"\).write_text\(\s*"(.+)"\s*\)', program)
    assert roads is not None
    (beside_examples / "roads.csv").write_text(roads[1].replace("\\n", "\n"))
    environment = os.environ | {"HEADRACE_URL": service_url}
    lines = [line.removeprefix("$ ") for line in commands.splitlines()]
    assert len(lines) == 4
    for line in lines:
        command = line.replace("headrace ", f"{shlex.quote(sys.executable)} -m service.cli ", 1)
        done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (line, done.stderr)
    assert json.loads(done.stdout)["tail"][:2] == ["north", "north"]


@pytest.mark.usefixtures("beside_examples")
@pytest.mark.parametrize("heading", ["What-if", "Closure study"])
def test_programs_of_the_rest_page(heading: str, service_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Other sections of docs/api.md are run beside the tests of their questions."""
    section = (DOCS / "api.md").read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    program = next(text for language, text in BLOCK.findall(section) if language == "python")
    names = {"Client": Client, "Scenario": Scenario, "pathlib": pathlib}
    exec(compile(program.replace(ADDRESS, service_url), "api.md", "exec"), names)
    assert capsys.readouterr().out.strip()


def test_bodies_of_the_rest_page_are_json() -> None:
    """One or several in a block; some are a member of an object, and dots stand for what is left out."""
    blocks = [text for language, text in BLOCK.findall((DOCS / "api.md").read_text()) if language == "json"]
    for block in blocks:
        text = re.sub(r",\s*\.\.\.", "", block.replace("{...}", "{}").replace("[...]", "[]")).strip()
        text = "{" + text + "}" if text.startswith('"') else text
        while text:
            _, end = json.JSONDecoder().raw_decode(text)
            text = text[end:].strip()
    assert len(blocks) > 35


def test_the_quick_start_shows_what_its_script_prints() -> None:
    """`test_examples.py` runs the script; its last lines name the streets of the cut."""
    page = (DOCS / "quick-start.md").read_text()
    streets = re.findall(r"^  (.+), which lets [\d,]+ through$", page, re.M)
    assert f"print(found.cut.edges)  # {tuple(streets)}" in page
    assert "examples/town.py" in page


def test_the_packages_of_the_readme_bring_what_its_commands_begin_with() -> None:
    """A clone needs git, and a minimal Debian has none of these."""
    text = (ROOT / "README.md").read_text()
    (packages,) = re.findall(r"`apt install ([^`]+)`", text)
    shown = "".join(block for language, block in BLOCK.findall(text) if language == "console")
    programs = {*re.findall(r"^(?:\$ )?(\w+) ", shown, re.M)}
    assert programs == {"make", "curl"}
    assert programs | {"git", "python3-venv"} == {*packages.split()}


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl to run them with")
def test_the_commands_of_the_readme(service_url: str) -> None:
    """Each command of its shell section, as it stands there, but at the address of the tests' service."""
    section = (ROOT / "README.md").read_text().partition("\n## From the shell\n")[2]
    commands = re.split(r"^\$ ", BLOCK.findall(section)[0][1], flags=re.M)[1:]
    assert len(commands) == 3
    for command in commands:
        words = shlex.split(command.replace("\\\n", "").replace("localhost:8080", service_url))
        run = subprocess.run([*words, "--fail-with-body", "--silent"], capture_output=True, text=True)
        assert run.returncode == 0, run.stdout
