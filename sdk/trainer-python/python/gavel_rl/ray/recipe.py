"""A scorer that workers of other nodes open."""

from __future__ import annotations

import copy
import hashlib
import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ray

from gavel_rl.ray.limits import SharedLimits
from gavel_rl.scorer import Scorer, scorer_table

#: The limits that a language model may have of its own, and the most requests at once where it has none.
_OWN_LIMITS = ("requests_per_second", "tokens_per_minute", "concurrency")
_CONCURRENCY = 32


class Recipe:
    """What a worker needs for a scorer: its configuration, its components, and where turns come from.

    Components travel with it, as nodes may lack their files.
    """

    def __init__(
        self, rewards: Any, *, limiter: SharedLimits | Mapping[str, Any] | None = None, **options: Any
    ) -> None:
        own = {} if isinstance(limiter, SharedLimits) else dict(limiter or {})
        self._take(
            scorer_table(rewards, limiter=own, **options), limiter if isinstance(limiter, SharedLimits) else None
        )

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Recipe:
        """The recipe of a :func:`gavel_rl.scorer.scorer_table`."""
        recipe = cls.__new__(cls)
        recipe._take(dict(table), None)
        return recipe

    def _take(self, table: dict[str, Any], limits: SharedLimits | None) -> None:
        table = copy.deepcopy(table)
        # A configuration that is wrong is an error here, not in a worker.
        with Scorer._of(_with_names(table, limits)) as scorer:
            self.has_judgers = scorer._native.has_judgers()
        if limits is None:
            _name_limits(table)
            limits = SharedLimits(table["limiter"]) if table["limiter"] else None
        self._limits = limits
        self._table = _with_names(table, limits)
        self._components: dict[str, tuple[str, Any]] = {}
        for part in (*table["rewards"], *table["exec"].values()):
            path = os.fspath(part["path"])
            if os.path.isdir(path):
                raise ValueError(
                    f"the reward {path} is a folder, which other nodes lack\nhint: name the component in it, a .wasm file"
                )
            if path not in self._components:
                content = Path(path).read_bytes()
                self._components[path] = (hashlib.sha256(content).hexdigest(), ray.put(content))

    @property
    def identity(self) -> dict[str, Any]:
        """What decides about scores: the configuration, with the hashes of components."""
        hashes = {path: digest for path, (digest, _) in self._components.items()}
        table = {key: part for key, part in self._table.items() if key not in ("workers", "limiter")}
        return {**table, "components": hashes}

    def with_workers(self, workers: int) -> Recipe:
        """The same, with so many threads for each scorer, if the configuration sets no number."""
        recipe = copy.copy(self)
        recipe._table = {**self._table, "workers": self._table["workers"] or workers}
        return recipe

    @property
    def workers(self) -> int:
        """The threads of a scorer."""
        return int(self._table["workers"])

    def open(self) -> Scorer:
        """Opens the scorer in a worker."""
        table = copy.deepcopy(self._table)
        for part in (*table["rewards"], *table["exec"].values()):
            if part["path"] in self._components:
                part["path"] = _file(part["path"], *self._components[part["path"]])
        scorer = Scorer._of(table)
        if self._limits is not None:
            self._limits.lend(scorer)
        return scorer


def _name_limits(table: dict[str, Any]) -> None:
    """Makes the limits that language models have of their own named ones, which an actor can share."""
    for name, endpoint in table["chat"].items():
        if endpoint.get("limit") is None:
            if endpoint.pop("share", None) is not None:
                raise ValueError(
                    f"chat.{name}.share names a folder, and on Ray an actor shares the limits\nhint: leave out `share`"
                )
            own = {key: endpoint.pop(key) for key in _OWN_LIMITS if endpoint.get(key) is not None}
            endpoint["limit"] = f"chat.{name}"
            table["limiter"][endpoint["limit"]] = {"concurrency": _CONCURRENCY, **own}


def _with_names(table: Mapping[str, Any], limits: SharedLimits | None) -> dict[str, Any]:
    """The table, with a limiter of each name that ``limits`` has. Its turns come from the actor."""
    if limits is None:
        return dict(table)
    own = [name for name, endpoint in table["chat"].items() if endpoint.get("limit") is None]
    if own:
        raise ValueError(
            f"chat.{own[0]} has limits of its own, which the SharedLimits do not have\n"
            f"hint: give it the name of one of them: limit = {sorted(limits.names)}"
        )
    return {**table, "limiter": {name: {} for name in limits.names}}


def _file(path: str, digest: str, content: Any) -> str:
    """A file of this node with a component."""
    own = Path(tempfile.gettempdir()) / f"gavel-ray-{os.getuid()}"
    own.mkdir(mode=0o700, exist_ok=True)
    found = own.lstat()
    # Who may write here decides what runs.
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise RuntimeError(f"others can write to {own}, where components are kept\nhint: remove it on this node")
    place = own / digest
    place.mkdir(mode=0o700, exist_ok=True)
    file = place / os.path.basename(path)
    if not file.exists():
        with tempfile.NamedTemporaryFile(dir=place, delete=False) as part:
            part.write(ray.get(content))
        os.replace(part.name, file)
    return str(file)
