"""What a library that knows only numbers gets for a sample without a score."""

from __future__ import annotations

import atexit
import logging
from collections import Counter

from gavel_rl._native import Outcome

KINDS = ("scored", "abstained", "fault", "out-of-budget", "unavailable")

_log = logging.getLogger("gavel_rl")


def flags(outcome: Outcome, prefix: str) -> dict[str, float]:
    """1 for the kind of the outcome and 0 for every other kind."""
    return {f"{prefix}{kind.replace('-', '_')}": float(outcome.kind == kind) for kind in KINDS}


class Tally:
    """Counts outcomes by kind, and logs the counts when the interpreter ends."""

    def __init__(self, library: str, without_score: str) -> None:
        self._library = library
        self._kinds: Counter[str] = Counter()
        _log.warning(
            "%s: a sample whose reward abstains, fails, runs out of its budget or is unavailable %s",
            library,
            without_score,
        )
        atexit.register(self._report)

    def add(self, outcome: Outcome) -> None:
        self._kinds[outcome.kind] += 1

    def _report(self) -> None:
        counts = ", ".join(f"{self._kinds[kind]} {kind}" for kind in KINDS if self._kinds[kind])
        _log.warning("%s: %s", self._library, counts or "no samples")
