"""Updates and questions of all kinds, one behind the other, on a real service: each answer is what a model of the graph
and other solvers say. `tests/sequences` draws them by a seed."""

import pytest

from tests.cases import cases
from tests.sequences.runs import run_one
from tests.shared_services import Services

SEQUENCES = cases(120)


@pytest.mark.parametrize("first", range(0, SEQUENCES, 20))
def test_every_answer_of_a_sequence_is_right(services: Services, first: int) -> None:
    with services.lent() as service:
        for seed in range(first, first + 20):
            run_one(service.http, f"g{seed % 3}", seed)
