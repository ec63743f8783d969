"""Sums, as a taskset of verifiers 0.4 that a Gavel reward scores.

    cd sdk/trainer-python/examples/verifiers
    PYTHONPATH=. vf-eval gavel-sums -n 4 -m MODEL --client.base-url URL --client.api-key-var KEY \
        --env.agent.harness.id null --env.agent.runtime.type subprocess --no-push
"""

import random

import verifiers.v1 as vf
from gavel_rl.verifiers import RewardFunction

__all__ = ["SumsTaskset"]


class SumData(vf.TaskData):
    answer: str


class SumTask(vf.Task[SumData]):
    # The reward reads the ground truth from `answer`, and the response from the trace.
    gavel = vf.reward(RewardFunction(["exact-answer"], limits={"cpu": "2s"}))


class SumsConfig(vf.TasksetConfig):
    num_tasks: int = 100


class SumsTaskset(vf.Taskset[SumTask, SumsConfig]):
    def load(self) -> list[SumTask]:
        draw = random.Random(0)
        pairs = [(draw.randint(10, 99), draw.randint(10, 99)) for _ in range(self.config.num_tasks)]
        return [
            SumTask(SumData(prompt=f"What is {a} + {b}? End with `Answer: N`.", answer=str(a + b)), self.config.task)
            for a, b in pairs
        ]
