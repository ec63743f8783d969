"""The examples in the libraries that they are for, where these are installed; the wheel's own tests install none."""

# mypy: disable-error-code="import-not-found, import-untyped"

import asyncio
import importlib.util
import logging
import math
import os
import re
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

from components import guest

EXAMPLES = Path(__file__).parents[1] / "examples"
LIMITS = {"cpu": "2s"}


def setUpModule() -> None:
    logging.getLogger("gavel_rl").addHandler(logging.NullHandler())


def installed(name: str) -> Any:
    return unittest.skipUnless(importlib.util.find_spec(name), f"{name} is not installed")


def example(file: str) -> Any:
    """A module of an example."""
    spec = importlib.util.spec_from_file_location(Path(file).stem, EXAMPLES / file)
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@installed("verifiers")
class Verifiers(unittest.TestCase):
    """Tasks that verifiers scores, as it does after a rollout."""

    def score(self, task: Any, response: str, *before: Any) -> Any:
        import verifiers.v1 as vf

        about = vf.TraceTask(type=type(task).__name__, data=task.data, key=task.key, hash=task.hash)
        trace = vf.Trace(task=about, agent=vf.AgentInfo(config=vf.AgentConfig()))
        trace.nodes.append(vf.MessageNode(message=vf.UserMessage(content=task.data.prompt)))
        for parent, message in enumerate([*before, vf.AssistantMessage(content=response)]):
            sampled = message.role == "assistant"
            trace.nodes.append(vf.MessageNode(parent=parent, message=message, sampled=sampled))
        try:
            asyncio.run(task.score(trace))
        except vf.RolloutError as error:
            trace.record_error(error)
        return trace

    def test_the_example_scores(self) -> None:
        sums = example("verifiers/gavel_sums.py")
        task = next(iter(sums.SumsTaskset(sums.SumsConfig())))
        right = self.score(task, f"It is easy.\nAnswer: {task.data.answer}")
        self.assertEqual((right.reward, right.metrics["gavel/exact-answer/score"]), (1.0, 1.0))
        self.assertEqual(self.score(task, "Answer: no").reward, 0.0)

    def test_calls_of_tools_reach_the_reward(self) -> None:
        import verifiers.v1 as vf

        sums = example("verifiers/gavel_sums.py")
        task = sums.SumTask(sums.SumData(prompt="2 + 2?", answer="4"))
        call = vf.ToolCall(id="c", name="add", arguments='{"a": 2, "b": 2}')
        turns = vf.AssistantMessage(tool_calls=[call]), vf.ToolMessage(tool_call_id="c", content="4")
        trace = self.score(task, "Answer: 4", *turns)
        self.assertEqual(trace.reward, 1.0, trace.info)

    def test_a_sample_without_a_score_fails_its_trace(self) -> None:
        import verifiers.v1 as vf
        from gavel_rl.verifiers import RewardFunction

        sums = example("verifiers/gavel_sums.py")

        class Strict(sums.SumTask):  # type: ignore[misc, name-defined]
            gavel = vf.reward(RewardFunction([guest("loops")], limits=LIMITS))

        class Lenient(sums.SumTask):  # type: ignore[misc, name-defined]
            gavel = vf.reward(RewardFunction([guest("loops")], limits=LIMITS, no_score=-2.0))

        data = sums.SumData(prompt="2 + 2?", answer="4")
        self.assertEqual(self.score(Strict(data), "Answer: 4").reward, 1.0)
        loops = self.score(Strict(data), "Answer: 7")
        self.assertEqual((loops.ok, loops.rewards, loops.last_error.type), (False, {"gavel": None}, "TaskError"))
        self.assertRegex(loops.last_error.message, "NoScore: out-of-budget: loops: cpu: ")
        self.assertEqual(loops.metrics["gavel/out-of-budget"], 1.0)
        self.assertEqual(loops.info["gavel"]["outcome"], "out-of-budget")
        self.assertEqual(self.score(Lenient(data), "Answer: 7").reward, -2.0)

    def test_a_configuration_plugs_it_into_any_task(self) -> None:
        import verifiers.v1 as vf

        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "plugged.py")
            file.write_text(
                "from gavel_rl.verifiers import RewardFunction\nfunction = RewardFunction(['exact-answer'], name='sum')\n"
            )
            config = vf.TaskConfig(rewards={"gavel": {"fn": f"{file}:function", "weight": 0.5}})
            data = example("verifiers/gavel_sums.py").SumData(prompt="2 + 2?", answer="4")
            trace = self.score(vf.Task(data, config), "Answer: 4")
        self.assertEqual((trace.reward, trace.metrics["sum/scored"]), (0.5, 1.0))

    def test_the_configuration_of_prime_rl_has_its_environment(self) -> None:
        import tomllib
        from verifiers.v1.utils.loaders import resolve_env_config

        config = tomllib.loads((EXAMPLES / "verifiers/prime_rl.toml").read_text())
        example("verifiers/gavel_sums.py")
        env = resolve_env_config(config["orchestrator"]["train"]["source"][0]["env"])
        self.assertEqual(type(env.taskset).__name__, "SumsConfig")


@installed("inspect_ai")
class InspectAi(unittest.TestCase):
    """Tasks that inspect-ai evaluates, with responses that are given."""

    def evaluate(self, task: Any, responses: list[Any]) -> Any:
        from inspect_ai import eval
        from inspect_ai.log import read_eval_log
        from inspect_ai.model import ModelOutput, ModelUsage, get_model

        outputs = [
            response if isinstance(response, ModelOutput) else ModelOutput.from_content("mockllm/model", response)
            for response in responses
        ]
        for output in outputs:
            # Without it, the tokens are counted by a tokenizer that is downloaded.
            output.usage = ModelUsage()
        model = get_model("mockllm/model", custom_outputs=outputs)
        with tempfile.TemporaryDirectory() as folder:
            [log] = eval(task, model=model, log_dir=folder, display="none", max_connections=1)
            log = read_eval_log(log.location)
        self.assertEqual(log.status, "success", log.error)
        return log

    def test_the_example_scores(self) -> None:
        task = example("inspect_sums.py").sums(4)
        answers = [sample.target for sample in task.dataset]
        log = self.evaluate(task, [f"Answer: {answer}" for answer in (*answers[:3], "no")])
        [score] = log.results.scores
        self.assertEqual((score.name, score.metrics["mean"].value), ("gavel", 0.75))
        self.assertEqual(log.samples[0].scores["gavel"].metadata["plugins"]["exact-answer"]["score"], 1.0)

    def test_calls_of_tools_reach_the_reward(self) -> None:
        from gavel_rl.inspect_ai import gavel_scorer
        from inspect_ai import Task
        from inspect_ai.dataset import Sample
        from inspect_ai.model import ModelOutput
        from inspect_ai.solver import generate, use_tools
        from inspect_ai.tool import Tool, tool

        @tool
        def add() -> Tool:
            async def execute(a: int, b: int) -> int:
                """Adds.

                Args:
                    a: A number.
                    b: A number.
                """
                return a + b

            return execute

        task = Task(
            dataset=[Sample(input="2 + 2?", target="4")],
            solver=[use_tools(add()), generate()],
            scorer=gavel_scorer(["exact-answer"]),
        )
        call = ModelOutput.for_tool_call("mockllm/model", "add", {"a": 2, "b": 2})
        log = self.evaluate(task, [call, "Answer: 4"])
        self.assertEqual(
            [message.role for message in log.samples[0].messages], ["user", "assistant", "tool", "assistant"]
        )
        self.assertEqual(log.samples[0].scores["gavel"].value, 1.0, log.samples[0].scores["gavel"].explanation)

    def test_a_sample_without_a_score_is_unscored(self) -> None:
        from gavel_rl.inspect_ai import gavel_scorer
        from inspect_ai import Task
        from inspect_ai.dataset import Sample

        samples = [Sample(input="2 + 2?", target="4") for _ in range(3)]
        responses = ["Answer: 4", "Answer: 7", "Answer: 4"]

        def task(**options: Any) -> Task:
            return Task(dataset=samples, scorer=gavel_scorer([{"path": str(guest("loops"))}], limits=LIMITS, **options))

        log = self.evaluate(task(), responses)
        [score] = log.results.scores
        self.assertEqual((score.scored_samples, score.unscored_samples, score.metrics["mean"].value), (2, 1, 1.0))
        loops = log.samples[1].scores["gavel"]
        self.assertTrue(math.isnan(loops.value))
        self.assertEqual(loops.reason, "out-of-budget")
        self.assertRegex(loops.explanation, "loops: cpu: ")
        log = self.evaluate(task(no_score=-1.0), responses)
        self.assertEqual(log.results.scores[0].metrics["mean"].value, 1 / 3)


@installed("lm_eval")
class LmEval(unittest.TestCase):
    """The example's task, which lm-evaluation-harness evaluates."""

    def test_a_sample_without_a_score_is_left_out_of_the_mean(self) -> None:
        found = self.evaluate(EXAMPLES / "lm_eval")
        self.assertEqual((found["gavel,none"], found["gavel_scored,none"]), (0.75, 1.0))
        with tempfile.TemporaryDirectory() as folder:
            for file in (EXAMPLES / "lm_eval").iterdir():
                if file.is_file():
                    text = file.read_text().replace('"exact-answer"', repr(str(guest("loops"))))
                    Path(folder, file.name).write_text(text)
            found = self.evaluate(Path(folder))
        self.assertEqual((found["gavel,none"], found["gavel_scored,none"]), (1.0, 0.75))
        self.assertEqual(found["gavel_out_of_budget,none"], 0.25)

    def evaluate(self, folder: Path) -> dict[str, float]:
        import lm_eval
        from lm_eval.api.model import LM
        from lm_eval.tasks import TaskManager

        class Adds(LM):  # type: ignore[misc]
            """A model that adds, and answers 7 for one sum."""

            def generate_until(self, requests: Any) -> list[str]:
                sums = [sum(map(int, re.findall(r"\d+", request.args[0])[:2])) for request in requests]
                return [f"Answer: {7 if found == 96 else found}" for found in sums]

            loglikelihood = loglikelihood_rolling = generate_until

        here = Path.cwd()
        os.chdir(folder)
        try:
            tasks = TaskManager(include_path=str(folder))
            found = lm_eval.simple_evaluate(Adds(), tasks=["gavel_sums"], task_manager=tasks, bootstrap_iters=0)
        finally:
            os.chdir(here)
        results: dict[str, float] = found["results"]["gavel_sums"]
        return results


if __name__ == "__main__":
    unittest.main()
