"""An agent that thinks, acts and observes in plain text, as in ReAct
(https://arxiv.org/abs/2210.03629), for policies without a format for tool calls."""

from __future__ import annotations

import re

from gavel import Message, Task, ToolCall, agent, policy

_ACTION = re.compile(r"Action:(?P<name>.*?)Action Input:(?P<input>.*?)(?:Observation:|$)", re.DOTALL)


@agent(pure=True)
def attempt(task: Task) -> str:
    system = Message("system", [_instructions(policy.functions())])
    conversation = policy.Conversation([system, *task.prompt])
    number = 0
    while True:
        text = conversation.generate(stop=["Observation:"]).text
        if "Final Answer:" in text:
            return text.rpartition("Final Answer:")[2].strip()
        action = _ACTION.search(text)
        if action is None:
            conversation.append("Observation: that was neither an action nor a final answer")
            continue
        call = ToolCall(f"action-{number}", action["name"].strip(), action["input"].strip())
        number += 1
        (observed,) = policy.call([call])
        conversation.append(f"Observation: {observed.text}")


def _instructions(functions: list[policy.Function]) -> str:
    lines = ["Answer the question. You may use these tools:"]
    lines += [f"- {each.name}: {each.description} Its input is JSON of this schema: {each.parameters}" for each in functions]
    lines += [
        "",
        "Write in this form, and stop after each input:",
        "",
        "Thought: what to do next",
        "Action: a tool",
        "Action Input: its input",
        "Observation: what the tool answers",
        "",
        "Once you know the answer, write:",
        "",
        "Final Answer: the answer",
    ]
    return "\n".join(lines)
