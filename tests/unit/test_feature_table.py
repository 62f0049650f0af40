"""The table of the README that compares systems: each "yes" of ours leads to a page and a section that are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SECTION = (ROOT / "README.md").read_text().partition("## Beside others\n")[2].partition("\n## ")[0]
LINES = [line for line in SECTION.splitlines() if line.startswith("|")]
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in LINES]
LINK = re.compile(r"\[(yes[^\]]*)\]\(([^)#]+)(?:#([^)]+))?\)")
WORDS = {"yes", "no", "part", "?", "LP", "itself"}


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("row", ROWS[2:], ids=lambda row: row[0])
def test_each_yes_is_linked(row: list[str]) -> None:
    feature, ours, *others = row
    if feature != "licence":
        assert set(others) <= WORDS
        assert ours == "no" or LINK.fullmatch(ours)
    for _, page, anchor in LINK.findall(ours):
        assert (ROOT / page).is_file()
        assert not anchor or anchor in anchors(ROOT / page)


def test_the_table_is_whole() -> None:
    assert len(ROWS) > 25
    assert {len(row) for row in ROWS} == {11}
    assert any(row[1] == "no" for row in ROWS), "a table without a no is an advertisement"
