"""``python -m tests.mutants``: puts each listed mistake into a copy of the sources: do the tests notice it?

Exit status 1 if one survives, is broken, or no longer fits the sources.
"""

import argparse
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from tests.mutants.listing import Mutant, read_all
from tests.mutants.tree import NO_TEST_FAILED, Tree, Verdict

FIRST_LIMIT_S: Final = 3600.0
"""For all the tests, without a mistake."""

SHOWN_LINES: Final = 30


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these instead of all")
    parser.add_argument("--jobs", type=int, default=1, help="copies of the sources that are worked on side by side")
    parser.add_argument("--limit-s", type=float, default=300.0, help="seconds for the tests of one mutant")
    parser.add_argument("--folder", type=Path, help="keep the copies here: the next run need not compile the solver")
    parser.add_argument("--list", action="store_true", help="only print the names")
    options = parser.parse_args()
    mutants = read_all()
    unknown = set(options.only or ()) - {mutant.name for mutant in mutants}
    if unknown:
        parser.error(f"there is no mutant {', '.join(sorted(unknown))}")
    if options.only:
        mutants = [mutant for mutant in mutants if mutant.name in options.only]
    if options.list:
        print("\n".join(mutant.name for mutant in mutants))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # and the tests end with us
    began = time.monotonic()
    with ExitStack() as stack:
        trees = list(_trees(stack, min(options.jobs, len(mutants)), options.folder))
        if not _is_sound(trees, mutants):
            return 1
        counts = _try_all(trees, mutants, options.limit_s)
    said = ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict)
    print(f"{len(mutants)} mutants in {time.monotonic() - began:.0f} s: {said}")
    return 0 if counts[Verdict.KILLED] == len(mutants) else 1


def _trees(stack: ExitStack, count: int, folder: Path | None) -> Iterator[Tree]:
    if folder is None:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mutants-")))
    for i in range(count):
        place = folder.resolve() / f"copy-{i}"
        place.mkdir(parents=True, exist_ok=True)
        yield Tree(place)


def _is_sound(trees: Sequence[Tree], mutants: Sequence[Mutant]) -> bool:
    """Whether the tests pass without a mistake: else their failure would say nothing."""
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    parts = [tests[i :: len(trees)] or tests[:1] for i in range(len(trees))]
    with ThreadPoolExecutor(len(trees)) as pool:
        for status, output in pool.map(Tree.compile_kernels, trees):
            if status != 0:
                print(f"the solver cannot be compiled:\n{_end_of(output)}")
                return False
        for status, output in pool.map(lambda tree, part: tree.run_tests(part, FIRST_LIMIT_S), trees, parts):
            if status != NO_TEST_FAILED:
                print(f"without any mutant the tests do not pass:\n{_end_of(output)}")
                return False
    return True


def _try_all(trees: Sequence[Tree], mutants: Sequence[Mutant], limit_s: float) -> Counter[Verdict]:
    free: SimpleQueue[Tree] = SimpleQueue()
    for tree in trees:
        free.put(tree)

    def one(mutant: Mutant) -> Verdict:
        tree, began = free.get(), time.monotonic()
        try:
            verdict, output = tree.try_mutant(mutant, limit_s)
        except ValueError as error:
            verdict, output = Verdict.BROKEN, str(error)
        finally:
            free.put(tree)
        print(f"{verdict.value:8} {time.monotonic() - began:5.1f} s  {mutant.name}", flush=True)
        if verdict is not Verdict.KILLED:
            print(_end_of(output), flush=True)
        return verdict

    with ThreadPoolExecutor(len(trees)) as pool:
        return Counter(pool.map(one, mutants))


def _end_of(output: str) -> str:
    return "\n".join(f"    {line}" for line in output.splitlines()[-SHOWN_LINES:])


if __name__ == "__main__":
    sys.exit(main())
