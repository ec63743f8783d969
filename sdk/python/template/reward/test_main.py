"""Tests of the rule itself: `python3 -m pytest`, on this machine."""

import pytest
from gavel import Abstained, InvalidInput, Reference, Sample, Score
from main import Params, number_after, score


def test_the_last_answer_counts() -> None:
    assert number_after("Answer: 1\nno, wait\nAnswer: $1,200", "Answer:") == 1200
    assert number_after("It is 4.", "Answer:") is None


def test_an_answer_near_enough_is_right() -> None:
    verdict = score(Sample("Answer: 3.14"), Reference(answer="3.14159"), Params(tolerance=0.01))
    assert isinstance(verdict, Score) and verdict.value == 1


def test_a_row_without_ground_truth_has_no_score() -> None:
    assert isinstance(score(Sample("Answer: 4"), Reference(), Params()), Abstained)
    with pytest.raises(InvalidInput, match="`Ada` is not a number"):
        score(Sample("Answer: 4"), Reference(answer="Ada"), Params())


def test_an_empty_prefix_is_refused() -> None:
    with pytest.raises(ValueError, match="`prefix` is empty"):
        Params(prefix="")
