"""Draws the rows in order and leaves out those that were solved when they were last drawn, whose groups it refuses."""

from __future__ import annotations

from dataclasses import dataclass

from gavel import Draws, Request, sampler

SOLVED, UNSOLVED = b"1", b"0"
"""What the state has for a row."""


@dataclass
class Params:
    """The keys of `[plugin.{{name}}.params]` in a run's configuration."""

    solved: float = 1.0
    """The mean reward from which a group has solved its task."""

    # Once, before any step; an error stops a run before it starts.
    def __post_init__(self) -> None:
        if not self.solved > 0:
            raise ValueError(f"`solved` must be above 0, not {self.solved}")


# For the next tasks of a run, and for groups that ended, before they are trained on.
@sampler(pure=True)
def draw(request: Request, params: Params) -> Draws:
    solved = bytearray(request.state or UNSOLVED * request.rows)
    refusals = {}
    for group in request.ended:
        reward = group.mean_reward
        if reward is None:
            continue
        is_solved = reward >= params.solved
        solved[group.row : group.row + 1] = SOLVED if is_solved else UNSOLVED
        if is_solved:
            refusals[group.draw] = "solved"
    rows = unsolved(bytes(solved))
    draws = [rows[(request.next_draw + number) % len(rows)] for number in range(request.wanted)]
    return Draws(draws, refusals, bytes(solved))


def unsolved(solved: bytes) -> list[int]:
    """The rows that are not solved; all rows once there are none."""
    rows = [row for row in range(len(solved)) if solved[row : row + 1] != SOLVED]
    return rows or list(range(len(solved)))
