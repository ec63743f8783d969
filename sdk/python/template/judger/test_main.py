"""Tests of the rule itself: `python3 -m pytest`, on this machine."""

import pytest
from gavel import Abstained, Reference, Sample, Score
from main import Params, judge, most_common


def test_the_majority_wins() -> None:
    group = [Sample("Answer: 4"), Sample("Answer: 5"), Sample("Answer: 4.0"), Sample("?")]
    verdicts = judge(group, Reference(), Params())
    assert [verdict.value for verdict in verdicts if isinstance(verdict, Score)] == [1, 0, 1, 0]


def test_a_group_that_does_not_agree_has_no_score() -> None:
    verdicts = judge([Sample("Answer: 1"), Sample("Answer: 2")], Reference(), Params())
    assert all(isinstance(verdict, Abstained) for verdict in verdicts)


def test_of_equals_the_first_wins() -> None:
    assert most_common([None, 2, 1, 1, 2]) == (2, 2)
    assert most_common([None]) == (None, 0)


def test_no_votes_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Params(min_votes=0)
