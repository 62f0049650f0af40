"""The list of mutants, which lies beside this module in files of TOML."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
CLIENT: Final = "clients/python/src/"
"""Where the modules of the client's own distribution lie."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mistake: in ``file``, the text ``source`` becomes ``replacement``."""

    name: str
    file: str
    """Path from the root of the repository, as are those of ``tests``."""
    source: str
    replacement: str
    tests: tuple[str, ...]
    """What should notice it, as pytest takes it: a file, or FILE::TEST where the whole file takes long."""

    @property
    def module(self) -> str:
        return self.file.removeprefix(CLIENT).removesuffix(".py").replace("/", ".")

    def applied_to(self, text: str) -> str:
        """The text of the file with the mistake in it. Raises ValueError unless ``source`` is there exactly once."""
        count = text.count(self.source)
        if count != 1:
            raise ValueError(f"{self.name}: its source text is {count} times in {self.file}")
        return text.replace(self.source, self.replacement)


def read_all() -> list[Mutant]:
    """Every mutant, by file of the list and in its order."""
    tables = [tomllib.loads(path.read_text()) for path in sorted(FOLDER.glob("*.toml"))]
    rows = [(name, row) for table in tables for name, row in table.items()]
    return [Mutant(name, row["file"], row["source"], row["replacement"], tuple(row["tests"])) for name, row in rows]
