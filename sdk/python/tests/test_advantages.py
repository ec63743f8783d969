"""Advantages: the numbers that the host gives, and the forms of an answer."""

from __future__ import annotations

import unittest
from types import SimpleNamespace as Host
from typing import Any

from gavel import Estimates, Group, advantage
from gavel.advantages import Part, ScoredSample, TokenCredit, Trajectory, _as_estimates, _form, _group, of_samples
from gavel.exports import exported


def host() -> Any:
    span = Host(start=0, end=2)
    trajectory = Host(
        index=1,
        finish_reason=Host(name="MAX_TURNS"),
        prompt_tokens=3,
        response_tokens=5,
        learned=[span, Host(start=3, end=4)],
        credit=[Host(tokens=span, value=0.5)],
        penalty=0.25,
        logprob=-2.0,
        oldest_version=4,
        newest_version=None,
    )
    part = Host(reward="math", weight=2.0, score=None, counted=0.5, metrics=[Host(name="m", value=3.0)])
    sample = Host(index=7, reward=1.0, parts=[part], trajectories=[trajectory])
    return Host(task_id="t", data_source="gsm8k", speaker="", samples=[sample])


class Advantages(unittest.TestCase):
    def test_a_group_of_the_host_is_read(self) -> None:
        trajectory = Trajectory(5, [(0, 2), (3, 4)], 1, "max-turns", 3, [TokenCredit(0, 2, 0.5)], 0.25, -2.0, 4, None)
        part = Part("math", None, 2.0, 0.5, {"m": 3.0})
        expected = Group([ScoredSample(1.0, [trajectory], [part], 7)], "t", "gsm8k")
        self.assertEqual(_group(host()), expected)
        self.assertEqual(expected.rewards, [1.0])

    def test_a_value_is_spread_over_learned_tokens(self) -> None:
        trajectory = Trajectory(5, [(0, 2), (3, 4)])
        self.assertEqual(trajectory.learned_tokens, 3)
        self.assertEqual(trajectory.spread(0.5), [0.5, 0.5, 0.0, 0.5, 0.0])

    def test_an_answer_has_one_of_three_forms(self) -> None:
        self.assertEqual(_form(1), ("Sample", 1.0))
        self.assertEqual(_form((1, 2)), ("Trajectories", [1.0, 2.0]))
        self.assertEqual(_form([[1], []]), ("Tokens", [[1.0], []]))
        self.assertEqual(_as_estimates([[1.0]]), Estimates([[1.0]]))
        self.assertEqual(_as_estimates(Estimates([], b"s")).state, b"s")
        for wrong in (None, 1.0, "no", {"advantages": []}):
            with self.assertRaisesRegex(TypeError, "returns a list of advantages for each group"):
                _as_estimates(wrong)

    def test_each_group_is_estimated_by_itself(self) -> None:
        groups = [Group([ScoredSample(1.0), ScoredSample(3.0)]), Group([ScoredSample(5.0)])]
        self.assertEqual(of_samples(groups, lambda group: group.rewards), [[1.0, 3.0], [5.0]])

    def test_a_function_takes_what_the_host_gives(self) -> None:
        exported.pop("advantage", None)
        with self.assertRaisesRegex(TypeError, "an advantage takes any of `groups`, `step`, `state`, `params`"):
            advantage(lambda samples: [])


if __name__ == "__main__":
    unittest.main()
