"""Attacks by command: ``python -m tests.attacks [--out FILE]``; ``make attacks``.

Starts `headrace serve` with its own Redis on two cores and attacks it there, one attack after the other, while
another process asks `/livez` and `/readyz` all the time, on fresh connections. The attacker, who would be on other
machines, has a lower priority than the service. A row for each attack goes to FILE:

- `status`: what was answered, `refused_ms`: until the refusal was read;
- `grew_mib` (of bombs) or `memory_mib`: what the API process and its parsers took more at their peaks;
- `livez_ms`, `readyz_ms`: the slowest of them; `control_ms`: of a server that does nothing else: of the machine;
- `cpu_ms`: of the API process and its parsers; `api_ms`: of the API process; `api_waited_ms`: it had work and no core;
- `missed`: goals of `house.GOALS`; `broken`: 5xx, hangs, lost processes, wrong answers. Exit status 1 for the latter.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.beside import NAMED_SIDE
from benchmarks.results import DIRECTORY, Results
from tests.attacks import bodies, connections, fuzzing, work
from tests.attacks.house import CITY, GOALS, HEAD, House, line, open_house

IDLE_S = 3.0


def attack_all(house: House, options: argparse.Namespace, folder: Path) -> None:
    house.service.http.put("/v1/graphs/city", json=CITY).raise_for_status()
    with house.attack("nothing"):
        time.sleep(IDLE_S)
    if "connections" in options.only:
        connections.run(house)
    if "bodies" in options.only:
        bodies.run(house)
    if "work" in options.only:
        work.run(house, options.seconds, options.named_side, folder)
    if "fuzz" in options.only:
        fuzzing.run(house, options.cases, options.seed, folder)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attacks", description=__doc__)
    kinds = ["connections", "bodies", "work", "fuzz"]
    parser.add_argument("--only", type=lambda text: text.split(","), default=kinds, help=f"of {','.join(kinds)}")
    parser.add_argument("--seconds", type=float, default=8, help="of each attack that goes on")
    parser.add_argument("--named-side", type=int, default=NAMED_SIDE, help="of the grid with named edges; 0: none")
    parser.add_argument("--cases", type=int, default=4000, help="of the fuzzer, about")
    parser.add_argument("--seed", type=int, default=9)
    parser.add_argument("--out", type=Path, default=DIRECTORY / "attacks.json")
    options = parser.parse_args()
    settings = {"goals": GOALS, "seconds": options.seconds, "cases": options.cases, "seed": options.seed}
    results = Results("attacks", settings, options.out)
    print(HEAD, flush=True)
    with tempfile.TemporaryDirectory(prefix="headrace-attacks-") as name, open_house(Path(name), results) as house:
        connections.check_files()
        attack_all(house, options, Path(name))
        log = house.log.read_text(errors="replace")
    missed = [row for row in results.rows if row["missed"]]
    broken = [row for row in results.rows if row["broken"]]
    print(f"\n{len(results.rows)} rows, {len(missed)} missed a goal, {len(broken)} are broken")
    for row in missed + broken:
        print(line(row))
    if broken:
        print("".join(f"{text}\n" for text in log.splitlines()[-40:]), file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
