"""Tests of the estimator itself: `python3 -m pytest`, on this machine."""

import pytest
from gavel import Group
from gavel.advantages import ScoredSample
from main import Params, estimate, of_group


def test_a_sample_is_compared_with_its_group() -> None:
    group = Group([ScoredSample(reward) for reward in (1.0, 0.0, 0.5)])
    assert estimate([group], Params(scale="none")) == [[0.5, -0.5, 0.0]]
    assert estimate([group], Params())[0] == pytest.approx([1.0, -1.0, 0.0], abs=1e-5)


def test_equal_rewards_teach_nothing() -> None:
    assert of_group([0.1] * 3, scaled=True) == [0.0] * 3
    assert of_group([1.0], scaled=True) == [0.0]


def test_an_unknown_scale_is_refused() -> None:
    with pytest.raises(ValueError, match="`scale` must be"):
        Params(scale="batch")
