"""Gavel's rewards in Python trainers.

A reward is a WebAssembly component. It runs in a sandbox, with limits of time and memory for each call::

    from gavel_rl import Reward, Scorer

    scorer = Scorer([Reward("exact-answer.wasm")])
    outcome = scorer.score_row(prompt="2 + 2?", response="Answer: 4", answer="4")
    print(outcome.reward)

A reward that hangs, crashes or runs out of memory never becomes a score: its outcome has another ``kind``, and
``reward`` is None.
"""

from gavel_rl._compiler import start_compilers_with_this_interpreter
from gavel_rl._native import Credit, Evaluation, GavelError, Outcome, ScoredBatch
from gavel_rl.function import build
from gavel_rl.reward import Reward
from gavel_rl.scorer import Scorer

start_compilers_with_this_interpreter()

__all__ = ["Credit", "Evaluation", "GavelError", "Outcome", "Reward", "ScoredBatch", "Scorer", "build"]
