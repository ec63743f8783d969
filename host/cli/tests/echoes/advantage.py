"""Tells in its state what it sees, with numbers in quarters, and gives an advantage of each form."""

from gavel import Estimates, Group, advantage
from gavel.advantages import Part, Trajectory


@advantage(pure=True)
def estimate(groups: list[Group], step: int, state: bytes) -> Estimates:
    (group,) = groups
    seen = [f"{state.decode()} {step} {group.task_id} {group.data_source} [{group.speaker}]"]
    for sample in group.samples:
        seen += [part(each) for each in sample.parts] + [trajectory(each) for each in sample.trajectories]
    first, _, third = group.samples
    advantages = [[first.reward, [0.5, 1.5], [third.trajectories[0].spread(7)]]]
    return Estimates(advantages, " | ".join(seen).encode())


def quarters(value: float) -> int:
    return int(value * 4)


def part(one: Part) -> str:
    score = "none" if one.score is None else quarters(one.score)
    metrics = [f"{name}={quarters(value)}" for name, value in one.metrics.items()]
    return " ".join(map(str, [one.reward, quarters(one.weight), score, quarters(one.counted), *metrics]))


def trajectory(one: Trajectory) -> str:
    learned = [f"{start}-{end}" for start, end in one.learned]
    credit = [f"{each.start}-{each.end}:{quarters(each.value)}" for each in one.credit]
    versions = ["none" if version is None else version for version in (one.oldest_version, one.newest_version)]
    numbers = [one.index, one.prompt_tokens, int(one.finish_reason == "length"), one.response_tokens]
    sums = [quarters(one.penalty), quarters(one.logprob)]
    return " ".join(map(str, [*numbers, *learned, *credit, *sums, *versions]))
