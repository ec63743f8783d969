"""Tests of the rule itself: `python3 -m pytest`, on this machine."""

import pytest
from gavel import Abstained, Reference, Sample, Score
from main import Params, judge, scores


def test_the_shortest_right_answer_wins() -> None:
    assert scores([True, True, False], [10, 30, 5], 0.2) == [1, 0.8, 0]
    assert scores([False], [10], 0.2) == [0]


def test_a_group_is_judged_in_its_order() -> None:
    group = [Sample("Answer: 5"), Sample("Answer: 4"), Sample("It is\nAnswer: 4")]
    verdicts = judge(group, Reference(answer="4"), Params(penalty=0.5))
    assert [verdict.value for verdict in verdicts if isinstance(verdict, Score)] == [0, 1, 0.5]


def test_a_group_without_ground_truth_has_no_score() -> None:
    verdicts = judge([Sample("Answer: 1"), Sample("Answer: 2")], Reference(), Params())
    assert all(isinstance(verdict, Abstained) for verdict in verdicts)


def test_a_penalty_above_one_is_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        Params(penalty=2)
