"""The `gavel` command of the wheel."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

from components import plugin, sums
from gavel_rl import Scorer

GAVEL = os.path.join(os.path.dirname(sys.executable), "gavel")


def gavel(*args: str, folder: str | None = None) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([GAVEL, *args], cwd=folder, capture_output=True, text=True)


class Command(unittest.TestCase):
    def test_it_scores_as_the_package_does(self) -> None:
        rows = sums(20)
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "rows.jsonl"), "w") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
            component = str(plugin("exact-answer"))
            done = gavel("score", "--data", "rows.jsonl", "--out", "out.jsonl", "--plugin", component, folder=folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(os.path.join(folder, "out.jsonl")) as file:
                rewards = [json.loads(line)["reward"] for line in file]
        self.assertEqual(rewards, [outcome.reward for outcome in Scorer([plugin("exact-answer")]).score(rows)])

    def test_a_plugin_is_made_built_and_tested(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for words in (["new", "mine", "--lang", "python"], ["build", "mine"], ["test", "mine"]):
                done = gavel("plugin", *words, folder=folder)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertRegex(done.stdout, r"^mine: \d+ cases passed")

    def test_errors_have_their_status(self) -> None:
        done = gavel("score", "--data", "nowhere.jsonl", "--out", "-", "--plugin", "nowhere.wasm")
        self.assertEqual(done.returncode, 2)
        self.assertIn("nowhere", done.stderr)
        done = gavel("train", "-c", "run.toml")
        self.assertEqual(done.returncode, 2)
        self.assertIn("needs the program gavel-models", done.stderr)

    def test_a_reader_that_goes_is_no_crash(self) -> None:
        running = subprocess.Popen([GAVEL, "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert running.stdout is not None
        running.stdout.close()
        _, said = running.communicate()
        self.assertGreaterEqual(running.returncode, 0, said)


if __name__ == "__main__":
    unittest.main()
