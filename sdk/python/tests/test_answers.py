import json
import unittest
from pathlib import Path

import gavel

VECTORS = Path(__file__).parents[2] / "testdata/answers.jsonl"


class Answers(unittest.TestCase):
    def test_every_vector(self) -> None:
        for number, line in enumerate(VECTORS.read_text(encoding="utf-8").splitlines(), 1):
            row = json.loads(line)
            arguments = [row["text"], *([row["argument"]] if "argument" in row else [])]
            with self.subTest(line=number):
                self.assertEqual(getattr(gavel, row["function"])(*arguments), row["expect"])
