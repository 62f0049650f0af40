"""Modules of the CUDA engine without CuPy: each is read anew beside stand-ins for what needs it."""

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import gpu_engine


def read_beside(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    stand_ins: Mapping[str, Any] | None = None,
    cupy: Mapping[str, object] | None = None,
) -> Any:
    """The module ``gpu_engine.cuda.NAME``, which imports from others of that package what ``stand_ins`` has under their
    names, and a `cupy` with these members."""
    members = {f"gpu_engine.cuda.{other}": its for other, its in (stand_ins or {}).items()} | {"cupy": cupy or {}}
    for other, its in members.items():
        stand_in = ModuleType(other)
        vars(stand_in).update(its)
        monkeypatch.setitem(sys.modules, other, stand_in)
    path = Path(gpu_engine.__file__).parent.joinpath("cuda", *name.split(".")).with_suffix(".py")
    spec = importlib.util.spec_from_file_location(f"{name.replace('.', '_')}_beside_stand_ins", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module
