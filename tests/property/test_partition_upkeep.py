"""When a partition is looked at as a whole, tried and made anew, by its changes and by what it cuts."""

from gpu_engine.partition.upkeep import (
    FEW,
    LOOSE,
    MOST_AT_ONCE,
    MOST_IN_ALL,
    MOST_WORSE,
    THOROUGH,
    UNTRIED,
    WORSE,
    Upkeep,
)

LINKS = 10_000


def begun(cut: int = 1_000) -> Upkeep:
    upkeep = Upkeep()
    upkeep.begin(LINKS, LINKS, cut)
    return upkeep


def test_too_much_at_once_or_in_all_is_made_anew() -> None:
    upkeep, most = begun(), int(MOST_AT_ONCE * LINKS)
    assert upkeep.change(most + 1, 0)
    upkeep = begun()
    assert [upkeep.change(most, 0) for _ in range(int(MOST_IN_ALL / MOST_AT_ONCE) + 1)] == [*10 * [False], True]
    few = Upkeep()
    few.begin(3, 3, 1)
    assert not few.change(FEW, 0)


def test_all_borders_are_looked_at_once_enough_has_changed_and_not_at_once_again() -> None:
    upkeep = begun()
    upkeep.change(int(THOROUGH * LINKS), 0)
    assert not upkeep.is_due
    upkeep.change(1, 0)
    assert upkeep.is_due
    upkeep.looked(1_000)
    assert not upkeep.is_due


def test_a_share_that_grows_is_looked_at_and_a_graph_that_grows_is_not() -> None:
    upkeep, more = begun(), 1 + int(1_000 * (1 + LOOSE))
    assert not upkeep.has_grown(more)  # nothing has changed
    upkeep.change(200, 0)
    assert upkeep.has_grown(more)
    upkeep.looked(more)
    upkeep.change(200, 0)
    assert not upkeep.has_grown(more)  # looking again would find as little
    assert upkeep.has_grown(int(more * (1 + LOOSE)) + 1)
    grown = begun()
    grown.change(200, 0)
    grown.weigh(LINKS)  # all edges weigh twice as much
    assert not grown.has_grown(2_000)


def test_a_trial_that_does_not_help_makes_the_next_one_rarer() -> None:
    upkeep = begun()
    upkeep.change(200, 0)
    at = [1 + int(1_000 * (1 + WORSE)), 1 + int(1_000 * (1 + MOST_WORSE))]
    assert upkeep.wants_trial(at[0])
    upkeep.tried(at[0], 1_000)  # it helped
    assert not upkeep.wants_trial(1_000)
    upkeep.change(200, 0)
    assert upkeep.wants_trial(at[0])
    upkeep.tried(1_000, 1_000)  # it did not
    upkeep.change(200, 0)
    assert not upkeep.wants_trial(at[0])
    assert upkeep.wants_trial(at[1])
    upkeep.tried(at[1], at[1])
    upkeep.change(int(UNTRIED * LINKS), 1)
    assert upkeep.wants_trial(0)
