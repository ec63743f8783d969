"""Samplers: the request that the host makes, and the forms of an answer."""

from __future__ import annotations

import unittest
from types import SimpleNamespace as Host
from typing import Any

from gavel import Draws, EndedGroup, Request, sampler
from gavel.exports import exported
from gavel.samplers import Dataset, EndedSample, _as_draws, _as_refusals, _place, _request
from gavel.states import _as_state


class Integer:
    """An integer as numpy has them, which is no `int`."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


def host() -> Any:
    samples = [
        Host(outcome=Host(name="SCORED"), reward=0.5, metrics=[Host(name="math", value=1.0)]),
        Host(outcome=Host(name="OUT_OF_BUDGET"), reward=None, metrics=[]),
    ]
    group = Host(
        draw=7, task=Host(dataset=1, row=2), task_id="t", data_source=None, version=3, samples=samples, dropped=None
    )
    datasets = [Host(rows=4, weight=None), Host(rows=3, weight=0.5)]
    return Host(step=5, seed=9, datasets=datasets, ended=[group], wanted=2, next_draw=8, state=b"s")


class Samplers(unittest.TestCase):
    def test_a_request_of_the_host_is_read(self) -> None:
        samples = [EndedSample(0.5, "scored", {"math": 1.0}), EndedSample(None, "out-of-budget")]
        group = EndedGroup(7, 6, samples, 1, "t", None, 3)
        expected = Request([Dataset(4), Dataset(3, 0.5)], 2, [group], b"s", 9, 5, 8)
        self.assertEqual(_request(host()), expected)
        self.assertEqual((expected.rows, group.rewards, group.mean_reward), (7, [0.5], 0.5))
        self.assertIsNone(EndedGroup(0, 0, [EndedSample(None)]).mean_reward)

    def test_a_task_is_a_row_or_a_dataset_and_its_row(self) -> None:
        datasets = [Dataset(4), Dataset(3)]
        self.assertEqual([_place(task, datasets) for task in (0, 3, 4, 6, (1, 2))], [(0, 0), (0, 3), (1, 0), (1, 2), (1, 2)])
        self.assertEqual(_place(7, datasets), (2, 0))
        self.assertEqual([_place(task, datasets) for task in (Integer(4), (1, Integer(2)))], [(1, 0), (1, 2)])
        for wrong in (-1, 1.5, "0", (1,), (0, -1), None, 1 << 64, (1 << 32, 0), (0, 1 << 64)):
            with self.assertRaisesRegex(TypeError, "draws a row, or a tuple of a dataset and a row"):
                _place(wrong, datasets)

    def test_an_answer_is_tasks_or_more(self) -> None:
        self.assertEqual(_as_draws((1, 2)), Draws([1, 2]))
        made = Draws([], {3: "too-hard"}, b"s")
        self.assertEqual(_as_draws(made), made)
        for wrong in (None, 1, "no", {"draws": []}):
            with self.assertRaisesRegex(TypeError, "a sampler returns a list of tasks"):
                _as_draws(wrong)

    def test_refusals_are_reasons_by_draw(self) -> None:
        self.assertEqual(_as_refusals({3: "too-hard", Integer(4): "solved"}), [(3, "too-hard"), (4, "solved")])
        for wrong in (None, [3], {"3": "too-hard"}, {-1: "too-hard"}, {3: None}):
            with self.assertRaisesRegex(TypeError, "the `refusals` "):
                _as_refusals(wrong)

    def test_a_state_is_bytes(self) -> None:
        self.assertEqual([_as_state(state) for state in (b"s", bytearray(b"s"), memoryview(b"s"))], [b"s"] * 3)
        for wrong in (None, 3, "s", [115]):
            with self.assertRaisesRegex(TypeError, "the `state` is bytes, not "):
                _as_state(wrong)

    def test_a_function_takes_what_the_host_gives(self) -> None:
        exported.pop("sampler", None)
        with self.assertRaisesRegex(TypeError, "a sampler takes any of `request`, `params`"):
            sampler(lambda groups: [])


if __name__ == "__main__":
    unittest.main()
