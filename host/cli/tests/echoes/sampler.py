"""Tells in its state what it sees, with numbers in quarters, draws the last row and the first, and refuses a group."""

from __future__ import annotations

from gavel import Draws, EndedGroup, Request, sampler
from gavel.samplers import EndedSample


@sampler(pure=True)
def draw(request: Request) -> Draws:
    numbers = [request.step, request.seed, request.wanted, request.next_draw, request.rows]
    seen = [" ".join([request.state.decode(), *map(str, numbers)])]
    seen += [f"{dataset.rows} {quarters(dataset.weight or 0)}" for dataset in request.datasets]
    for group in request.ended:
        seen += [described(group), *map(sample, group.samples)]
    return Draws([request.rows - 1, (0, 0)], {request.ended[0].draw: "seen"}, " | ".join(seen).encode())


def quarters(value: float | None) -> str:
    return "none" if value is None else str(int(value * 4))


def described(group: EndedGroup) -> str:
    texts = [group.task_id, group.data_source or "none", group.version, group.dropped or "none"]
    return " ".join(map(str, [group.draw, group.row, group.dataset, *texts, quarters(group.mean_reward)]))


def sample(one: EndedSample) -> str:
    metrics = [f"{name}={quarters(value)}" for name, value in one.metrics.items()]
    return " ".join([one.outcome, quarters(one.reward), *metrics])
