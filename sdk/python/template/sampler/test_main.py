"""Tests of the sampler itself: `python3 -m pytest`, on this machine."""

import pytest
from gavel import Draws, EndedGroup, Request
from gavel.samplers import Dataset, EndedSample
from main import Params, draw, unsolved


def test_a_solved_task_is_refused_and_left_out() -> None:
    group = EndedGroup(draw=4, row=1, samples=[EndedSample(1.0), EndedSample(1.0)])
    request = Request([Dataset(3)], wanted=2, ended=[group])
    assert draw(request, Params()) == Draws([0, 2], {4: "solved"}, b"010")


def test_once_all_are_solved_all_are_drawn() -> None:
    assert unsolved(b"0100") == [0, 2, 3]
    assert unsolved(b"11") == [0, 1]


def test_a_reward_that_every_group_has_is_refused() -> None:
    with pytest.raises(ValueError, match="`solved` must be"):
        Params(solved=0)
