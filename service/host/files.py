"""How many files the machine lets this service have open."""

from typing import Final

from service.host.refusal import CannotServe
from service.open_files import OWN_FILES, raise_limit

FEWEST: Final = OWN_FILES + 112
"""Files that leave a few callers, who may take two each, and what Redis keeps for itself."""


def take_files() -> None:
    """Let what is started here open as many files as the machine allows. Raises `CannotServe` if these are too few."""
    allowed = raise_limit()  # for Redis as well, which takes as many connections as it may open files
    if allowed < FEWEST:
        raise CannotServe(f"a process may have {allowed} files open here, and {FEWEST} are needed: see ulimit -n")
