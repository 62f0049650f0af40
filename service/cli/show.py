"""What commands print: tables for people, or JSON whose numbers are exact, and never a number as text."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, TypeAlias

import typer

Columns: TypeAlias = Mapping[str, Sequence[object]]
"""Columns by their headings; all have one length."""

SHOWN: Final = 50
"""Rows of a long column that people get to see; JSON has all of them."""

UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


def as_json(content: object) -> str:
    """The content as JSON for programs, indented by two: a `Decimal` is written digit by digit, infinity is "inf"."""
    return _written(content, "\n")


def _written(value: object, line: str) -> str:
    if is_dataclass(value) and not isinstance(value, type):
        return _written(asdict(value), line)
    if isinstance(value, Mapping):
        return _block(
            "{}", [f"{json.dumps(str(key))}: {_written(part, _deeper(line))}" for key, part in value.items()], line
        )
    if isinstance(value, Sequence) and not isinstance(value, str):
        return _block("[]", [_written(part, _deeper(line)) for part in value], line)
    if isinstance(value, Decimal):
        return format(value, "f") if value.is_finite() else '"inf"'
    if isinstance(value, datetime):
        return json.dumps(moment(value))
    return json.dumps(value)


def _deeper(line: str) -> str:
    """How a line begins that is indented by two more; all stays on one line if that is how it is."""
    return line and f"{line}  "


def _block(brackets: str, parts: list[str], line: str) -> str:
    if not parts:
        return brackets
    if not line:
        return f"{brackets[0]}{', '.join(parts)}{brackets[1]}"
    inner = f",{line}  ".join(parts)
    return f"{brackets[0]}{line}  {inner}{line}{brackets[1]}"


def say_json(content: object) -> None:
    typer.echo(as_json(content))


def say_line(content: object) -> None:
    """JSON on one line, for one of many."""
    typer.echo(_written(content, ""))


def say_facts(facts: Mapping[str, object]) -> None:
    """One fact a line, its name before it; a fact that is None is left out."""
    known = {name: text(value) for name, value in facts.items() if value is not None}
    width = max(map(len, known), default=0)
    for name, shown in known.items():
        typer.echo(f"{name:<{width}}  {shown}")


def say_table(columns: Columns, empty: str = "") -> None:
    """Columns side by side, numbers to the right: at most `SHOWN` rows, and how many more there are."""
    n_rows = len(next(iter(columns.values())))
    if not n_rows:
        typer.echo(empty)
        return
    for row in _rows({name: column[:SHOWN] for name, column in columns.items()}):
        typer.echo(row)
    if n_rows > SHOWN:
        typer.echo(f"... and {n_rows - SHOWN} more: --json has all of them")


def _rows(columns: Columns) -> Iterator[str]:
    cells = []
    for name, column in columns.items():
        shown = [name.upper(), *map(text, column)]
        width = max(map(len, shown))
        is_number = all(isinstance(value, int | float | Decimal) for value in column)
        cells.append([cell.rjust(width) if is_number else cell.ljust(width) for cell in shown])
    for row in zip(*cells, strict=True):
        yield "  ".join(row).rstrip()


def text(value: object) -> str:
    """One value for people; what is not there is a dash."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Decimal):
        return format(value, "f") if value.is_finite() else "inf"
    return moment(value) if isinstance(value, datetime) else printable(str(value))


def printable(text: str) -> str:
    """The text with escapes in place of what a terminal obeys, such as another colour, a title, an end of a line, or
    another direction to write in: names are chosen by whoever has loaded the graph."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def moment(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def size(n_bytes: int) -> str:
    """Bytes as people read them."""
    amount, unit = float(n_bytes), 0
    while amount >= 1024 and unit < len(UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.1f} {UNITS[unit]}" if unit else f"{n_bytes} B"


def solved(answer: Any) -> dict[str, object]:
    """What every answer of a solver has, as facts."""
    proof = answer.certificate
    proven = f"yes: a cut of {text(proof.flow_across_cut)} proves it" if proof.valid else "NO"
    told = {"proven": proven, "found": f"{answer.mode}, by {answer.engine}", "version": answer.version}
    return told | ignored(answer)


def ignored(answer: Any) -> dict[str, object]:
    """A fact where edges have lower bounds that the answer does not keep."""
    return {"lower bounds": "ignored: headrace circulation keeps them"} if answer.lower else {}
