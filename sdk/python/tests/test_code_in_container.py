"""The example that runs code in containers, with a program in place of docker: it checks the options, and runs the
rest of the command here."""

import json
import os
import stat
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

import code_in_container
from gavel import InvalidInput, Reference, Sample, Unavailable

DOCKER = """#!/bin/bash
if [[ $1 == kill ]]; then echo "$2" >"$PLACE/killed"; exit; fi
# run --rm --interactive, the name, the limits, the image, and the command
[[ " $* " == *" --network=none "* && " $* " == *" --memory=1g "* && " $* " == *" --read-only "* ]] || exit 125
[[ " $* " == *" --name=gavel-"* ]] || exit 125
while [[ $1 == run || $1 == --* ]]; do shift; done
[[ $1 == gcc:15 ]] || { echo "no image $1" >&2; exit 125; }
shift
# A folder of this test in place of the container's.
arguments=()
for each in "$@"; do arguments+=("${each//\\/tmp\\//$PLACE/}"); done
[[ $HANGS != before ]] || exec sleep 60
[[ $HANGS != after ]] || { "${arguments[@]}"; exec sleep 60; }
exec "${arguments[@]}"
"""

# A compiler that never ends with this code.
CC = """#!/bin/bash
for each in "$@"; do [[ $each != *.c ]] || ! grep -q ENDLESS "$each" || while :; do sleep 1; done; done
exec "${CC:-cc}" "$@"
"""

ADD = '#include <stdio.h>\nint main(void) { int a, b; scanf("%d %d", &a, &b); printf("%d\\n", a + b); }\n'


class CodeInContainer(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        place = Path(folder.name)
        for name, text in [("docker", DOCKER), ("gcc", CC)]:
            (place / name).write_text(text)
            (place / name).chmod(stat.S_IRWXU)
        self.place = place
        environment = {"PATH": f"{place}:{os.environ['PATH']}", "PLACE": str(place), "HANGS": ""}
        patch = mock.patch.dict(os.environ, environment)
        patch.start()
        self.addCleanup(patch.stop)

    def score(self, code: str, truth: object, **columns: str):
        reference = Reference({"ground_truth": json.dumps(truth), **columns})
        return code_in_container.score(Sample(f"```c\n{code}\n```"), reference)

    def test_the_share_of_cases_that_pass_is_the_score(self) -> None:
        verdict = self.score(ADD, {"inputs": ["1 2\n", "3 4"], "outputs": ["3", "8"]})
        self.assertEqual((verdict.value, verdict.metrics["passed"]), (0.5, 1))
        self.assertEqual(verdict.note, "case 2: another output")

    def test_code_that_fails_is_told_apart(self) -> None:
        truth = {"inputs": ["1 2"], "outputs": ["3"]}
        for code, note in [
            ("int main(void) { return x; }", "it does not compile"),
            ("int main(void) { return 3; }", "it ended with the status 3"),
            ("int main(void) { return 99; }", "it ended with the status 1"),
        ]:
            with self.subTest(note):
                verdict = self.score(code, truth)
                self.assertEqual((verdict.value, verdict.note), (0.0, f"case 1: {note}"))

    def test_code_that_loops_runs_out_of_time(self) -> None:
        with mock.patch.object(code_in_container, "SECONDS", 1):
            verdict = self.score("int main(void) { for (;;); }", {"inputs": [""], "outputs": ["3"]})
        self.assertEqual(verdict.note, "case 1: it ran out of time or memory")

    def test_no_status_of_the_code_is_one_of_the_container(self) -> None:
        for status in [98, 124, 125, 126, 127]:
            with self.subTest(status):
                verdict = self.score(f"int main(void) {{ return {status}; }}", {"inputs": [""], "outputs": ["3"]})
                self.assertEqual((verdict.value, verdict.note), (0.0, f"case 1: it ended with the status {status}"))

    def test_a_compiler_that_does_not_end_fails_the_case(self) -> None:
        with mock.patch.object(code_in_container, "COMPILE_SECONDS", 1):
            verdict = self.score("/* ENDLESS */ int main(void) {}", {"inputs": [""], "outputs": ["3"]})
        self.assertEqual((verdict.value, verdict.note), (0.0, "case 1: it does not compile"))

    def test_a_process_that_outlives_the_program_does_not_delay_its_case(self) -> None:
        # It ends once the folder of this test is gone.
        code = f"""#include <stdio.h>
#include <unistd.h>
int main(void) {{
    if (fork() == 0) {{
        setsid();
        while (access("{self.place}/main.c", F_OK) == 0) sleep(1);
        return 0;
    }}
    puts("3");
}}
"""
        verdict = self.score(code, {"inputs": [""], "outputs": ["3"]})
        self.assertEqual((verdict.value, verdict.note), (1.0, None))

    def test_too_much_output_fails_the_case(self) -> None:
        code = '#include <stdio.h>\nint main(void) { for (;;) puts("3"); }'
        verdict = self.score(code, {"inputs": [""], "outputs": ["3"]})
        self.assertEqual(verdict.value, 0.0)

    def test_a_container_that_does_not_end_is_killed_and_fails_the_case(self) -> None:
        seconds = {"START_SECONDS": 2, "COMPILE_SECONDS": 2, "SECONDS": 1}
        with mock.patch.multiple(code_in_container, **seconds), mock.patch.dict(os.environ, {"HANGS": "after"}):
            verdict = self.score(ADD, {"inputs": ["1 2"], "outputs": ["3"]})
        self.assertEqual((verdict.value, verdict.note), (0.0, "case 1: its container did not end"))
        self.assertRegex((self.place / "killed").read_text(), "^gavel-[0-9a-f]{32}$")

    def test_a_container_that_does_not_start_is_killed_and_no_zero(self) -> None:
        seconds = {"START_SECONDS": 1, "COMPILE_SECONDS": 1, "SECONDS": 1}
        with mock.patch.multiple(code_in_container, **seconds), mock.patch.dict(os.environ, {"HANGS": "before"}):
            with self.assertRaises(Unavailable):
                self.score(ADD, {"inputs": ["1 2"], "outputs": ["3"]})
        self.assertTrue((self.place / "killed").exists())

    def test_rows_and_containers_that_do_not_work_are_no_zero(self) -> None:
        for truth in [{"inputs": ["1"]}, {"inputs": ["1"], "outputs": []}, {"inputs": ["1"], "outputs": [" "]}, 7]:
            with self.subTest(truth), self.assertRaises(InvalidInput):
                self.score(ADD, truth)
        with self.assertRaises(InvalidInput):
            self.score(ADD, {"inputs": ["1 2"], "outputs": ["3"]}, language="cobol")
        with self.assertRaises(Unavailable):
            # The program in place of docker has one image.
            self.score(ADD, {"inputs": ["1 2"], "outputs": ["3"]}, language="go")


if __name__ == "__main__":
    unittest.main()
