"""Libraries that stay out of the service's processes."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import ModuleType
from typing import Final

UNUSED: Final = ("rich", "opentelemetry.sdk.metrics")
"""What structlog and redis import wherever it is installed, for tracebacks and figures that are not asked for here."""


class _Missing:
    """A finder that says of some modules, and of those below them, that they are not installed."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if any(fullname == name or fullname.startswith(f"{name}.") for name in self._names):
            raise ModuleNotFoundError(f"{fullname} is left out of this process", name=fullname)


def leave_out(*names: str) -> None:
    """Have imports of these modules fail in this process from now on."""
    sys.meta_path.insert(0, _Missing(names))


def leave_out_pandas() -> None:
    """It is installed, since OR-tools asks for it, and Arrow imports it with the first scalar that it makes: 0.4 s and
    44 MB in each process, to look for objects that none of ours has."""
    leave_out("pandas")


@contextmanager
def without(*names: str) -> Iterator[None]:
    """Imports of these modules fail meanwhile."""
    finder = _Missing(names)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def without_unused() -> AbstractContextManager[None]:
    """What is imported meanwhile does without `UNUSED`."""
    return without(*UNUSED)
