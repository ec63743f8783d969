"""Limits of endpoints that hold over all nodes of a cluster: one actor gives the turns, and workers ask it."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from gavel_rl import _native
from gavel_rl.scorer import Scorer

#: The namespace of named limits.
_NAMESPACE = "gavel"
#: How long an actor that asks for turns waits for some, in seconds, before it asks again.
_PATIENCE = 10.0
#: The pause before a lost actor is tried again, in seconds.
_RETRY = 0.5
#: Workers wait in the actor with two calls each.
_MOST_CALLS = 10_000

_log = logging.getLogger("gavel_rl")


class SharedLimits:
    """Limits that all workers of a cluster share, as in ``[limiter.NAME]``::

        limits = SharedLimits({"judge": {"requests_per_second": 50, "concurrency": 32}})
        scored = score_dataset(dataset, rewards, chat=..., limiter=limits)
        actor = reward_actor(rewards, chat=..., limiter=limits)

    A Ray actor on this node gives each request its turn, so no rate is divided among workers: a worker may join, or
    die, at any time. The places of a worker that dies are given to others.

    Args:
        limiter: The limits, by name.
        name: A name in the cluster. Drivers that use the same name share the limits, which then stay until the actor
            of this name in the namespace ``gavel`` is killed. Without a name, the limits end with this driver.

    Raises:
        ValueError: A limit has a wrong value, or the limits of this name are others.
    """

    def __init__(self, limiter: Mapping[str, Mapping[str, Any]], *, name: str | None = None) -> None:
        for limit, table in limiter.items():
            if table.get("share") is not None:
                raise ValueError(
                    f"limiter.{limit}.share names a folder, and on Ray an actor shares the limits\nhint: leave out `share`"
                )
        self.names = frozenset(limiter)
        tables = json.dumps({limit: dict(table) for limit, table in limiter.items()}, sort_keys=True, allow_nan=False)
        # Wrong values are errors here, not in the actor.
        _native.Turns(tables)
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
        shared = {} if name is None else {"name": name, "namespace": _NAMESPACE, "lifetime": "detached"}
        options = {"num_cpus": 0, "max_restarts": -1, "max_concurrency": _MOST_CALLS, "scheduling_strategy": here}
        giver: Any = ray.remote(_Giver)
        self._actor = giver.options(get_if_exists=name is not None, **shared, **options).remote(tables)
        found: Any = ray.get(self._actor.tables.remote())
        if found != tables:
            raise ValueError(f"the limits `{name}` exist with other values: {found}\nhint: use them, or another name")

    def lend(self, scorer: Scorer) -> None:
        """Makes a scorer of this process wait for turns of these limits."""
        _Asker(self._actor, scorer)


class _Giver:
    """The actor that gives turns."""

    def __init__(self, tables: str) -> None:
        self._tables = tables
        self._turns = _native.Turns(tables)
        self._given: defaultdict[str, list[int]] = defaultdict(list)
        self._arrived: dict[str, asyncio.Event] = {}
        self._ends: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._watches: set[asyncio.Task[None]] = set()
        self._is_giving = False

    async def tables(self) -> str:
        return self._tables

    async def join(self, process: str, lives: list[ray.ObjectRef[None]]) -> None:
        """Notes a process that asks. The reference in ``lives`` is its own, and fails when it dies."""
        if not self._is_giving:
            self._is_giving = True
            threading.Thread(target=self._give, args=(asyncio.get_running_loop(),), daemon=True).start()
        self._arrived[process] = asyncio.Event()
        watch = asyncio.create_task(self._forget_the_dead(process, lives[0]))
        self._watches.add(watch)
        watch.add_done_callback(self._watches.discard)

    async def life(self, process: str) -> None:
        """Answers when the process has died."""
        await self._ends[process].wait()

    async def report(self, process: str, events: bytes) -> None:
        """Takes what requests of a process report. A process that is not known will report again."""
        if process in self._arrived:
            self._turns.report(process, events)

    async def turns(self, process: str) -> list[int] | None:
        """The requests of a process whose turn has come; None if it must join, as this actor began anew."""
        arrived = self._arrived.get(process)
        if arrived is None:
            return None
        try:
            await asyncio.wait_for(arrived.wait(), _PATIENCE)
        except asyncio.TimeoutError:
            return []
        arrived.clear()
        return self._given.pop(process, [])

    async def _forget_the_dead(self, process: str, life: ray.ObjectRef[None]) -> None:
        try:
            await life
        except RayError:
            pass
        self._ends.pop(process, asyncio.Event()).set()
        self._arrived.pop(process, None)
        self._given.pop(process, None)
        self._turns.forget(process)

    def _give(self, loop: asyncio.AbstractEventLoop) -> None:
        while True:
            given = self._turns.given(_PATIENCE)
            if given:
                loop.call_soon_threadsafe(self._hand_out, given)

    def _hand_out(self, given: list[tuple[str, int]]) -> None:
        for process, number in given:
            if process in self._arrived:
                self._given[process].append(number)
                self._arrived[process].set()


class _Asker:
    """Carries what a scorer's requests report to the actor, and turns back, in two threads."""

    def __init__(self, actor: Any, scorer: Scorer) -> None:
        self._actor = actor
        self._process = uuid.uuid4().hex
        self._courier = _native.Courier()
        self._join()
        scorer._native.ask_for_turns(self._courier)
        for work in (self._report, self._bring):
            threading.Thread(target=work, daemon=True).start()

    def _join(self) -> None:
        # This process owns the reference, so the actor sees it fail when the process dies.
        self._life = self._actor.life.remote(self._process)
        ray.get(self._actor.join.remote(self._process, [self._life]))

    def _report(self) -> None:
        while True:
            events = self._courier.take(_PATIENCE)
            while events is not None:
                try:
                    ray.get(self._actor.report.remote(self._process, events))
                    events = None
                except RayActorError:
                    # It may have arrived: the actor takes the same report twice without harm.
                    time.sleep(_RETRY)

    def _bring(self) -> None:
        is_lost = False
        while True:
            try:
                numbers = ray.get(self._actor.turns.remote(self._process))
                if numbers is None:
                    self._join()
                    self._courier.report_again()
                else:
                    self._courier.bring(numbers)
                    if is_lost:
                        # An answer of the actor may be lost, with the turns that it brought.
                        self._courier.report_again()
                is_lost = False
            except RayActorError as error:
                if not is_lost:
                    _log.warning("the actor with the limits is lost, and requests wait until it is back: %s", error)
                is_lost = True
                time.sleep(_RETRY)
