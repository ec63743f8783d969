"""An agent that draws several answers at once, and lets the policy choose the
best of them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gavel import Message, Task, agent, policy


@dataclass
class Params:
    n: int = 4
    """The number of answers."""

    def __post_init__(self) -> None:
        if self.n < 2:
            raise ValueError(f"`n` must be at least 2, not {self.n}")


@agent(pure=True)
def attempt(task: Task, params: Params) -> str:
    answering = [policy.Conversation(task.prompt, speaker="answer") for _ in range(params.n)]
    turns = policy.generate_all(answering)
    answers = [turn.text for turn in turns if isinstance(turn, policy.Turn)]
    if not answers:
        raise RuntimeError("the policy gave no answer")
    if len(answers) == 1:
        return answers[0]
    listed = "\n\n".join(f"Answer {number}:\n{answer}" for number, answer in enumerate(answers, 1))
    question = f"These answers were given:\n\n{listed}\n\nCheck each of them. End with the number of the best one."
    try:
        verdict = policy.Conversation([*task.prompt, Message("user", [question])], speaker="verify").generate().text
    except policy.Exhausted:
        return answers[0]
    numbers = [int(digits) for digits in re.findall(r"\d+", verdict) if 1 <= int(digits) <= len(answers)]
    return answers[numbers[-1] - 1] if numbers else answers[0]
