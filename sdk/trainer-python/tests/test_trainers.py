"""The functions that libraries call, called as TRL 1.16, verl 0.9.1, verifiers 0.4 and lm-eval 0.4.13 do."""

import asyncio
import logging
import pickle
import unittest
from types import SimpleNamespace
from typing import Any

from components import guest
from gavel_rl import verifiers
from gavel_rl.lm_eval import ProcessResults
from gavel_rl.trl import RewardFunction
from gavel_rl.verl import compute_score
from test_processes import run

LIMITS = {"cpu": "2s"}


def setUpModule() -> None:
    logging.getLogger("gavel_rl").addHandler(logging.NullHandler())


class Trl(unittest.TestCase):
    def call(
        self, function: RewardFunction, answers: list[str]
    ) -> tuple[list[float | None], dict[str, object], dict[str, float]]:
        extra: dict[str, object] = {}
        metrics: dict[str, float] = {}
        rewards = function(
            prompts=["2 + 2?"] * len(answers),
            completions=[[{"role": "assistant", "content": f"Answer: {answer}"}] for answer in answers],
            completion_ids=[[1, 2]] * len(answers),
            answer=["4"] * len(answers),
            trainer_state=object(),
            log_extra=extra.__setitem__,
            log_metric=metrics.__setitem__,
            environments=None,
        )
        return rewards, extra, metrics

    def test_a_sample_without_a_score_has_no_reward(self) -> None:
        function = RewardFunction([guest("loops")], limits=LIMITS, name="sums")
        with self.assertLogs("gavel_rl", "WARNING") as logged:
            rewards, extra, metrics = self.call(function, ["4", "7", "3", "4"])
        self.assertEqual(rewards, [1.0, None, -1.0, 1.0])
        self.assertEqual(extra["sums_outcome"], ["scored", "out-of-budget", "scored", "scored"])
        self.assertEqual((metrics["sums/out-of-budget"], metrics["sums/scored"]), (0.25, 0.75))
        self.assertEqual(metrics["sums/loops/mean"], 1 / 3)
        self.assertIn("sums in TRL: a sample whose reward abstains", logged.output[0])
        self.assertIn("has no reward from it", logged.output[0])
        self.assertEqual(function.__name__, "sums")
        self.assertEqual(self.call(pickle.loads(pickle.dumps(function)), ["4"])[0], [1.0])

    def test_the_user_may_choose_a_number(self) -> None:
        function = RewardFunction([guest("loops")], limits=LIMITS, no_score=-2.0)
        self.assertEqual(self.call(function, ["4", "7"])[0], [1.0, -2.0])

    def test_completions_of_a_prompt_are_a_group(self) -> None:
        function = RewardFunction([guest("shortest")])
        rewards = function(prompts=["a", "a", "b", "b"], completions=["xxx", "x", "xxx", "xx"])
        self.assertEqual(rewards, [0.0, 1.0, 0.0, 1.0])

    def test_the_choice_is_logged_at_the_start_and_the_counts_at_the_end(self) -> None:
        ended = run(
            f"""
from components import guest
from gavel_rl.trl import RewardFunction
function = RewardFunction([guest("loops")], limits={LIMITS!r})
print(function(["2 + 2?"] * 2, ["Answer: 4", "Answer: 7"], answer=["4", "4"]))
"""
        )
        self.assertEqual(ended.stdout, "[1.0, None]\n")
        self.assertEqual(
            ended.stderr,
            "gavel in TRL: a sample whose reward abstains, fails, runs out of its budget or is unavailable "
            "has no reward from it\n"
            "gavel in TRL: 1 scored, 1 out-of-budget\n",
        )


class Verl(unittest.TestCase):
    def test_every_row_has_the_same_keys(self) -> None:
        async def run(answers: list[str]) -> list[dict[str, object]]:
            rewards = [{"path": str(guest("loops")), "weight": 0.5}]
            info = {"index": 1, "split": "train"}
            scores = [
                compute_score(
                    "sums", f"Answer: {answer}", "4", info, rewards=rewards, limits=LIMITS, reward_router_address=None
                )
                for answer in answers
            ]
            return await asyncio.gather(*scores)

        # verl starts a loop for each batch of a worker.
        for _ in range(2):
            right, loops = asyncio.run(run(["4", "7"]))
            self.assertEqual((right["score"], right["gavel_scored"], right["gavel_reason"]), (0.5, 1.0, ""))
            self.assertEqual((loops["score"], loops["gavel_scored"], loops["gavel_out_of_budget"]), (0.0, 0.0, 1.0))
            self.assertIn("loops: ", str(loops["gavel_reason"]))
            self.assertEqual(list(right), list(loops))


class Trace:
    """What a reward of verifiers reads and writes of a trace."""

    id = "5f1c"

    def __init__(self, *messages: dict[str, Any]) -> None:
        self.info: dict[str, Any] = {}
        self.metrics: dict[str, float] = {}
        self.record_metric = self.metrics.__setitem__
        self.record_metrics = self.metrics.update
        nodes = [
            SimpleNamespace(sampled=message["role"] == "assistant", message=SimpleNamespace(model_dump=dump(message)))
            for message in messages
        ]
        self.branches = [SimpleNamespace(nodes=nodes)] if nodes else []


def dump(fields: dict[str, Any]) -> Any:
    return lambda **_: dict(fields)


class Verifiers(unittest.TestCase):
    def score(self, function: verifiers.RewardFunction, answer: str) -> tuple[float, Trace]:
        task = SimpleNamespace(model_dump=dump({"idx": 0, "prompt": "2 + 2?", "answer": "4"}))
        call = {"id": "c", "type": "function", "name": "add", "arguments": '{"a": 2, "b": 2}'}
        trace = Trace(
            {"role": "user", "content": "2 + 2?"},
            {"role": "assistant", "tool_calls": [call], "provider_state": []},
            {"role": "tool", "tool_call_id": "c", "content": "4"},
            {"role": "assistant", "content": f"Answer: {answer}"},
        )
        try:
            return asyncio.run(function(task, trace)), trace
        except verifiers.NoScore as error:
            trace.info["error"] = str(error)
            return float("nan"), trace

    def test_a_sample_without_a_score_is_an_error(self) -> None:
        function = verifiers.RewardFunction([guest("loops")], limits=LIMITS, name="sums")
        with self.assertLogs("gavel_rl", "WARNING") as logged:
            reward, trace = self.score(function, "4")
        self.assertEqual((reward, trace.info["sums"]["id"]), (1.0, "5f1c"))
        self.assertEqual((trace.metrics["sums/scored"], trace.metrics["sums/loops/score"]), (1.0, 1.0))
        self.assertIn("sums in verifiers: a sample whose reward abstains", logged.output[0])
        self.assertIn("fails its trace", logged.output[0])
        _, trace = self.score(function, "7")
        self.assertRegex(trace.info["error"], "^out-of-budget: loops: cpu: ")
        self.assertEqual(trace.metrics["sums/out-of-budget"], 1.0)
        self.assertEqual(function.__name__, "sums")

    def test_the_user_may_choose_a_number(self) -> None:
        function = verifiers.RewardFunction([guest("loops")], limits=LIMITS, no_score=-2.0)
        self.assertEqual(self.score(function, "7")[0], -2.0)

    def test_a_judger_is_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "judges whole groups"):
            self.score(verifiers.RewardFunction([guest("shortest")]), "4")


class LmEval(unittest.TestCase):
    def test_a_sample_without_a_score_has_no_reward(self) -> None:
        function = ProcessResults([guest("loops")], limits=LIMITS)
        kinds = {"gavel_scored": 1.0, "gavel_abstained": 0.0, "gavel_fault": 0.0}
        kinds |= {"gavel_out_of_budget": 0.0, "gavel_unavailable": 0.0}
        self.assertEqual(function({"answer": "4"}, ["Answer: 4"]), {"gavel": 1.0, **kinds})
        loops = {**kinds, "gavel_scored": 0.0, "gavel_out_of_budget": 1.0}
        self.assertEqual(function({"answer": "4"}, ["Answer: 7"]), loops)
        lenient = ProcessResults([guest("loops")], limits=LIMITS, no_score=-2.0)
        self.assertEqual(lenient({"answer": "4"}, ["Answer: 7"]), {"gavel": -2.0, **loops})


if __name__ == "__main__":
    unittest.main()
