"""A short run of the fuzzer of the format parsers; `make fuzz` is the long one."""

from collections import Counter

import pytest

from tests.fuzz.formats import SEEDS, checker, outcome

# NumPy says so of a damaged header before it reads or refuses it.
pytestmark = pytest.mark.filterwarnings("ignore:Reading `.npy` or `.npz` file:UserWarning")


@pytest.mark.parametrize("media_type", SEEDS)
def test_the_seeds_are_well_formed(media_type: str) -> None:
    assert [outcome(data, media_type) for data in SEEDS[media_type]] == ["read"] * len(SEEDS[media_type])


@pytest.mark.parametrize("media_type", SEEDS)
def test_damaged_documents_are_read_or_refused(media_type: str) -> None:
    checker(media_type, 200, 1, Counter())()


def test_an_npy_header_that_is_no_literal_is_refused() -> None:
    inner = b"\x93NUMPY\x01\x00F\x00"
    whole = inner + b"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }  \n" + bytes(32)
    assert outcome(2 * inner + whole, "application/x-npy") == "invalid_body"
