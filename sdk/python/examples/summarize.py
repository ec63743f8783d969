"""An agent that calls tools like the built-in loop. Before its context is full,
the policy writes a summary, with which a new conversation begins."""

from __future__ import annotations

from dataclasses import dataclass

from gavel import Message, Task, agent, policy


@dataclass
class Params:
    reserve: int = 256
    """Tokens that are kept for the summary."""


@agent(pure=True)
def attempt(task: Task, params: Params) -> str:
    functions = policy.functions()
    conversation = policy.Conversation(task.prompt, functions=functions)
    while True:
        turn = conversation.generate(max_tokens=max(conversation.tokens_left - params.reserve, 1))
        if not turn.tool_calls:
            return turn.text
        answers = policy.call(turn.tool_calls)
        observed = sum(len(answer.text) for answer in answers)
        if conversation.tokens_left >= observed + 2 * params.reserve:
            conversation.append(answers)
            continue
        conversation.append("Your context is full. Sum up what you have found out, and what is left to do.")
        summary = f"What you found out so far:\n\n{conversation.generate().text}"
        conversation = policy.Conversation([*task.prompt, Message("user", [summary])], functions=functions)
