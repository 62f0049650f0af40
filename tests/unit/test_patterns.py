"""Every regular expression of the sources is linear: each is given long texts made to send it back and forth.

They are found by reading the sources, so a new one is tried as well. The patterns of pydantic and of Arrow are run by
engines without backtracking, so they need no test.
"""

import ast
import re
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ("service", "gpu_engine", "clients/python/src")
N_CHARS = 6 * 1024
TOO_LONG_S = 0.0025
TRIES = 30
"""What a machine takes away comes in bursts of some milliseconds; a slow pattern is slow each time."""
CALLS = {"compile", "search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn"}


def patterns_of(source: str) -> Iterator[str]:
    """What is given to functions of `re`. A pattern that is put together at run time cannot be read: ValueError."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "re":
            raise ValueError(f"line {node.lineno}: write re.compile, which is looked for here")
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CALLS):
            continue
        if isinstance(node.func.value, ast.Name) and node.func.value.id == "re":
            pattern = node.args[0]
            if not (isinstance(pattern, ast.Constant) and isinstance(pattern.value, str | bytes)):
                raise ValueError(f"line {node.lineno}: this pattern is no literal string")
            yield pattern.value if isinstance(pattern.value, str) else pattern.value.decode()


@cache
def found() -> list[str]:
    paths = [path for folder in SOURCES for path in sorted((ROOT / folder).rglob("*.py"))]
    sources = [source for path in paths if "import re\n" in (source := path.read_text()) or "from re " in source]
    return sorted({pattern for source in sources for pattern in patterns_of(source)})


def examples(pattern: str) -> set[str]:
    """Characters of the pattern itself, alone and beside each other, are what its parts stop at or run over."""
    literal = [char for char in dict.fromkeys(re.sub(r"\\[A-Za-z]", "", pattern)) if char.isprintable()]
    parts = [
        *literal,
        *re.findall(r"[A-Za-z_\"]{2,}|[:/]{2,}", pattern),
        "a",
        "0",
        " ",
        "\n",
        "\0",
        "é",
        "a://",
        "a://b:",
    ]
    return {*parts, *(one + other for one in parts for other in parts)}


def too_slow(pattern: str, n_chars: int, seconds: float) -> str | None:
    """What a text of `n_chars` repeats that takes the pattern longer than this each time; None if there is none."""
    compiled = re.compile(pattern)
    ways = [compiled.search, compiled.fullmatch, *([] if compiled.match("") else [compiled.split])]
    for piece in sorted(examples(pattern)):
        whole = (piece * (n_chars // len(piece) + 1))[:n_chars]
        for text in (whole, whole + "\0"):
            for look in ways:
                if all(takes(look, text) > seconds for _ in range(TRIES)):
                    return piece
    return None


def takes(look: Callable[[str], object], text: str) -> float:
    began = time.process_time()
    look(text)
    return time.process_time() - began


def test_the_patterns_are_found() -> None:
    assert len(found()) > 8
    assert any("hr_" in pattern for pattern in found())
    with pytest.raises(ValueError, match="line 2"):
        list(patterns_of("import re\nre.compile('a' + b)"))
    with pytest.raises(ValueError, match="line 1"):
        list(patterns_of("from re import compile\ncompile('a')"))


@pytest.mark.parametrize("pattern", found())
def test_patterns_are_linear(pattern: str) -> None:
    """Linear work takes half a millisecond on an idle machine, quadratic work five and more."""
    assert too_slow(pattern, N_CHARS, TOO_LONG_S) is None


@pytest.mark.parametrize("pattern", [r"\w+://", r"(a|b)*\s+x", r"://[^@]*@", r"(\w+://[^\s/:@]*:)[^\s@]+(?=@)"])
def test_a_quadratic_pattern_is_noticed(pattern: str) -> None:
    assert too_slow(pattern, N_CHARS, TOO_LONG_S) is not None
