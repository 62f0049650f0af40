"""Small bodies that stand for much: every one of `tests.bombs` alone, many at once, and three archives that lie."""

import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from tests.attacks.house import Attack, House
from tests.attacks.wire import Answer
from tests.bombs import NPZ, Bomb, archive, declaring, graphs, npy_head, patches

AT_ONCE: Final = 16
TRIES: Final = 3
"""What misses a goal is sent again: the machine may have been busy with something else."""

Target = tuple[str, str]
PATCH: Final[Target] = ("PATCH", "/v1/graphs/city/capacities")
PUT: Final[Target] = ("PUT", "/v1/graphs/bomb")


def sizes_that_lie() -> Bomb:
    """Some hundred bytes that declare 910 MB."""
    members = dict.fromkeys(("tail", "head", "capacity"), npy_head((910 << 20) // 24))
    body = declaring(archive(members, zipfile.ZIP_DEFLATED), (910 << 20) // 3)
    return Bomb("npz that declares 910 MB", NPZ, body, frozenset({"invalid_body", "too_large"}))


def run(house: House) -> None:
    targets: list[tuple[Target, Callable[[], Iterator[Bomb]]]] = [(PATCH, patches), (PUT, graphs)]
    for target, bombs in targets:
        for bomb in bombs():
            alone(house, target, bomb)
    together(house, "three npz that declare 910 MB each", PUT, 3 * [sizes_that_lie()], is_bomb=True)
    for target, bombs in targets:
        all_bombs = list(bombs())
        name = f"all {len(all_bombs)} bombs of {target[0]}, {AT_ONCE} at once"
        together(house, name, target, all_bombs, is_bomb=False)


def alone(house: House, target: Target, bomb: Bomb) -> None:
    """One row for each try; the last one is what counts."""
    for number in range(TRIES):
        again = f", try {number + 1}" if number else ""
        with house.attack(f"{target[0]} {bomb.name}{again}", is_bomb=True) as attack:
            attack.row |= {"sent_bytes": len(bomb.body), "try": number + 1}
            attack.row["refused_ms"] = round(1e3 * refused(attack, target, bomb).took_s, 1)
        if not house.results.rows[-1]["missed"]:
            return


def together(house: House, name: str, target: Target, bombs: list[Bomb], *, is_bomb: bool) -> None:
    with house.attack(name, is_bomb=is_bomb) as attack, ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(lambda bomb: refused(attack, target, bomb), bombs))
        slowest_ms = round(1e3 * max(answer.took_s for answer in answers), 1)
        attack.row["refused_ms" if is_bomb else "slowest_ms"] = slowest_ms
    with house.attack(f"after {name}") as attack:
        refused(attack, target, bombs[0])


def refused(attack: Attack, target: Target, bomb: Bomb) -> Answer:
    """Anything but a refusal of the right code is a fault; who finds the place full is refused as well."""
    answer = attack.send(*target, bomb.body, bomb.headers)
    if answer.code not in bomb.codes | {"rate_limited"}:
        attack.broken.append(f"{bomb.name} was answered {answer.said}")
    return answer
