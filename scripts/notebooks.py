"""Make the notebooks of `examples/` from the programs beside them: ``python scripts/notebooks.py``.

A program that has cells, which begin with ``# %%`` and a title, gets a notebook without outputs.
"""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[1] / "examples"
CELL = re.compile(r"^# %% (.+)\n", re.M)
BESIDE = re.compile(r"Path\(__file__\)\.with_name\((.+?)\)")
"""A notebook has no `__file__`, and runs in its own folder."""


def programs() -> list[Path]:
    """Those that have cells."""
    return sorted(path for path in EXAMPLES.glob("*.py") if CELL.search(path.read_text()))


def notebook(program: Path) -> str:
    """The notebook of a program, as the text of its file (nbformat 4.5)."""
    text = program.read_text()
    about = ast.get_docstring(ast.parse(text)) or ""
    _, *parts = CELL.split(BESIDE.sub(r"Path(\1)", text))
    cells = [("markdown", f"# {program.stem.replace('_', ' ').capitalize()}\n\n{about}")]
    for title, code in zip(parts[::2], parts[1::2], strict=True):
        cells += [("markdown", f"## {title}"), ("code", code.strip())]
    if "matplotlib" not in text:  # which shows its figures by itself
        cells.append(("markdown", f"![What was drawn]({program.stem}.png)"))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {
        "cells": list(_cells(cells)),
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _cells(cells: list[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    for at, (kind, text) in enumerate(cells):
        cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{at}", "metadata": {}}
        if kind == "code":
            cell |= {"execution_count": None, "outputs": []}
        yield cell | {"source": text.splitlines(keepends=True)}


def main() -> None:
    for program in programs():
        program.with_suffix(".ipynb").write_text(notebook(program))


if __name__ == "__main__":
    main()
