"""The components that the packages bring, by their names."""

import importlib.util
import json
import unittest

from gavel_rl import Reward, Scorer

IS_INSTALLED = importlib.util.find_spec("gavel_rl_plugins") is not None


class LargePlugins(unittest.TestCase):
    @unittest.skipIf(IS_INSTALLED, "gavel-rl-plugins is installed")
    def test_without_their_package_a_message_names_it(self) -> None:
        for name, make in [
            ("math-verify", lambda: Scorer(["math-verify"])),
            ("reasoning-gym", lambda: Scorer(["reasoning-gym"])),
            ("python", lambda: Scorer(["python-tests"], exec={"python": {"path": "python"}})),
            ("javascript", lambda: Scorer(["code-tests"], exec={"javascript": {"path": "javascript"}})),
        ]:
            with self.subTest(name):
                with self.assertRaises(ValueError) as raised:
                    make()
                message = f"`{name}` is in the package gavel-rl-plugins, which is not installed"
                self.assertEqual(str(raised.exception), f"{message}\nhint: pip install gavel-rl-plugins")

    @unittest.skipUnless(IS_INSTALLED, "gavel-rl-plugins is not installed")
    def test_rewards_are_found(self) -> None:
        entry = {"question": "2 + 2?", "answer": "4", "metadata": {"source_dataset": "chain_sum", "source_index": 0}}
        for name, wrong, right, row in [
            ("math-verify", "\\boxed{2}", "\\boxed{0.5}", {"ground_truth": "\\frac{1}{2}"}),
            ("reasoning-gym", "<answer>5</answer>", "<answer>4</answer>", {"ground_truth": "4", "entry": entry}),
        ]:
            with self.subTest(name), Scorer([name], limits={"cpu": "60s", "timeout": "5m"}) as scorer:
                outcomes = scorer.score([{"response": response, **row} for response in (right, wrong)])
                self.assertEqual([outcome.reward for outcome in outcomes], [1.0, 0.0])

    @unittest.skipUnless(IS_INSTALLED, "gavel-rl-plugins is not installed")
    def test_python_runs_the_code_of_a_response(self) -> None:
        limits = {"cpu": "60s", "timeout": "5m"}
        program = {"path": "python", "limits": limits}
        scorer = Scorer([Reward("python-tests", grant={"exec": ["python"]})], limits=limits, exec={"python": program})
        truth = json.dumps({"inputs": ["19 23"], "outputs": ["42"]})
        rows = [
            {"response": f"```python\nprint({code})\n```", "ground_truth": truth}
            for code in ("sum(map(int, input().split()))", "41")
        ]
        self.assertEqual([outcome.reward for outcome in scorer.score(rows)], [1.0, 0.0])

    @unittest.skipUnless(IS_INSTALLED, "gavel-rl-plugins is not installed")
    def test_javascript_runs_the_code_of_a_response(self) -> None:
        limits = {"cpu": "60s", "timeout": "5m"}
        program = {"path": "javascript", "limits": limits}
        reward = Reward("code-tests", params={"language": "javascript"}, grant={"exec": ["javascript"]})
        scorer = Scorer([reward], limits=limits, exec={"javascript": program})
        truth = json.dumps({"inputs": ["19 23"], "outputs": ["42"]})
        numbers = "require('fs').readFileSync(0, 'utf8').split(' ').map(Number)"
        rows = [
            {"response": f"```js\nconst [a, b] = {numbers}\nconsole.log({code})\n```", "ground_truth": truth}
            for code in ("a + b", "a - b")
        ]
        self.assertEqual([outcome.reward for outcome in scorer.score(rows)], [1.0, 0.0])


if __name__ == "__main__":
    unittest.main()
