"""The record of a job has one owner: `service.store.jobs`. Read from the sources."""

import ast
from collections.abc import Iterator
from pathlib import Path

SERVICE = Path(__file__).parents[2] / "service"
OWNER = SERVICE / "store" / "jobs"
NAMES = SERVICE / "store" / "keys.py"

KEYS = frozenset({"job", "jobs", "waiting", "events", "outcome", "idempotency"})
"""Of `Keys`: what makes the name of a part of the record."""

FIELDS = frozenset(
    {
        *(b"status", b"progress", b"attempts", b"reply", b"envelope", b"finished_at"),
        *(b"result", b"result_blob", b"file", b"file_blob"),
    }
)
"""Of the hash; what is read from Redis has them as bytes."""


def named(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of each key or field of the record in a source."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in KEYS and _is_keys(node.value):
            yield node.lineno, f"keys.{node.attr}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, bytes) and node.value in FIELDS:
            yield node.lineno, repr(node.value)


def _is_keys(value: ast.expr) -> bool:
    """`keys`, `self._keys`, `dispatcher.keys`, `Keys(prefix)`."""
    if isinstance(value, ast.Call):
        value = value.func
    name = value.attr if isinstance(value, ast.Attribute) else value.id if isinstance(value, ast.Name) else ""
    return name.lower().endswith("keys")


def test_no_other_file_names_its_keys_or_fields() -> None:
    others = [path for path in sorted(SERVICE.rglob("*.py")) if OWNER not in path.parents and path != NAMES]
    assert len(others) > 100
    wrong = [
        f"{path.relative_to(SERVICE)}:{line} names {name}" for path in others for line, name in named(path.read_text())
    ]
    assert wrong == []


def test_the_owner_names_all_of_them() -> None:
    """Else a key that is renamed would be looked for in vain."""
    found = {name for path in OWNER.glob("*.py") for _, name in named(path.read_text())}
    assert {f"keys.{key}" for key in KEYS} <= found


def test_names_are_found_in_every_form() -> None:
    source = 'keys.job(x), self._keys.outcome(x), Keys("p:").waiting(x), row[b"reply"], metrics.job(x), keys.graph(x)'
    assert {name for _, name in named(source)} == {"keys.job", "keys.outcome", "keys.waiting", "b'reply'"}
