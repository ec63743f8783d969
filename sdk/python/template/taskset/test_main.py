"""Tests of the rows themselves: `python3 -m pytest`, on this machine."""

import pytest
from gavel import InvalidInput
from main import Params, row


def test_a_row_follows_from_its_index_and_the_seed() -> None:
    assert row(3, 1, Params()) == row(3, 1, Params())
    assert row(3, 1, Params()) != row(4, 1, Params())
    assert row(3, 1, Params()) != row(3, 2, Params())


def test_there_is_no_row_past_the_end() -> None:
    with pytest.raises(InvalidInput, match="no row 10"):
        row(10, 1, Params(length=10))


def test_ten_digits_are_refused() -> None:
    with pytest.raises(ValueError, match="`digits` must be"):
        Params(digits=10)
