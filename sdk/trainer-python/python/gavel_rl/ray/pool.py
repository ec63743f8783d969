"""A pool of actors that scores a dataset of ``ray.data``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow
from ray.data import ActorPoolStrategy, Dataset

from gavel_rl.ray.limits import SharedLimits
from gavel_rl.ray.recipe import Recipe

if TYPE_CHECKING:
    from gavel_rl.reward import Reward

#: The columns that scoring adds.
_ADDED = ("reward", "outcome", "reason", "scores")


def score_dataset(
    dataset: Dataset,
    rewards: Iterable[Reward | str | os.PathLike[str]],
    *,
    group: str | None = None,
    columns: Mapping[str, str] | None = None,
    compute: ActorPoolStrategy | None = None,
    batch_size: int | None = 4096,
    num_cpus: int = 1,
    limiter: SharedLimits | Mapping[str, Any] | None = None,
    **options: Any,
) -> Dataset:
    """Adds the columns ``reward``, ``outcome`` (the kind), ``reason`` and ``scores`` to a dataset::

        scored = score_dataset(ray.data.read_parquet("rows"), ["exact-answer"])
        scored.write_parquet("scored")

    As ``map_batches``, it is lazy. A row has the columns that a row of :meth:`gavel_rl.Scorer.score` has. A seed follows
    from the number of a row in its batch; where rewards draw random numbers and scores must not depend on batches, use
    :func:`score_parquet`.

    Args:
        dataset: The dataset.
        rewards: The rewards, or their paths. Their components travel to the nodes.
        group: The column whose rows with the same value are a group, as ``id``. A judger needs it, for it must see the
            rows of a group together, wherever they lie: they are shuffled to one worker, and each worker scores whole
            groups. Without it, batches are scored as they come.
        columns: The names of columns, as in ``[data.columns]``.
        compute: The pool; by default it grows with the cluster, from one actor.
        batch_size: The rows of a batch, without ``group``.
        num_cpus: The processors of each actor, and the threads of its scorer.
        limiter: Limits of endpoints, by name, which hold over all actors; or limits that others share too.
        options: The other arguments of :class:`gavel_rl.Scorer`.

    Raises:
        GavelError: A reward cannot be loaded.
        ValueError: An argument has a wrong value, or a judger has no ``group``.
    """
    recipe = Recipe(rewards, limiter=limiter, **options).with_workers(num_cpus)
    if recipe.has_judgers and group is None:
        raise ValueError(
            "a reward judges whole groups, and batches may divide them\n"
            'hint: name the column of groups, group="id", or use score_parquet, where consecutive rows are a group'
        )
    pool = compute or ActorPoolStrategy(min_size=1)
    arguments: dict[str, Any] = {
        # The rows that a call gets have the value of `group` in common, which is what makes them a group.
        "fn_constructor_args": (recipe, {**(columns or {}), **({} if group is None else {"id": group})}),
        "batch_format": "pyarrow",
        "compute": pool,
        "num_cpus": num_cpus,
    }
    if group is not None:
        return dataset.groupby(group).map_groups(BatchScorer, **arguments)
    return dataset.map_batches(BatchScorer, batch_size=batch_size, zero_copy_batch=True, **arguments)


class BatchScorer:
    """An actor of the pool."""

    def __init__(self, recipe: Recipe, columns: Mapping[str, str]) -> None:
        self._scorer = recipe.open()
        self._columns = columns

    def __call__(self, batch: pyarrow.Table) -> pyarrow.Table:
        taken = [name for name in _ADDED if name in batch.column_names]
        if taken:
            raise ValueError(
                f"the dataset has a column `{taken[0]}` already\n"
                f"hint: give it another name: dataset.rename_columns({{'{taken[0]}': '…'}})"
            )
        batches = self._scorer.score_batches(batch, columns=self._columns)
        scored = pyarrow.Table.from_batches(map(pyarrow.record_batch, batches))
        for name in _ADDED:
            batch = batch.append_column(name, scored[name])
        return batch
