"""A Ray actor that scores for a trainer, whose workers take turns."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import ray

from gavel_rl._native import Outcome
from gavel_rl.ray.limits import SharedLimits
from gavel_rl.ray.recipe import Recipe

if TYPE_CHECKING:
    from gavel_rl.reward import Reward

#: The calls that an actor takes on at once. Most of them wait for their turns.
_MOST_CALLS = 100_000


def reward_actor(
    rewards: Iterable[Reward | str | os.PathLike[str]],
    *,
    num_cpus: int = 1,
    at_once: int = 1024,
    limiter: SharedLimits | Mapping[str, Any] | None = None,
    actor: Mapping[str, Any] | None = None,
    **options: Any,
) -> Any:
    """Starts a Ray actor with rewards, for the workers of a trainer::

        judge = reward_actor(["exact-answer"], num_cpus=4)
        outcome = ray.get(judge.score.remote(row, caller="rollout-3"))
        outcomes = ray.get(judge.judge.remote(group))

    Its methods are ``score(row)``, ``score_all(rows)``, each row by itself, and ``judge(rows)``, the rows of one group.
    They return outcomes.

    Callers take turns: a caller with many rows waits behind its own rows, and a caller with one row gets the next place. A
    caller is the argument ``caller`` of each method, any text; calls without it are one caller.

    Args:
        rewards: The rewards, or their paths. Their components travel to the actor's node.
        num_cpus: The processors of the actor, and the threads of its scorer.
        at_once: The rows and groups that are scored at once. Many of them may wait for endpoints.
        limiter: Limits of endpoints, by name; or limits that others share too.
        actor: Options of the Ray actor, such as ``{"name": "judge", "max_restarts": 3}``.
        options: The other arguments of :class:`gavel_rl.Scorer`.

    Raises:
        GavelError: A reward cannot be loaded.
        ValueError: An argument has a wrong value.
    """
    if at_once < 1:
        raise ValueError(f"`at_once` is {at_once}; it must be at least 1")
    recipe = Recipe(rewards, limiter=limiter, **options).with_workers(num_cpus)
    settings = {"num_cpus": num_cpus, "max_concurrency": _MOST_CALLS, **(actor or {})}
    return ray.remote(RewardActor).options(**settings).remote(recipe, at_once)


class RewardActor:
    """The actor of :func:`reward_actor`."""

    def __init__(self, recipe: Recipe, at_once: int) -> None:
        self._scorer = recipe.open()
        self._turns = _Turns(at_once)

    async def score(self, row: Mapping[str, Any], caller: str = "") -> Outcome:
        """Scores one row."""
        async with self._turns.turn(caller):
            return await self._scorer.score_async(row)

    async def score_all(self, rows: Sequence[Mapping[str, Any]], caller: str = "") -> list[Outcome]:
        """Scores rows, each by itself."""
        return list(await asyncio.gather(*(self.score(row, caller) for row in rows)))

    async def judge(self, rows: Sequence[Mapping[str, Any]], caller: str = "") -> list[Outcome]:
        """Scores rows that are one group."""
        async with self._turns.turn(caller):
            return await self._scorer.judge_async(rows)


class _Turns:
    """Places that callers get in turn."""

    def __init__(self, places: int) -> None:
        self._free = places
        #: The calls of each caller that wait; the first caller is next.
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def turn(self, caller: str) -> AsyncIterator[None]:
        """Waits for a place, and keeps it."""
        if self._free > 0:
            self._free -= 1
        else:
            place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(caller, deque()).append(place)
            try:
                await place
            except asyncio.CancelledError:
                # The place may have come at this moment.
                if place.done() and not place.cancelled():
                    self._pass_on()
                raise
        try:
            yield
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        while self._waiting:
            caller, calls = next(iter(self._waiting.items()))
            del self._waiting[caller]
            place = calls.popleft()
            if calls:
                self._waiting[caller] = calls
            if not place.cancelled():
                place.set_result(None)
                return
        self._free += 1
