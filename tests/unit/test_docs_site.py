"""`make docs`: all pages are read without a warning, and each link between files leads somewhere.

The pages are not written here, which would take as long again.
"""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[\w-]+)?\)")
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "clients/*/*.md", "deploy/*.md", "examples/*.md", "benchmarks/*.md")
    for path in ROOT.glob(pattern)
)


def test_the_site_is_built_without_warnings(tmp_path: Path) -> None:
    command = ["-m", "sphinx", "--builder", "dummy", "--fail-on-warning", "--keep-going", "--nitpicky", "--quiet"]
    run = subprocess.run(
        [sys.executable, *command, "-c", "docs/site", ".", str(tmp_path)], cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr[-4000:]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_files_lead_somewhere(page: Path) -> None:
    """Sphinx looks at links to pages; here are those to any file, from pages that it may not know as well."""
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"


def test_the_pages_are_all_in_the_site() -> None:
    """A page that no list names is one that nobody finds; Sphinx warns of it if it reads the page at all."""
    index = (ROOT / "docs" / "index.md").read_text()
    named = {(ROOT / "docs" / f"{line}.md").resolve() for line in re.findall(r"^([\w./-]+)$", index, re.M)}
    assert set(PAGES) - {ROOT / "docs" / "index.md"} == named


def test_figures_are_drawn_as_their_program_says() -> None:
    """Where this fails, `python docs/site/drawings.py` has to follow."""
    drawn = runpy.run_path(str(ROOT / "docs" / "site" / "drawings.py"))
    figures = {draw.__name__.replace("_", "-"): draw().svg() for draw in drawn["DRAWINGS"]}
    assert figures == {path.stem: path.read_text() for path in (ROOT / "docs" / "images").glob("*.svg")}
