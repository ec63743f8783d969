"""Scores 1 where the response's last line is an expression equal to the ground truth, or to one of its known forms."""

import gc
import json
import sys
import types

# CPython for WASI has no ctypes, which sympy asks for the size of a C long.
ctypes = types.ModuleType("ctypes")
ctypes.c_long = int
ctypes.sizeof = lambda kind: 4
sys.modules["ctypes"] = ctypes

import sympy  # noqa: E402
from sympy.parsing.sympy_parser import parse_expr  # noqa: E402
from wit_world import exports  # noqa: E402
from wit_world.exports.lifecycle import Info, ScoreRange  # noqa: E402
from wit_world.imports.types import Score, Verdict_Scored  # noqa: E402

# sympy imports much of itself at its first use, and after the snapshot there are no files.
sympy.simplify(parse_expr("(x**2 - 1)/(x - 1)") - parse_expr("x + 1"))

forms = {}


class Lifecycle(exports.Lifecycle):
    def init(self, params_json):
        params = json.loads(params_json)
        # Printing in `init` prevents a snapshot, so the benchmark can measure a component without one.
        if params.get("loud"):
            print("ready")
        for power in range(2, 10):
            expression = parse_expr(f"(x + 1)**{power}")
            forms[sympy.srepr(sympy.expand(expression))] = expression
        # A collection would touch, and therefore copy, all memory of a fresh instance.
        gc.collect()
        gc.freeze()
        gc.disable()
        return Info("symbolic", "1", True, ScoreRange(0.0, 1.0))


class Reward(exports.Reward):
    def score(self, sample, reference):
        answer = parse_expr(sample.response().rsplit("Answer:", 1)[-1].strip())
        truth = parse_expr(reference.ground_truth())
        known = forms.get(sympy.srepr(sympy.expand(answer)))
        same = known == truth or sympy.expand(answer - truth) == 0
        return Verdict_Scored(Score(float(same), [], [], None, None))
