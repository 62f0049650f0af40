"""When a repair is tried, with times that are given instead of measured."""

import numpy as np
import pytest

from gpu_engine.incremental import RETRY_LATE, RETRY_SOON, Patience

COLD_MS = 10.0


def patience(least: int = 10) -> Patience:
    return Patience(least=least, cold_ms=COLD_MS)


def tried(of: Patience, n_broken: int, times: int = 2 * RETRY_LATE) -> int:
    """How many of so many repairs would be tried, if none taught anything."""
    return sum(of.allows(n_broken) for _ in range(times))


def test_what_is_new_is_tried() -> None:
    assert patience().allows(1_000_000)
    assert Patience().allows(1_000_000)


def test_a_size_that_is_always_slow_is_given_up_soon() -> None:
    given = patience()
    repairs = 0
    while given.allows(1000):
        given.learn(1000, float("inf"))
        repairs += 1
    assert repairs == 2


def test_few_broken_ends_are_repaired_until_their_own_size_is_slow() -> None:
    given = patience(least=10)
    for _ in range(100):
        given.learn(2, 1e6)
        given.learn(15, 1e6)
    assert tried(given, 4) == 2 * RETRY_LATE
    assert tried(given, 2) == 2
    assert tried(given, 15) == 2


def test_where_few_broken_ends_end() -> None:
    """From there on a size that nobody has tried is held against smaller ones."""
    given = patience(least=20)
    for _ in range(100):
        given.learn(8, 1e6)
    assert tried(given, 19) == 2 * RETRY_LATE
    assert tried(given, 20) == 2


def test_a_trifle_more_is_borne_where_few_ends_are_broken() -> None:
    given = Patience(least=10, cold_ms=0.5)
    for _ in range(100):
        given.learn(2, 1e6)
        given.learn(15, 1e6)
    assert tried(given, 2) == 2 * RETRY_LATE
    assert tried(given, 15) < 2 * RETRY_LATE


def test_larger_sizes_that_are_new_are_given_up_with_a_smaller_one() -> None:
    given = patience()
    for _ in range(100):
        given.learn(1000, 1e6)
    assert not given.allows(1000)
    assert not given.allows(100_000)
    assert given.allows(100)


def test_a_larger_size_that_is_fast_is_repaired_all_the_same() -> None:
    given = patience()
    given.learn(100_000, 1)
    for _ in range(100):
        given.learn(1000, 1e6)
    assert given.allows(100_000)


def test_one_bad_repair_among_good_ones_is_borne() -> None:
    given = patience()
    for _ in range(20):
        given.learn(1000, 0.5 * COLD_MS)
        given.learn(1000, 1000 * COLD_MS)
        for _ in range(3):
            assert given.allows(1000)
            given.learn(1000, 0.5 * COLD_MS)


@pytest.mark.parametrize(("share", "one_of"), [(1.3, RETRY_SOON), (5, RETRY_LATE)])
def test_what_is_given_up_is_tried_now_and_then(share: float, one_of: int) -> None:
    given = patience()
    for _ in range(100):
        given.learn(1000, share * COLD_MS)
    assert tried(given, 1000, 2 * RETRY_LATE) == 2 * RETRY_LATE // one_of


def test_what_is_given_up_comes_back_once_it_is_fast() -> None:
    given = patience()
    for _ in range(100):
        given.learn(1000, 1e6)
    repairs = 0
    for _ in range(4 * RETRY_LATE):
        if given.allows(1000):
            given.learn(1000, 0.2 * COLD_MS)
            repairs += 1
    assert repairs > RETRY_LATE // 2


def test_what_is_given_up_may_come_back_as_the_cold_solve_gets_slower() -> None:
    given = patience()
    for _ in range(100):
        given.learn(1000, 1e6)
    given.cold_ms = 10 * COLD_MS
    assert given.allows(1000)


@pytest.mark.parametrize("seed", range(5))
def test_times_that_scatter_about_less_than_a_cold_solve_are_borne(seed: int) -> None:
    """Repairs of acyclic dense networks take 0.4 to 2 times as long as a cold solve, 0.85 in the mean."""
    rng, given, repairs = np.random.default_rng(seed), patience(), 0
    for _ in range(2000):
        if given.allows(1000):
            given.learn(1000, COLD_MS * 0.75 * rng.lognormal(0, 0.5))
            repairs += 1
    assert repairs > 1500


def test_sparse_networks_begin_with_a_guess() -> None:
    sparse, dense = patience(), patience()
    sparse.start_with(100_000, 400_000)
    dense.start_with(100_000, 1_600_000)
    assert tried(sparse, 500) == 2
    assert tried(sparse, 499) == tried(dense, 500) == 2 * RETRY_LATE


def test_a_restored_state_learns_nothing_before_its_first_cold_solve() -> None:
    """There is no time to hold its repairs against; afterwards it learns as any other."""
    given = Patience(least=10)
    for _ in range(5):
        given.learn(20, 3.0)
        given.learn(20, float("inf"))
    assert tried(given, 20) == 2 * RETRY_LATE
    given.cold_ms = COLD_MS
    assert tried(given, 20) == 2 * RETRY_LATE
    for _ in range(10):
        given.learn(20, float("inf"))
    assert tried(given, 20) < 2 * RETRY_LATE
