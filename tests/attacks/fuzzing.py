"""The fuzzer of `tests.fuzz` against the service under attack."""

from pathlib import Path

from tests.attacks.house import House
from tests.fuzz import api


def run(house: House, cases: int, seed: int, folder: Path) -> None:
    done = 0
    while done < cases:
        with house.attack(f"fuzzer, seed {seed}") as attack:
            row = api.one_round(house.service, seed, folder / "seen.json")
            attack.row |= {name: row[name] for name in ("cases", "slowest_s", "answers")}
            if row["failed"]:
                attack.broken.append("a check of the fuzzer failed")
        done, seed = done + house.results.rows[-1].get("cases", cases), seed + 1
