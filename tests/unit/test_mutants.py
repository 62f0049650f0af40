"""The list of mutants fits the sources, and the runner tells what was noticed from what was not."""

import re
from pathlib import Path

import pytest

from tests.checkouts import needs_clone
from tests.mutants.listing import CLIENT, Mutant, read_all
from tests.mutants.tree import ROOT, Tree, Verdict

MUTANTS = read_all()
LIMIT_S = 120.0


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_fits_the_sources(mutant: Mutant) -> None:
    """Its text is there exactly once, what it becomes is Python, and the tests that should notice it are there."""
    assert mutant.file.startswith(("service/", "gpu_engine/", f"{CLIENT}headrace/"))
    text = (ROOT / mutant.file).read_text()
    changed = mutant.applied_to(text)
    assert changed != text
    compile(changed, mutant.file, "exec")
    assert mutant.tests
    for test in mutant.tests:
        file, _, name = test.partition("[")[0].partition("::")
        source = (ROOT / file).read_text()
        assert not name or re.search(rf"^def {name}\(", source, re.M), test


def test_names_and_mistakes_are_distinct() -> None:
    assert len(MUTANTS) >= 40
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert len({(mutant.file, mutant.source, mutant.replacement) for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("text", ["is nowhere", "return"])
def test_a_text_that_is_not_there_once_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="its source text is"):
        Mutant("m", "f.py", text, "", ()).applied_to("if x:\n    return 1\nreturn 2\n")


NOTICED = "def test_it() -> None:\n    assert __import__('service.telemetry.buckets') is None\n"
PASSED_OVER = "def test_it() -> None:\n    pass\n"
HANGS = "def test_it() -> None:\n    __import__('time').sleep(600)\n"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tree, Path]:
    """A copy of the sources, with the folder that it lies in: each mutant leaves it as it was."""
    folder = tmp_path_factory.mktemp("tree")
    return Tree(folder), folder


@needs_clone
@pytest.mark.parametrize(
    ("replacement", "test", "limit_s", "verdict"),
    [
        ("", NOTICED, LIMIT_S, Verdict.KILLED),
        ("", PASSED_OVER, LIMIT_S, Verdict.SURVIVED),
        ("", HANGS, 10.0, Verdict.KILLED),
        ("raise RuntimeError\n", PASSED_OVER, LIMIT_S, Verdict.BROKEN),
        ("", "def test_it() -> None:\n", LIMIT_S, Verdict.BROKEN),
        ("", "", LIMIT_S, Verdict.BROKEN),
    ],
    ids=["noticed", "passed over", "hangs", "cannot be imported", "cannot be collected", "no test"],
)
def test_verdicts(
    tree: tuple[Tree, Path], tmp_path: Path, replacement: str, test: str, limit_s: float, verdict: Verdict
) -> None:
    copy, folder = tree
    tests = f"{tmp_path.name}.py"  # one that no other test writes
    (folder / tests).write_text(test)
    path = folder / "service" / "telemetry" / "buckets.py"
    before, modified = path.read_text(), path.stat().st_mtime_ns
    line = before.splitlines(keepends=True)[-1]
    mutant = Mutant("m", "service/telemetry/buckets.py", line, replacement, (tests,))
    said, output = copy.try_mutant(mutant, limit_s)
    assert said is verdict, output
    assert (path.read_text(), path.stat().st_mtime_ns) == (before, modified)
