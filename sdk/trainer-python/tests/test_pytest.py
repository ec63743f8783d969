"""Golden cases as tests of pytest, which runs in processes of its own."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from components import guest, plugin
from test_command import gavel

CASES = """\
{"case": "right", "response": "Answer: 4", "answer": "4", "expect": {"score": 1}}

{"case": "wrong", "response": "Answer: 5", "answer": "4", "expect": {"score": 0}}
{"case": "right", "response": "Answer: 6", "answer": "6", "expect": {"score": 1}}
"""
FAILING = '{"case": "too strict", "response": "Answer: 5", "answer": "4", "expect": {"score": 1}}\n'

MODULE = """
import pytest
from gavel_rl.testing import golden_cases

@pytest.mark.parametrize("case", golden_cases({component!r}, "cases.jsonl"{more}), ids=str)
def test_answers(case):
    case.check()
"""


class Pytest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def pytest(self, *arguments: str) -> "tuple[int, str]":
        call = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
        done = subprocess.run(call, cwd=self.folder, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def module(self, component: Path, cases: str, more: str = "") -> None:
        self.write("test_it.py", MODULE.format(component=str(component), more=more))
        self.write("cases.jsonl", cases)

    def test_each_case_of_a_component_is_a_test(self) -> None:
        self.module(plugin("exact-answer"), CASES)
        status, said = self.pytest("-v")
        self.assertEqual(status, 0, said)
        for name in ("right (line 1)", "wrong", "right (line 4)"):
            self.assertIn(f"test_it.py::test_answers[{name}] PASSED", said)
        status, said = self.pytest("-v", "-k", "wrong")
        self.assertEqual((status, said.count(" PASSED")), (0, 1), said)

    def test_a_failure_shows_what_came(self) -> None:
        self.module(plugin("exact-answer"), CASES + FAILING)
        status, said = self.pytest()
        self.assertEqual(status, 1, said)
        self.assertIn("1 failed, 3 passed", said)
        self.assertIn("CaseFailed: too strict (cases.jsonl:5)", said)
        self.assertIn("scored 0", said)
        # The lines of the package that runs the case are no help.
        self.assertNotIn("testing.py", said)

    def test_a_group_is_judged_as_a_whole(self) -> None:
        rows = [("xxx", 0), ("x", 1), ("xx", 0)]
        cases = [f'{{"id": "a", "response": "{text}", "expect": {{"score": {score}}}}}\n' for text, score in rows]
        self.module(guest("shortest"), "".join(cases))
        status, said = self.pytest()
        self.assertEqual(status, 0, said)
        self.assertIn("3 passed", said)

    def test_parameters_may_be_given(self) -> None:
        self.module(plugin("exact-answer"), CASES, ', params={"prefix": "So:"}')
        status, said = self.pytest()
        self.assertEqual(status, 1, said)
        self.assertIn("2 failed, 1 passed", said)

    def test_a_broken_file_of_cases_is_named(self) -> None:
        self.module(plugin("exact-answer"), CASES + "{broken\n")
        status, said = self.pytest()
        self.assertEqual(status, 2, said)
        self.assertIn("cases.jsonl, line 5: not a JSON object", said)

    def test_a_component_that_does_not_load_is_named(self) -> None:
        self.module(self.folder / "absent.wasm", CASES)
        status, said = self.pytest()
        self.assertEqual(status, 1, said)
        self.assertIn("absent.wasm", said)
        self.assertIn("3 failed", said)

    def test_the_cases_of_a_plugin_s_folder_are_collected(self) -> None:
        made = gavel("plugin", "new", "mine", "--lang", "python", folder=str(self.folder))
        self.assertEqual(made.returncode, 0, made.stderr)
        cases = self.folder / "mine" / "cases.jsonl"
        count = len(cases.read_text().splitlines())
        (self.folder / "mine" / "test_main.py").unlink()
        # Another program's file.
        self.write("plugin.toml", "[plugin]\nname = 'x'\nversion = '1'\n")
        status, said = self.pytest("-v", "-n", "2")
        self.assertEqual(status, 0, said)
        self.assertIn(f"{count} passed", said)

        cases.write_text(cases.read_text() + FAILING.replace("answer", "ground_truth", 1))
        status, said = self.pytest()
        self.assertEqual(status, 1, said)
        self.assertIn(f"1 failed, {count} passed", said)
        self.assertIn(f"too strict ({cases}:{count + 1})", said)
        self.assertNotIn("Traceback", said)

        cases.write_text("{broken\n")
        status, said = self.pytest()
        self.assertEqual(status, 2, said)
        self.assertIn("cases.jsonl, line 1: not a JSON object", said)
        self.assertNotIn("Traceback", said)

    def test_workers_of_xdist_share_the_cases(self) -> None:
        self.module(plugin("exact-answer"), CASES + FAILING)
        status, said = self.pytest("-n", "3")
        self.assertEqual(status, 1, said)
        self.assertIn("1 failed, 3 passed", said)


if __name__ == "__main__":
    unittest.main()
