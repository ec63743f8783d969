"""Components that are built from functions in Python."""

import os
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

from gavel_rl import GavelError, Reward, Scorer, build

VERL = """
from words import answer_of

def compute_score(data_source, solution_str, ground_truth, extra_info=None, bonus=0.0):
    return 1.0 + bonus if answer_of(solution_str) == ground_truth else 0.0
"""
TRL = """
def is_short(completions, **columns):
    return [float(len(text) < 5) for text in completions]
"""


class Function(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def test_a_function_of_verl_and_a_file_that_it_imports(self) -> None:
        self.write("words.py", "def answer_of(text):\n    return text.rsplit(' ', 1)[-1]\n")
        component = build(self.write("my_reward.py", VERL))
        self.assertEqual(component, self.folder / "my_reward.wasm")
        scorer = Scorer([Reward(component, params={"bonus": 0.5})])
        rows = [{"response": f"Answer: {answer}", "ground_truth": "4"} for answer in (4, 5)]
        self.assertEqual([outcome.reward for outcome in scorer.score(rows)], [1.5, 0.0])
        self.assertEqual(list(scorer.score(rows)[0].rewards), ["my_reward"])
        self.assertEqual(sorted(os.listdir(self.folder)), ["my_reward.py", "my_reward.wasm", "words.py"])

    def test_a_function_of_trl_by_its_name(self) -> None:
        source = self.write("several.py", TRL + "\ndef other(x):\n    return x\n")
        with self.assertRaisesRegex(GavelError, r"has more than one function, or none; its functions: is_short, other\n"):
            build(source)
        component = build(f"{source}:is_short", self.folder / "short.wasm")
        self.assertEqual(component, self.folder / "short.wasm")
        self.assertEqual([Scorer([component]).score_row(response=text).reward for text in ("abc", "abcdef")], [1.0, 0.0])

    def test_what_will_not_work_in_the_sandbox_is_a_warning_or_an_error(self) -> None:
        source = self.write("reads.py", TRL + "\ndef _read():\n    return open('/etc/words')\n")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            build(source)
        said = "".join(str(warning.message) for warning in caught)
        self.assertRegex(said, "reads.py line 6: .*there are no files in the sandbox")
        source = self.write("asks.py", TRL + "\ndef _ask():\n    import subprocess\n")
        with self.assertRaisesRegex(GavelError, "asks.py line 6: `subprocess`: there are no processes in the sandbox"):
            build(source)

    def test_a_function_that_is_no_reward_is_refused(self) -> None:
        for text, message in [
            ("def score(text):\n    return 1.0\n", "takes neither `solution_str`, as a reward of verl, nor `completions`"),
            ("def compute_score(solution_str):\n    return 1.0\n", "`compute_score` of .* does not take `data_source`"),
            ("def score(:\n", "mine.py"),
        ]:
            with self.subTest(message), self.assertRaisesRegex(GavelError, message):
                build(self.write("mine.py", text))
        self.assertFalse((self.folder / "mine.wasm").exists())
        with self.assertRaisesRegex(GavelError, "cannot read .*absent.py"):
            build(self.folder / "absent.py")
        with self.assertRaisesRegex(OSError, "cannot write .*nowhere"):
            build(self.write("mine.py", TRL), self.folder / "nowhere" / "mine.wasm")

    def test_a_missing_tool_is_named_with_the_command_that_installs_it(self) -> None:
        source = self.write("mine.py", TRL)
        script = f"from gavel_rl import build\nbuild({str(source)!r})"
        without = {**os.environ, "PATH": "/nowhere"}
        without.pop("VIRTUAL_ENV", None)
        done = subprocess.run([sys.executable, "-c", script], env=without, cwd="/", capture_output=True, text=True)
        self.assertIn("componentize-py is not installed", done.stderr)
        self.assertIn("pip install componentize-py==", done.stderr)


if __name__ == "__main__":
    unittest.main()
