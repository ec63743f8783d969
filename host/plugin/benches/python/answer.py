"""Scores 1 where the response's last line is the ground truth."""

import json
import re

from wit_world import exports
from wit_world.exports.lifecycle import Info, ScoreRange
from wit_world.imports.types import Score, Verdict_Scored

pattern = None


class Lifecycle(exports.Lifecycle):
    def init(self, params_json):
        global pattern
        json.loads(params_json)
        pattern = re.compile(r"^answer:\s*(.*?)\s*$", re.IGNORECASE | re.MULTILINE)
        return Info("answer", "1", True, ScoreRange(0.0, 1.0))


class Reward(exports.Reward):
    def score(self, sample, reference):
        found = pattern.findall(sample.response())
        return Verdict_Scored(Score(float(found[-1:] == [reference.ground_truth()]), [], [], None, None))
