"""Rewards, judgers, tasksets, tools, agents, advantages and samplers for Gavel, written in Python.

A reward is one function in `main.py` of the plugin's folder:

    from gavel import Reference, Sample, last_number, reward

    @reward(pure=True, score_range=(0, 1))
    def score(sample: Sample, reference: Reference) -> float:
        return float(last_number(sample.response) == float(reference.require_ground_truth()))

`gavel plugin build` makes it a component. `gavel plugin test` runs its cases in
the sandbox that training uses. `Sample` and `Reference` can also be made from
plain values, to test the function with plain pytest.
"""

from . import chat, policy
from .advantages import Estimates, Group
from .answers import after_last, last_boxed, last_number, last_tag
from .exports import advantage, agent, judger, reward, sampler, taskset
from .reference import Reference
from .sample import CallEnding, EndedCall, FinishReason, Function, Media, Message, Role, Sample, ToolCall, Trajectory
from .samplers import Draws, EndedGroup, Request
from .task import Answer, Task
from .tools import final_state, schema, tool
from .verdict import (
    Abstained,
    Credit,
    InvalidInput,
    NotCalled,
    NoVerdict,
    PriorVerdict,
    Score,
    Unavailable,
    Verdict,
    abstain,
)

__all__ = [
    "Abstained",
    "Answer",
    "CallEnding",
    "Credit",
    "Draws",
    "EndedCall",
    "EndedGroup",
    "Estimates",
    "FinishReason",
    "Function",
    "Group",
    "InvalidInput",
    "Media",
    "Message",
    "NoVerdict",
    "NotCalled",
    "PriorVerdict",
    "Reference",
    "Request",
    "Role",
    "Sample",
    "Score",
    "Task",
    "ToolCall",
    "Trajectory",
    "Unavailable",
    "Verdict",
    "abstain",
    "advantage",
    "after_last",
    "agent",
    "chat",
    "final_state",
    "judger",
    "last_boxed",
    "last_number",
    "last_tag",
    "policy",
    "reward",
    "sampler",
    "schema",
    "taskset",
    "tool",
]
