"""The form of the sources: how long modules, classes and functions are, and how many modules lie beside the folders."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {"service": 8, "gpu_engine": 14}
"""How many modules may lie directly in each package, beside its folders."""

LINES_OF_A_MODULE = 350
LINES_OF_A_CLASS = 250
LINES_OF_A_FUNCTION = 60
"""Of its body: neither its parameters nor its docstring count."""

WHOLE = {"gpu_engine/cpu/pseudoflow.py"}
"""One algorithm, which is read as a whole."""


def modules() -> Iterator[tuple[str, str]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), path.read_text()


def test_modules_are_short() -> None:
    lengths = {name: len(text.splitlines()) for name, text in modules() if name not in WHOLE}
    assert {name: lines for name, lines in lengths.items() if lines > LINES_OF_A_MODULE} == {}


def test_classes_are_short() -> None:
    lengths = {
        f"{name}: {node.name}": (node.end_lineno or 0) - node.lineno + 1
        for name, text in modules()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
    }
    assert {name: lines for name, lines in lengths.items() if lines > LINES_OF_A_CLASS} == {}


def lines_of_body(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = function.body[1 if ast.get_docstring(function) is not None and len(function.body) > 1 else 0]
    return (function.end_lineno or 0) - first.lineno + 1


def is_kernel(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Kernels are one algorithm each, which calls to other functions would make slower."""
    return any("njit" in ast.unparse(decorator) for decorator in function.decorator_list)


def test_functions_are_short() -> None:
    lengths = {
        f"{name}: {node.name}": lines_of_body(node)
        for name, text in modules()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_kernel(node)
    }
    assert len(lengths) > 1000
    assert {name: lines for name, lines in lengths.items() if lines > LINES_OF_A_FUNCTION} == {}


@pytest.mark.parametrize(("package", "most"), PACKAGES.items())
def test_few_modules_lie_beside_the_folders(package: str, most: int) -> None:
    assert len([*(ROOT / package).glob("*.py")]) <= most


@pytest.mark.parametrize("package", PACKAGES)
def test_the_page_on_architecture_names_each_folder_and_module(package: str) -> None:
    """A reader who sees the tree for the first time finds in the table what each part of it is for."""
    table = (ROOT / "docs" / "architecture.md").read_text().partition("## Folders")[2].partition("\n## ")[0]
    named = {name.removeprefix(f"{package}/").rstrip("/") for name in re.findall(r"`([\w./]+)`", table)}
    inside = {
        path.name
        for path in (ROOT / package).iterdir()
        if path.name != "__init__.py" and (path.suffix == ".py" or (path / "__init__.py").exists())
    }
    assert inside - named == set()
