"""A dataset of sums of two numbers."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from gavel import InvalidInput, taskset


@dataclass
class Params:
    """What a run may say in the dataset's name, such as `plugin:{{name}}.wasm?digits=3`."""

    digits: int = 2
    """Digits of each number, at most."""
    length: int = 1000
    """How many rows there are."""

    # Once, before any row; an error stops a run before it starts.
    def __post_init__(self) -> None:
        if not 1 <= self.digits <= 9:
            raise ValueError(f"`digits` must be from 1 to 9, not {self.digits}")


# Once a row: the same index and seed give the same row. Without `length` the rows never end.
@taskset(length=lambda params: params.length)
def row(index: int, seed: int, params: Params) -> dict[str, str]:
    if index >= params.length:
        raise InvalidInput(f"there is no row {index}: there are {params.length}")
    random = Random(f"{seed} {index}")
    a, b = random.randrange(10**params.digits), random.randrange(10**params.digits)
    return {"prompt": f'What is {a} + {b}? End with "Answer:" and the sum.', "ground_truth": str(a + b)}
