"""Gavel's rewards on Ray.

::

    import ray
    from gavel_rl.ray import reward_actor, score_dataset, score_parquet

    scored = score_dataset(ray.data.read_parquet("rows"), ["exact-answer"])   # a pool of actors, for ray.data
    actor = reward_actor(["exact-answer"], num_cpus=4)                        # one actor, for a trainer
    score_parquet("rows", "scores", ["exact-answer"])                         # a job that goes on after a crash

Limits of endpoints hold over all of the cluster's nodes: an actor gives the turns (:class:`SharedLimits`).
"""

try:
    import ray.data  # noqa: F401
except ImportError as error:
    # Ray 2.60 does not name typing_extensions among what it needs.
    raise ImportError(f"gavel_rl.ray needs Ray ({error})\nhint: pip install 'ray[data]' typing_extensions") from error

from gavel_rl.ray.actor import reward_actor
from gavel_rl.ray.job import score_parquet
from gavel_rl.ray.limits import SharedLimits
from gavel_rl.ray.pool import score_dataset

__all__ = ["SharedLimits", "reward_actor", "score_dataset", "score_parquet"]
