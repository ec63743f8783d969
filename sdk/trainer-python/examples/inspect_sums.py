"""Sums, as a task of inspect-ai that a Gavel reward scores: `inspect eval inspect_sums.py --model MODEL`."""

import random

from gavel_rl.inspect_ai import gavel_scorer
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.solver import generate


@task
def sums(count: int = 100) -> Task:
    draw = random.Random(0)
    pairs = [(draw.randint(10, 99), draw.randint(10, 99)) for _ in range(count)]
    samples = [Sample(input=f"What is {a} + {b}? End with `Answer: N`.", target=str(a + b)) for a, b in pairs]
    return Task(dataset=samples, solver=generate(), scorer=gavel_scorer(["exact-answer"], limits={"cpu": "2s"}))
