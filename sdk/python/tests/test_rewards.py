"""The example of a reward, on the golden cases of the same reward in Rust."""

from __future__ import annotations

import importlib
import json
import sys
import unittest
from pathlib import Path
from typing import Any

from gavel import InvalidInput, Reference, Sample, Score, Trajectory
from gavel.exports import exported

_FOLDER = Path(__file__).parent.parent
sys.path.insert(0, str(_FOLDER / "examples"))

_CASES = _FOLDER.parent.parent / "plugins" / "final-state" / "cases.jsonl"


def cases() -> list[dict[str, Any]]:
    with _CASES.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    # Parameters are refused by the host's part of the SDK.
    return [row for row in rows if "refused" not in row["expect"]]


class FinalState(unittest.TestCase):
    def test_it_scores_as_in_rust(self) -> None:
        exported.pop("reward", None)
        module = importlib.import_module("final_state")
        self.assertGreater(len(cases()), 20)
        for row in cases():
            with self.subTest(row["case"]):
                expect, params = row.pop("expect"), module.Params(**row.pop("params", {"tool": "shop"}))
                sample = Sample(trajectories=[Trajectory(row.pop("response"), states=row.pop("states", None))])
                if expect.get("outcome") == "fault":
                    with self.assertRaises(InvalidInput) as raised:
                        module.score(sample, Reference(row), params)
                    self.assertIn(expect["reason"], str(raised.exception))
                    continue
                score = module.score(sample, Reference(row), params)
                assert isinstance(score, Score)
                self.assertEqual((score.value, score.metrics), (expect["score"], expect["metrics"]))
                self.assertEqual(score.payload, expect["payload"])
                self.assertIn(expect.get("reason", ""), score.note or "")
