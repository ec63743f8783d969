"""Limits that scorers share without a folder: one giver of turns, which the others ask."""

import threading
import time
import unittest
from typing import Any

from gavel_rl import Scorer, _native
from judge import Judge, asks


class Turns(unittest.TestCase):
    def setUp(self) -> None:
        self.judge = Judge()
        self.addCleanup(self.judge.close)
        self.couriers: dict[str, _native.Courier] = {}
        self.is_over = threading.Event()

    def scorers(self, turns: _native.Turns, count: int) -> list[Scorer]:
        """Scorers that ask the giver of turns, as processes would."""
        chat = {"judge": {**self.judge.chat, "limit": "judge"}}
        scorers = []
        for number in range(count):
            scorer = Scorer([asks()], chat=chat, limiter={"judge": {}}, limits={"timeout": "5m"})
            courier = self.couriers[str(number)] = _native.Courier()
            scorer._native.ask_for_turns(courier)
            scorers.append(scorer)
            self.start(self._report, turns, str(number))
        self.start(self._bring, turns)
        return scorers

    def start(self, work: Any, *args: Any) -> threading.Thread:
        thread = threading.Thread(target=work, args=args, daemon=True)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.is_over.set)
        return thread

    def _report(self, turns: _native.Turns, process: str) -> None:
        while not self.is_over.is_set():
            events = self.couriers[process].take(0.1)
            if events is not None:
                turns.report(process, events)

    def _bring(self, turns: _native.Turns) -> None:
        while not self.is_over.is_set():
            for process, number in turns.given(0.1):
                self.couriers[process].bring([number])

    def test_a_rate_and_places_hold_over_all_scorers(self) -> None:
        turns = _native.Turns('{"judge": {"requests_per_second": 40, "concurrency": 2}}')
        found: list[float | None] = []

        def score(scorer: Scorer) -> None:
            found.extend(outcome.reward for outcome in scorer.score({"response": str(row)} for row in range(40)))

        scoring = [self.start(score, scorer) for scorer in self.scorers(turns, 3)]
        for thread in scoring:
            thread.join()
        # With a rate for each scorer, it would be a third of that.
        self.assertGreater(self.judge.times[-1] - self.judge.times[0], 0.8 * 120 / 40)
        self.assertEqual((found, self.judge.asked), ([1.0] * 120, 120))
        self.assertLessEqual(self.judge.most_at_once, 2)

    def test_the_places_of_a_process_that_is_gone_are_given_to_others(self) -> None:
        turns = _native.Turns('{"judge": {"concurrency": 1}}')
        first, second = self.scorers(turns, 2)
        found: list[float | None] = []
        hanging = self.start(lambda: first.score([{"response": "hang"}]))
        while self.judge.asked == 0:
            time.sleep(0.01)
        waiting = self.start(lambda: found.append(second.score_row(response="1").reward))
        waiting.join(0.5)
        self.assertEqual(found, [])
        turns.forget("0")
        waiting.join()
        self.assertEqual(found, [1.0])
        self.judge.released.set()
        hanging.join()

    def test_what_is_wrong_is_named(self) -> None:
        with self.assertRaisesRegex(ValueError, "limiter.judge.requests_per_second is 0"):
            _native.Turns('{"judge": {"requests_per_second": 0.0}}')
        turns = _native.Turns('{"judge": {}}')
        wanted = b'[{"event": "wanted", "number": 0, "limiter": "other", "plugin": "p", "group": 0, "sample": 0, "tokens": 0}]'
        with self.assertRaisesRegex(ValueError, "there is no limiter `other`, only: judge"):
            turns.report("0", wanted)


if __name__ == "__main__":
    unittest.main()
