"""Scores 1 where the number after `Answer:` is the one that most samples of the
group gave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from gavel import Reference, Sample, Score, Verdict, abstain, after_last, judger, last_number


@dataclass
class Params:
    """What a run may say under `params`."""

    prefix: str = "Answer:"
    """What stands before the answer."""
    min_votes: int = 2
    """How many samples must agree, or the whole group has no score."""

    # Once, before any sample; an error stops a run before it starts.
    def __post_init__(self) -> None:
        if self.min_votes < 1:
            raise ValueError("`min_votes` must be at least 1")


# Once a group: one verdict a sample, in their order.
@judger(pure=True, score_range=(0, 1))
def judge(samples: Sequence[Sample], reference: Reference, params: Params) -> list[Verdict]:
    answers = [number_after(sample.response, params.prefix) for sample in samples]
    winner, votes = most_common(answers)
    if votes < params.min_votes:
        return [abstain(f"no answer was given {params.min_votes} times") for _ in samples]
    metrics = {"agreement": votes / len(samples)}
    if reference.ground_truth is not None:
        metrics["majority_correct"] = winner == last_number(reference.ground_truth)
    return [Score(answer == winner, dict(metrics), f"the majority says {winner}") for answer in answers]


def most_common(answers: Sequence[float | None]) -> tuple[float | None, int]:
    """The answer that was given most often, the first of equals, and how often."""
    counts = Counter(answer for answer in answers if answer is not None)
    return counts.most_common(1)[0] if counts else (None, 0)


def number_after(response: str, prefix: str) -> float | None:
    """The last number on the line after the last `prefix`."""
    line = after_last(response, prefix)
    return None if line is None else last_number(line)
