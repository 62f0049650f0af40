"""Libraries that stay out of the service's processes."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType


class _Missing(MetaPathFinder):
    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if fullname.partition(".")[0] == "pandas":
            raise ModuleNotFoundError("pandas is left out of this process", name=fullname)


def leave_out_pandas() -> None:
    """Have imports of pandas fail in this process. It is installed, since OR-tools asks for it, and Arrow imports it
    with the first scalar that it makes: 0.4 s and 44 MB in each process, to look for objects that none of ours has."""
    sys.meta_path.insert(0, _Missing())
