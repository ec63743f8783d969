"""The summary of ``gavel score``."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pyarrow

from gavel_rl._native import ScoredBatch
from gavel_rl.no_score import KINDS


@dataclass
class Summary:
    """Numbers of scored rows."""

    #: The number of the first row.
    first: int = 0
    rows: int = 0
    #: The time of the job's last run.
    seconds: float = 0.0
    reward_sum: float = 0.0
    #: How often each kind of outcome occurred, of rows and of each reward's calls.
    outcomes: Counter[str] = field(default_factory=Counter)
    plugins: dict[str, Counter[str]] = field(default_factory=dict)
    #: Why the first row without a score has none, by reward.
    reasons: dict[str, str] = field(default_factory=dict)
    #: Rows that could not be read, and why the first could not.
    unreadable: int = 0
    why_unreadable: str | None = None

    def add(self, batch: ScoredBatch) -> None:
        """Counts the rows of a batch."""
        columns = pyarrow.record_batch(batch)
        self.rows += len(columns)
        self.reward_sum += sum(reward for reward in columns["reward"].to_pylist() if reward is not None)
        self.outcomes.update(map(str, columns["outcome"].to_pylist()))
        scores: Any = columns["scores"]
        parts = dict(zip((part.name for part in scores.type), scores.flatten()))
        for name, part in parts.items():
            if len(part) > part.null_count:
                self.plugins.setdefault(name, Counter())["scored"] += len(part) - part.null_count
        if any(part.null_count for part in parts.values()):
            self._add_without_score(batch)

    def _add_without_score(self, batch: ScoredBatch) -> None:
        for outcome in batch.outcomes:
            if outcome.id is None:
                self.unreadable += 1
                self.why_unreadable = self.why_unreadable or outcome.reason
            for name, call in outcome.rewards.items():
                if call.score is None:
                    self.plugins.setdefault(name, Counter())[call.kind] += 1
                    if call.reason is not None:
                        self.reasons.setdefault(name, call.reason)

    def join(self, after: Summary) -> None:
        """Counts the rows that follow."""
        self.rows += after.rows
        self.reward_sum += after.reward_sum
        self.outcomes.update(after.outcomes)
        for name, counts in after.plugins.items():
            self.plugins.setdefault(name, Counter()).update(counts)
        self.reasons = {**after.reasons, **self.reasons}
        self.unreadable += after.unreadable
        self.why_unreadable = self.why_unreadable or after.why_unreadable

    @property
    def reward_mean(self) -> float | None:
        """The mean of the rewards of rows that have one."""
        scored = self.outcomes["scored"]
        return self.reward_sum / scored if scored else None

    def lines(self, out: str) -> list[str]:
        """The lines that ``gavel score`` prints."""
        rows = "row" if self.rows == 1 else "rows"
        lines = [
            f"{self.rows} {rows} in {self.seconds:.2f} s ({self.rows / max(self.seconds, 1e-9):.0f} rows/s) -> {out}"
        ]
        if self.rows > 0:
            mean = "none" if self.reward_mean is None else f"mean {self.reward_mean:.4f}"
            lines.append(f"  reward    {mean}; {_listed(self.outcomes)}")
        for name, counts in sorted(self.plugins.items()):
            reason = f"; the first without a score: {self.reasons[name]}" if name in self.reasons else ""
            lines.append(f"  {name}: {_listed(counts)}{reason}")
        return lines

    def shown(self) -> dict[str, Any]:
        """What ``gavel score --json`` prints."""
        return {
            "rows": self.rows,
            "seconds": self.seconds,
            "reward_mean": self.reward_mean,
            "outcomes": self.outcomes,
            "plugins": self.plugins,
            "unreadable": self.unreadable,
        }

    def to_json(self) -> str:
        return json.dumps(vars(self))

    @classmethod
    def from_json(cls, text: str) -> Summary:
        found = json.loads(text)
        found["outcomes"] = Counter(found["outcomes"])
        found["plugins"] = {name: Counter(counts) for name, counts in found["plugins"].items()}
        return cls(**found)


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts[kind])
