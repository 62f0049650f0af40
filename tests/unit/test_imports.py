"""Imports point one way.

    headrace (client) --HTTP--> service.api --> service.queue, service.store
                                                    |  the process boundary
                                                service.worker --> gpu_engine.engine --> gpu_engine.cpu, .cuda

    service.cli --> service.host, which starts both kinds of process and the embedded Redis server

Read from the sources, so that imports inside functions and under TYPE_CHECKING count as well.
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = {"gpu_engine": ROOT, "service": ROOT, "headrace": ROOT / "clients" / "python" / "src"}

WEB = ("fastapi", "starlette", "uvicorn")
ENGINES = ("gpu_engine.cpu", "gpu_engine.cuda")
SOLVING = (*ENGINES, "gpu_engine.engine", "gpu_engine.checks")
"""What only a worker needs: an API process never holds a flow."""
STARTING = ("service.cli", "service.host", "service.cluster")
"""What starts the others."""
RUNNING = ("service.worker", "service.api")
"""The two kinds of process. They meet in Redis only."""
OTHERS = tuple(
    f"service.{name}" for name in ("protocol", "telemetry", "models", "store", "queue", "webhooks", "errors")
)
CORE = ("types", "errors", "footprint", "networks", "text", "checks")

FORBIDDEN: Mapping[str, tuple[str, ...]] = {
    "headrace": ("service", "gpu_engine", "redis", "pyarrow", "numba", "pydantic", *WEB),
    "gpu_engine": ("service", "headrace", "redis", "httpx", "pydantic", *WEB),
    **{f"gpu_engine.{name}": (*ENGINES, "gpu_engine.engine", "gpu_engine.formats") for name in CORE},
    "gpu_engine.text": ("gpu_engine.networks",),
    "gpu_engine.formats": (*SOLVING, "gpu_engine.generators", "numba"),
    "gpu_engine.generators": (*SOLVING, "gpu_engine.formats"),
    "gpu_engine.cpu": ("gpu_engine.cuda", "gpu_engine.formats", "cupy"),
    "gpu_engine.cuda": ("gpu_engine.formats",),  # edge flows are derived on the host, by the CPU engine
    "service.protocol": ("service", "gpu_engine", "redis", *WEB),
    "service.errors": ("service", "redis", *WEB),
    "service.settings": (*RUNNING, *STARTING, *OTHERS, "gpu_engine", "redis", *WEB),
    "service.connections": ("service", "gpu_engine", "redis", *WEB),
    "service.console": ("service", "gpu_engine", "redis", *WEB),
    "service.telemetry": (*RUNNING, *STARTING, "service.queue", "service.store", "gpu_engine", "redis", *WEB),
    "service.models": (*RUNNING, *STARTING, "service.queue", "redis", *SOLVING),
    "service.store": (*RUNNING, *STARTING, "service.models", "service.queue", *SOLVING, *WEB),
    "service.queue": (*RUNNING, *STARTING, "service.models", *SOLVING, *WEB),
    "service.webhooks": (*RUNNING, *STARTING, "service.models", "service.queue", "gpu_engine", *WEB),
    "service.api": (*STARTING, "service.worker", "redis", *SOLVING),
    "service.api.http": ("service.store", "service.queue", "service.models", "gpu_engine"),
    "service.worker": (*STARTING, "service.api", "service.models", "headrace", *ENGINES, *WEB),
    "service.host": (*RUNNING, "service.cli", *SOLVING),
    "service.cluster": ("service.api", "service.cli", "service.host", "headrace", *ENGINES, *WEB),
}
"""A module, and all below it, imports none of these or what is below them. A module may import its own package."""

NEVER_REACHED: Mapping[str, tuple[str, ...]] = {
    "service.api.app": ("service.worker", "numba", *SOLVING),
    "service.host.supervisor": ("numba", *SOLVING),
    "service.worker.process": ("service.api", "service.models", "headrace", *WEB),
    "gpu_engine.checks.certificate": ENGINES,
    "gpu_engine.checks.flows": ENGINES,
    "gpu_engine.checks.costs": (*ENGINES, "gpu_engine.mincost"),
    "gpu_engine.checks.circulations": (*ENGINES, "gpu_engine.circulations"),
    "gpu_engine.checks.partitions": (*ENGINES, "gpu_engine.partition"),
    "gpu_engine.checks.pairs": (*ENGINES, "gpu_engine.pairs"),
    "gpu_engine.checks.cut_trees": (*ENGINES, "gpu_engine.pairs"),
    "gpu_engine.checks.global_cuts": (*ENGINES, "gpu_engine.pairs"),
    "gpu_engine.checks.contractions": (*ENGINES, "gpu_engine.pairs"),
    "gpu_engine.checks.levels": (*ENGINES, "gpu_engine.closures"),
    "gpu_engine.checks.domains": (*ENGINES, "gpu_engine.closures"),
    "gpu_engine.checks.chains": (*ENGINES, "gpu_engine.closures"),
    "gpu_engine.checks.nested": (*ENGINES, "gpu_engine.parametric"),
    "gpu_engine.checks.reductions": (*ENGINES, "gpu_engine.pairs"),
    "gpu_engine.checks.series": (*ENGINES, "gpu_engine.pairs"),
    "gpu_engine.checks.throughput": (*ENGINES, "gpu_engine.vertices"),
}
"""Not even through other modules of ours."""


def imports_of(source: str, module: str, *, is_package: bool = False) -> Iterator[tuple[int, str]]:
    """Line and dotted name of each import; ``from a import b`` gives a.b, which may be a name in a."""
    package = module if is_package else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def below(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(prefix + ".")


def read_modules() -> dict[str, list[tuple[int, str]]]:
    found = {}
    for package, folder in SOURCES.items():
        for path in sorted((folder / package).rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            is_package = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if is_package else parts)
            found[name] = list(imports_of(path.read_text(), name, is_package=is_package))
    return found


@pytest.fixture(scope="module")
def modules() -> dict[str, list[tuple[int, str]]]:
    return read_modules()


def reached_from(start: str, modules: Mapping[str, list[tuple[int, str]]]) -> dict[str, str]:
    """Every name imported by `start`, by what it imports of ours, and so on; each with who imports it."""
    reached: dict[str, str] = {}
    waiting = [start]
    seen = set()
    while waiting:
        module = waiting.pop()
        if module in seen:
            continue
        seen.add(module)
        for _, name in modules.get(module, []):
            reached.setdefault(name, module)
            # `a.b.c` runs a and a.b as well; the last part may be a name rather than a module
            parts = name.split(".")
            waiting += [".".join(parts[:i]) for i in range(1, len(parts) + 1)]
    return reached


@pytest.mark.parametrize("package", SOURCES)
def test_every_package_is_read(package: str, modules: Mapping[str, list[tuple[int, str]]]) -> None:
    assert sum(below(module, package) for module in modules) > 1


@pytest.mark.parametrize("package", FORBIDDEN)
def test_imports_point_one_way(package: str, modules: Mapping[str, list[tuple[int, str]]]) -> None:
    wrong = [
        f"{module}:{line} imports {name}"
        for module, imports in modules.items()
        if below(module, package)
        for line, name in imports
        if any(below(name, prefix) for prefix in FORBIDDEN[package]) and not below(name, package)
    ]
    assert wrong == []


@pytest.mark.parametrize("start", NEVER_REACHED)
def test_does_not_reach(start: str, modules: Mapping[str, list[tuple[int, str]]]) -> None:
    assert start in modules
    reached = reached_from(start, modules)
    wrong = [
        f"{importer} imports {name}"
        for name, importer in reached.items()
        if any(below(name, prefix) for prefix in NEVER_REACHED[start])
    ]
    assert wrong == []


def test_reads_every_form_of_import() -> None:
    source = """
import a.b, c as d
from e.f import g
from . import h
from ..i import j
def later():
    import k
"""
    names = [name for _, name in imports_of(source, "top.middle.leaf")]
    assert names == ["a.b", "c", "e.f.g", "top.middle.h", "top.i.j", "k"]
    assert [name for _, name in imports_of("from . import x", "top.middle", is_package=True)] == ["top.middle.x"]


def test_follows_what_it_imports() -> None:
    modules = {"a": [(1, "b.name")], "b": [(1, "c")], "c": [(1, "a")]}
    assert reached_from("a", modules) == {"b.name": "a", "c": "b", "a": "c"}
