"""An agent that answers, checks its answer, and answers again where it was wrong."""

from __future__ import annotations

from dataclasses import dataclass

from gavel import Task, agent, policy

CHECK = "Check your answer. If it is right, say RIGHT, and nothing else. If not, answer again."


@dataclass
class Params:
    """The parameters that a run may set."""

    checks: int = 1
    """How often the policy checks its answer, at most."""

    # Once, before any attempt; an error stops a run before it starts.
    def __post_init__(self) -> None:
        if not 0 <= self.checks <= 10:
            raise ValueError(f"`checks` must be from 0 to 10, not {self.checks}")


# Once an attempt. The text is the response that rewards read.
@agent(pure=True)
def attempt(task: Task, params: Params) -> str:
    conversation = policy.Conversation(task.prompt, functions=policy.functions())
    answer = say(conversation)
    for _ in range(params.checks):
        conversation.append(CHECK)
        checked = say(conversation)
        if checked.strip() == "RIGHT":
            break
        answer = checked
    return answer


def say(conversation: policy.Conversation) -> str:
    """What the policy says, after the calls of tools that it asks for."""
    while True:
        turn = conversation.generate()
        answers = policy.answer(turn)
        if not answers:
            return turn.text
        conversation.append(answers)
