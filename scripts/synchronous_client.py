"""``python -m scripts.synchronous_client``: make the synchronous half of the Python client from the asynchronous one.

What `AsyncClient` and its handles do is written once, in the modules ``_async_*.py`` of the client. From each of them
this program makes the module of the same name without ``_async``: the same program without ``async`` and ``await``.
With ``--check`` it writes nothing, and fails if a module is not what would be made of its twin. The callers, which have
the connections, differ between threads and tasks: they are written by hand.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent.parent / "clients/python/src/headrace"
BY_HAND: Final = frozenset({"_async_caller.py", "_async_reading.py"})

REPLACED: Final = (
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\b__a(enter|exit|iter|next)__", r"__\1__"),
    (r"\baclose\b", "close"),
    (r"\baiter_lines\b", "iter_lines"),
    (r"\benter_async_context\b", "enter_context"),
    (r"\basyncio\b", "time"),
    (r"\b[Aa]n `Async(?=[A-Z])", "a `"),
    (r"\bStopAsync(?=[A-Z])", "Stop"),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\b_async_", "_"),
    (r"\ban asynchronous iterator\b", "an iterator"),
    (r"\basynchronous\b", "synchronous"),
    (r"\bbetween tasks\b", "between threads and forks"),
)
"""What is replaced by what, in this order: words of Python, of its library, of httpx and of ours."""

RUFF: Final = (sys.executable, "-m", "ruff")


def twins() -> list[Path]:
    """The modules that others are made from."""
    return sorted(path for path in FOLDER.glob("_async_*.py") if path.name not in BY_HAND)


def made(twin: Path) -> str:
    """The synchronous module, formatted."""
    text = twin.read_text()
    for pattern, replacement in REPLACED:
        text = re.sub(pattern, replacement, text)
    text = f"# Made by scripts/synchronous_client.py from {twin.name}: change that one.\n{text}"
    for command in (("check", "--select", "I", "--fix", "--quiet"), ("format", "--quiet")):
        words = [*RUFF, *command, "--stdin-filename", str(FOLDER / _name(twin)), "-"]
        text = subprocess.run(words, input=text, stdout=subprocess.PIPE, text=True, check=True).stdout
    return text


def _name(twin: Path) -> str:
    return twin.name.replace("_async_", "_")


def main() -> None:
    stale: list[str] = []
    for twin in twins():
        own, text = twin.with_name(_name(twin)), made(twin)
        if sys.argv[1:] != ["--check"]:
            own.write_text(text)
        elif own.read_text() != text:
            stale.append(own.name)
    if stale:
        sys.exit(f"{', '.join(stale)}: changed by hand, or older than its twin; make format makes it anew")


if __name__ == "__main__":
    main()
