"""What a trainer that knows only numbers is told of samples without a score."""

from __future__ import annotations

import atexit
import logging
from collections import Counter

from gavel_rl._native import Outcome

KINDS = ("scored", "abstained", "fault", "out-of-budget", "unavailable")

_log = logging.getLogger("gavel_rl")


class Tally:
    """Counts outcomes by kind, and logs the counts when the interpreter ends."""

    def __init__(self, trainer: str, without_score: str) -> None:
        self._trainer = trainer
        self._kinds: Counter[str] = Counter()
        _log.warning(
            "%s: a sample whose reward abstains, fails, runs out of its budget or is unavailable %s",
            trainer,
            without_score,
        )
        atexit.register(self._report)

    def add(self, outcome: Outcome) -> None:
        self._kinds[outcome.kind] += 1

    def _report(self) -> None:
        counts = ", ".join(f"{self._kinds[kind]} {kind}" for kind in KINDS if self._kinds[kind])
        _log.warning("%s: %s", self._trainer, counts or "no samples")
