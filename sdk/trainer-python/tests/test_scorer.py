import pickle
import unittest

from components import guest, hostile, plugin, sums
from gavel_rl import Credit, GavelError, Outcome, Reward, Scorer, build


class Rows(unittest.TestCase):
    def test_a_row_is_scored_in_three_lines(self) -> None:
        scorer = Scorer([Reward("exact-answer")])
        outcome = scorer.score_row(prompt="2 + 2?", response="Answer: 4", answer="4")
        self.assertEqual((outcome.kind, outcome.reward, outcome.reason), ("scored", 1.0, None))
        call = outcome.rewards["exact-answer"]
        self.assertEqual((call.score, call.metrics, call.note, call.reason), (1.0, {"answered": 1.0}, "4", None))
        hashes = (call.component_hash, call.params_hash, call.input_hash)
        self.assertEqual([len(text or "") for text in hashes], [64, 64, 64])
        self.assertEqual((call.contract, call.fuel, call.budget), ("gavel:plugin@0.2.0", None, None))
        self.assertGreater(call.peak_memory, 0)
        self.assertLessEqual(call.cpu, call.elapsed)
        self.assertEqual(repr(outcome), 'Outcome(kind="scored", reward=1.0)')

    def test_rewards_are_weighted_and_gated(self) -> None:
        answer = Reward(plugin("exact-answer"), name="answer")
        scorer = Scorer([answer, Reward("exact-answer", weight=-0.5, name="twice", only_if="answer > 0")])
        right, wrong = scorer.score([sums(3)[0], sums(3)[2]])
        self.assertEqual((right.reward, wrong.reward), (0.5, 0.0))
        self.assertEqual((right.not_called, wrong.not_called), ({}, {"twice": "gate"}))

    def test_a_poisoned_batch_loses_only_its_poison(self) -> None:
        poison = {
            "hang": ("endless-loop", "out-of-budget"),
            "crash": ("trap", "fault"),
            "bomb": ("memory-bomb", "out-of-budget"),
        }
        limits = {"hang": {"cpu": "200ms"}, "bomb": {"memory": "32MiB"}}
        rewards = [
            Reward(hostile(name), data_sources=[source], limits=limits.get(source, {}))
            for source, (name, _) in poison.items()
        ]
        rewards += [
            Reward(guest("abstain"), data_sources=["unsure"]),
            Reward(plugin("exact-answer"), data_sources=["sum"]),
        ]
        rows = [{**row, "data_source": "sum"} for row in sums(60)]
        for place, source in zip((10, 20, 30, 40), (*poison, "unsure")):
            rows[place]["data_source"] = source
        with Scorer(rewards, limits={"cpu": "20s"}) as scorer:
            outcomes = scorer.score(rows)
        expected = {10: "out-of-budget", 20: "fault", 30: "out-of-budget", 40: "abstained"}
        self.assertEqual([outcome.kind for outcome in outcomes], [expected.get(n, "scored") for n in range(60)])
        scores = [None if n in expected else float(n % 3 != 2) for n in range(60)]
        self.assertEqual([outcome.reward for outcome in outcomes], scores)
        calls = [next(iter(outcomes[place].rewards.values())) for place in expected]
        self.assertEqual([call.budget for call in calls], ["cpu", None, "memory", None])
        self.assertEqual([call.fault for call in calls], [None, "trap", None, None])
        self.assertIn("this plugin panics on every sample", calls[1].reason or "")
        self.assertIn("this plugin panics on every sample", calls[1].stderr)
        self.assertTrue(calls[1].backtrace)
        self.assertEqual(outcomes[40].reason, "abstain: this plugin abstains from every sample")

    def test_a_row_that_cannot_be_read_is_a_fault_of_its_own(self) -> None:
        good = sums(1)[0]
        unread = [
            {"prompt": "2 + 2?"},
            {**good, "when": object()},
            {**good, "nested": {1: 2}},
            {**good, "text": "\ud800"},
        ]
        outcomes = Scorer([plugin("exact-answer")]).score([good, *unread, good])
        self.assertEqual([outcome.kind for outcome in outcomes], ["scored", *["fault"] * 4, "scored"])
        self.assertEqual(
            outcomes[1].reason, "row 1: the row has none of `response`, `completion` and `messages` (it has: prompt)"
        )
        self.assertEqual(outcomes[2].reason, "row 2: column `when`: a value of type object is not JSON")
        self.assertEqual(outcomes[3].reason, "row 3: column `nested`: a key of a dict is of type int, not str")
        self.assertIn("row 4: column `text`: ", outcomes[4].reason or "")
        self.assertEqual((outcomes[1].id, outcomes[1].rewards), (None, {}))
        with self.assertRaisesRegex(TypeError, "row 1 is of type str, not a dict of columns"):
            Scorer([plugin("exact-answer")]).score([good, "no row"])  # type: ignore[list-item]

    def test_values_arrive_as_plain_json(self) -> None:
        class Array:
            def __init__(self, value: object) -> None:
                self.value = value

            def tolist(self) -> object:
                return self.value

        scorer = Scorer([plugin("exact-answer")])
        for answer in (4, Array(4), 10**30, 4.5, True, [1, 2], (1, 2), Array([1, 2]), {"a": [None, Array(1.5)]}):
            text = {True: "true", 4.5: "4.5"}.get(answer) if isinstance(answer, (bool, float)) else None  # type: ignore[call-overload]
            value = answer.value if isinstance(answer, Array) else answer
            text = text or ("[1,2]" if isinstance(value, (list, tuple)) else str(value))
            if isinstance(value, dict):
                text = '{"a":[null,1.5]}'
            outcome = scorer.score_row(response=f"Answer: {text}", answer=answer)
            self.assertEqual((outcome.reward, outcome.rewards["exact-answer"].note), (1.0, text))
        deep: object = 1
        for _ in range(200):
            deep = [deep]
        self.assertIn("levels of lists and dicts", scorer.score_row(response="a", answer=deep).reason or "")

    def test_rows_may_come_from_a_generator_and_have_messages(self) -> None:
        answer = [{"role": "assistant", "content": "Answer: 4"}]
        rows = (
            {"prompt": [{"role": "user", "content": "2 + 2?"}], "completion": answer, "answer": "4"} for _ in range(3)
        )
        outcomes = Scorer([plugin("exact-answer")]).score(rows)
        self.assertEqual([outcome.reward for outcome in outcomes], [1.0] * 3)
        self.assertEqual([outcome.id for outcome in outcomes], ["data/row-0", "data/row-1", "data/row-2"])
        self.assertEqual(Scorer([plugin("exact-answer")]).score([]), [])

    def test_more_rows_than_are_in_flight_keep_their_order(self) -> None:
        outcomes = Scorer([plugin("exact-answer")]).score(sums(2500))
        self.assertEqual([outcome.reward for outcome in outcomes], [float(n % 3 != 2) for n in range(2500)])


class Groups(unittest.TestCase):
    def test_rows_with_the_same_id_are_a_group(self) -> None:
        rows = [
            {"id": id, "response": "x" * length} for id, length in [("a", 3), ("a", 1), ("b", 3), ("b", 2), ("a", 9)]
        ]
        outcomes = Scorer([guest("shortest")]).score(rows)
        self.assertEqual([outcome.reward for outcome in outcomes], [0.0, 1.0, 0.0, 1.0, 1.0])
        self.assertEqual([outcome.rewards["shortest"].metrics["index"] for outcome in outcomes], [0, 1, 0, 1, 0])

    def test_a_group_is_judged_whatever_the_ids(self) -> None:
        outcomes = Scorer([guest("shortest")]).judge([{"response": "x" * length} for length in (3, 1, 2)])
        self.assertEqual([outcome.reward for outcome in outcomes], [0.0, 1.0, 0.0])


def score_all(completions: list[str], **_: object) -> list[float]:
    return [1.0] * len(completions)


class Configuration(unittest.TestCase):
    def test_what_is_wrong_is_named(self) -> None:
        path = plugin("exact-answer")
        for error, message, make in [
            (GavelError, "absent.wasm", lambda: Scorer(["absent.wasm"])),
            (
                GavelError,
                'plugin `exact-answer` refuses its parameters {"prefx":"A"}: parameter `prefx`: unknown field `prefx`',
                lambda: Scorer([Reward(path, params={"prefx": "A"})]),
            ),
            (
                GavelError,
                "two plugins have the name `exact-answer`\nhint: rename one of them",
                lambda: Scorer([path, path]),
            ),
            (ValueError, "there is no standard reward `exact`", lambda: Scorer(["exact"])),
            (ValueError, "hint: did you mean `exact-answer`?", lambda: Scorer(["exact-anwser"])),
            (ValueError, "gavel_rl.build('my_reward.py') returns its path", lambda: Scorer(["my_reward.py"])),
            (TypeError, f"gavel_rl.build('{__file__}:score_all') returns", lambda: Scorer([score_all])),  # type: ignore[list-item]
            (TypeError, f"gavel_rl.build('{__file__}:score_all') returns", lambda: build(score_all)),  # type: ignore[arg-type]
            (ValueError, "there is no reward", lambda: Scorer([])),
            (ValueError, "limits.timeout: ", lambda: Scorer([path], limits={"timeout": 2})),
            (ValueError, "limits.cpu must be more than 0", lambda: Scorer([path], limits={"cpu": "0s"})),
            (ValueError, "limits.time: unknown field `time`", lambda: Scorer([path], limits={"time": "2s"})),
            (ValueError, "rewards[0].grant", lambda: Scorer([Reward(path, grant={"files": []})])),
            (
                ValueError,
                'rewards[0].only_if: "answer" is not a condition',
                lambda: Scorer([Reward(path, only_if="answer")]),
            ),
            (ValueError, 'the name "a b" of a reward must be a word', lambda: Scorer([Reward(path, name="a b")])),
            (TypeError, "`data_sources` of the reward", lambda: Scorer([Reward(path, data_sources="math")])),
            (TypeError, "`rewards` is one reward, not a list of them", lambda: Scorer("exact-answer")),
        ]:
            with self.subTest(message):
                with self.assertRaises(error) as raised:
                    make()
                self.assertIn(message, str(raised.exception))

    def test_limits_of_a_reward_come_before_limits_of_all(self) -> None:
        scorer = Scorer(
            [Reward(guest("loops"), limits={"fuel": 10**7}), Reward(guest("abstain"), weight=0)],
            limits={"fuel": 10**15, "cpu": "1h", "timeout": "1h"},
        )
        outcome = scorer.score_row(response="Answer: 7", answer="4")
        self.assertEqual((outcome.kind, outcome.rewards["loops"].budget), ("out-of-budget", "fuel"))
        self.assertGreater(outcome.rewards["abstain"].fuel or 0, 0)

    def test_a_closed_scorer_says_so(self) -> None:
        with Scorer([plugin("exact-answer")]) as scorer:
            self.assertEqual(scorer.score(sums(1))[0].reward, 1.0)
        scorer.close()
        with self.assertRaisesRegex(GavelError, "this Scorer is closed\nhint: create another one"):
            scorer.score(sums(1))

    def test_outcomes_and_scorers_are_pickled(self) -> None:
        scorer = Scorer([Reward(plugin("exact-answer"), weight=0.5)], seed=7)
        copy = pickle.loads(pickle.dumps(scorer))
        outcomes = scorer.score(sums(3))
        again = copy.score(sums(3))
        self.assertEqual([outcome.reward for outcome in again], [0.5, 0.5, 0.0])
        seeds = [[outcome.rewards["exact-answer"].seed for outcome in each] for each in (outcomes, again)]
        self.assertEqual(seeds[0], seeds[1])
        kept = pickle.loads(pickle.dumps(outcomes))
        self.assertEqual(kept, outcomes)
        self.assertEqual(Outcome.from_json(outcomes[0].to_json()), outcomes[0])
        self.assertNotEqual(kept[0], outcomes[2])

    def test_credit_is_typed(self) -> None:
        self.assertEqual(
            {name for name in dir(Credit) if not name.startswith("_")},
            {"trajectory", "message", "start", "end", "value"},
        )


if __name__ == "__main__":
    unittest.main()
