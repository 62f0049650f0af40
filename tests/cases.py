"""How many random cases a test tries."""

import os
from typing import Final

VARIABLE: Final = "RANDOM_CASES"


def cases(most: int) -> int:
    """`most` if the environment has ``RANDOM_CASES=all``, as in ``make test RANDOM_CASES=all``; else half as many."""
    return most if os.environ.get(VARIABLE) == "all" else most // 2
