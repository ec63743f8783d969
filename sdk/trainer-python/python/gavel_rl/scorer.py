"""The scorer: rows in, outcomes out."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, runtime_checkable
from weakref import WeakKeyDictionary

from gavel_rl import _native
from gavel_rl._native import Outcome, ScoredBatch
from gavel_rl.reward import Reward, component


@runtime_checkable
class ArrowStream(Protocol):
    """Record batches of Arrow, by the Arrow PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class Scorer:
    """Scores rows with rewards, concurrently.

    Any number of threads and event loops may use a scorer at once. Python's lock is released while rewards run. A
    scorer can be pickled: the copy loads the same rewards in its own process. A process that was forked cannot use its
    parent's scorer.

    Args:
        rewards: The rewards. A path alone is a reward with the weight 1.
        limits: The limits of each call, as in ``[limits]``: ``{"timeout": "10s", "cpu": "2s", "memory": "256MiB"}``.
        grants: What rewards without a ``grant`` of their own may reach; nothing by default.
        chat: Language models that rewards may be granted, by name, as in ``[chat.NAME]``.
        limiter: Limits that language models and grants name, as in ``[limiter.NAME]``.
        exec: Programs that rewards may be granted, by name, as in ``[exec.NAME]``. ``{"path": "python"}`` is the Python
            of the package gavel-rl-plugins.
        workers: Threads that rewards run on; by default one for each core.
        seed: The seed of the random numbers that rewards see.

    Raises:
        GavelError: A reward cannot be loaded.
        ValueError: An argument has a wrong value.
    """

    def __init__(
        self,
        rewards: Iterable[Reward | str | os.PathLike[str]],
        *,
        limits: Mapping[str, Any] | None = None,
        grants: Mapping[str, Any] | None = None,
        chat: Mapping[str, Any] | None = None,
        limiter: Mapping[str, Any] | None = None,
        exec: Mapping[str, Any] | None = None,
        workers: int | None = None,
        seed: int = 0,
    ) -> None:
        options = {"limits": limits, "grants": grants, "chat": chat, "limiter": limiter, "exec": exec}
        self._open(json.dumps(scorer_table(rewards, workers=workers, seed=seed, **options), allow_nan=False))

    def _open(self, config: str) -> None:
        self._config = config
        self._native = _native.Scorer(config)
        self._inboxes: WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopInbox] = WeakKeyDictionary()

    def score(self, rows: Iterable[Mapping[str, Any]]) -> list[Outcome]:
        """Scores rows and returns an outcome for each, in order.

        A row is a dict with a ``response`` (or ``completion``), a text or messages, and the columns of the dataset, as
        in the rows of ``gavel score``. Consecutive rows with the same ``id`` are a group, which a judger sees as a
        whole. A row that cannot be read has the outcome ``fault``, and the others are scored.

        Ctrl-C ends the calls, and raises KeyboardInterrupt.
        """
        return self._native.score(rows)

    def score_row(self, **columns: Any) -> Outcome:
        """Scores one row, whose columns are the arguments."""
        return self._native.score([columns])[0]

    def judge(self, group: Sequence[Mapping[str, Any]]) -> list[Outcome]:
        """Scores rows that are responses to one prompt, as one group. A judger sees them together."""
        return self._native.judge(group)

    async def score_async(self, row: Mapping[str, Any]) -> Outcome:
        """Scores one row; the event loop goes on meanwhile. If the task is cancelled, the calls end.

        A judger needs whole groups, so a scorer with one raises ValueError here.
        """
        native = self._native
        [outcome] = await self._inbox().outcomes(lambda inbox, number: native.start(inbox, number, row))
        return outcome

    async def judge_async(self, group: Sequence[Mapping[str, Any]]) -> list[Outcome]:
        """As :meth:`judge`, while the event loop goes on. If the task is cancelled, the calls end."""
        native = self._native
        return await self._inbox().outcomes(lambda inbox, number: native.start_group(inbox, number, group))

    @classmethod
    def _of(cls, table: Mapping[str, Any]) -> Scorer:
        """The scorer of a :func:`scorer_table`."""
        scorer = cls.__new__(cls)
        scorer._open(json.dumps(table, allow_nan=False))
        return scorer

    def score_batches(
        self,
        batches: ArrowStream | Iterable[ArrowStream],
        *,
        first: int = 0,
        columns: Mapping[str, str] | None = None,
    ) -> Iterator[ScoredBatch]:
        """Scores record batches of Arrow, as they are asked for::

            for scored in scorer.score_batches(parquet.iter_batches()):
                table = pyarrow.record_batch(scored)

        Args:
            batches: A ``pyarrow.RecordBatchReader``, a table, record batches, or their like in another library: an
                object with ``__arrow_c_stream__``, or several. A row has the columns that a row of :meth:`score` has.
            first: The number of the first row in its dataset. The seeds of rewards, and the ids of rows that have none,
                follow from the numbers of rows.
            columns: The names of columns, as in ``[data.columns]``: ``{"ground_truth": "final_answer"}``.

        Returns:
            The outcomes of each batch that has rows, in order. Libraries of Arrow take their columns, without a copy:
            ``id``, ``reward``, ``outcome`` (the kind), ``reason``, and ``scores``, a struct with the score of each
            reward.
            About 1,000 rows are scored at the same time, for which later batches are read ahead. A group may go on in
            the next batch.

        Raises:
            TypeError: An object has no record batches.
            ValueError: A batch cannot be read.
        """
        parts = [batches] if isinstance(batches, ArrowStream) else batches
        return self._native.score_batches(iter(parts), first, json.dumps(dict(columns or {})))

    def _inbox(self) -> _LoopInbox:
        loop = asyncio.get_running_loop()
        inbox = self._inboxes.get(loop)
        if inbox is None:
            inbox = self._inboxes[loop] = _LoopInbox(loop)
        return inbox

    def close(self) -> None:
        """Ends the scorer's threads once the calls under way have ended. Later calls raise GavelError."""
        self._native.close()

    def __enter__(self) -> Scorer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __getstate__(self) -> str:
        return self._config

    def __setstate__(self, config: str) -> None:
        self._open(config)

    def __repr__(self) -> str:
        rewards = ", ".join(repr(reward["path"]) for reward in json.loads(self._config)["rewards"])
        return f"Scorer([{rewards}])"


def scorer_table(
    rewards: Iterable[Reward | str | os.PathLike[str]],
    *,
    limits: Mapping[str, Any] | None = None,
    grants: Mapping[str, Any] | None = None,
    chat: Mapping[str, Any] | None = None,
    limiter: Mapping[str, Any] | None = None,
    exec: Mapping[str, Any] | None = None,
    workers: int | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """The arguments of a :class:`Scorer` as the extension module reads them."""
    if isinstance(rewards, (str, os.PathLike, Reward)):
        raise TypeError("`rewards` is one reward, not a list of them")
    named = (reward if isinstance(reward, Reward) else Reward(reward) for reward in rewards)
    return {
        "rewards": [reward._table(grants or {}) for reward in named],
        "limits": dict(limits or {}),
        "chat": dict(chat or {}),
        "limiter": dict(limiter or {}),
        "exec": {name: _program(table) for name, table in (exec or {}).items()},
        "workers": workers,
        "seed": seed,
    }


def _program(table: Any) -> Any:
    """A table of ``exec`` in which the program's path is absolute."""
    if isinstance(table, Mapping) and isinstance(path := table.get("path"), (str, os.PathLike)):
        return {**table, "path": component(os.fspath(path), os.path.isfile)}
    return table


class _LoopInbox:
    """Outcomes for the tasks of one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._inbox = _native.Inbox()
        self._waiting: dict[int, asyncio.Future[list[Outcome]]] = {}
        self._number = 0
        loop.add_reader(self._inbox.fileno(), self._take)

    async def outcomes(self, start: Callable[[_native.Inbox, int], _native.Call]) -> list[Outcome]:
        """Waits for the outcomes of the rows that ``start`` starts on."""
        self._number += 1
        number = self._number
        future: asyncio.Future[list[Outcome]] = asyncio.get_running_loop().create_future()
        call = start(self._inbox, number)
        self._waiting[number] = future
        try:
            return await future
        finally:
            if self._waiting.pop(number, None) is not None:
                call.cancel()

    def _take(self) -> None:
        for number, outcomes in self._inbox.take():
            future = self._waiting.pop(number, None)
            # A task that was cancelled waits no longer.
            if future is not None and not future.done():
                future.set_result(outcomes)
