"""An agent that calls tools like the built-in loop. Before its context is full,
the policy writes a summary, with which a new conversation begins."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gavel import Message, Task, agent, policy

ASK = "Your context is full. Sum up what you have found out, and what is left to do."
LEFT_OUT = "The context is full. This answer follows in the next one."


@dataclass
class Params:
    reserve: int = 256
    """Tokens that are kept for the summary."""


@agent(pure=True)
def attempt(task: Task, params: Params) -> str:
    functions = policy.functions()
    conversation = policy.Conversation(task.prompt, functions=functions)
    unread = 0
    while True:
        # A turn leaves room for a summary.
        turn = conversation.generate(max_tokens=max(conversation.tokens_left - unread - params.reserve, 1))
        answers = policy.answer(turn)
        if not answers:
            return turn.text
        # A token has at least one byte.
        unread = sum(len(answer.text.encode()) for answer in answers)
        left = conversation.tokens_left
        if left >= unread + 2 * params.reserve:
            conversation.append(answers)
            continue
        begin = Message("user", [summary(conversation, answers, fits=left >= unread + params.reserve)])
        conversation = policy.Conversation([*task.prompt, begin], functions=functions)
        unread = 0


def summary(conversation: policy.Conversation, answers: list[Message], fits: bool) -> str:
    """The text with which the new conversation begins. Answers that do not fit
    into this one follow the summary."""
    conversation.append(answers if fits else [replace(answer, content=[LEFT_OUT]) for answer in answers])
    conversation.append(ASK)
    found = conversation.generate().text
    carried = [] if fits else [f"\n\nA tool answered:\n\n{answer.text}" for answer in answers]
    return f"What you found out so far:\n\n{found}{''.join(carried)}"
