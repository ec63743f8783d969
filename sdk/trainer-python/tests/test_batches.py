"""Record batches of Arrow, from pyarrow."""

import gc
import importlib.util
import json
import os
import tempfile
import unittest
from collections.abc import Iterator
from typing import TYPE_CHECKING

from components import guest, plugin, sums
from gavel_rl import GavelError, Reward, Scorer
from test_processes import LOOPING, run, status_of_fork

if TYPE_CHECKING:
    import pyarrow

    HAS_PYARROW = True
else:
    # It is large, and `cargo xtask test` installs it for the newest Python only.
    HAS_PYARROW = importlib.util.find_spec("pyarrow") is not None
    if HAS_PYARROW:
        import pyarrow
        import pyarrow.parquet


def columns(scorer: Scorer, batches: object) -> "pyarrow.Table":
    return pyarrow.Table.from_batches(map(pyarrow.record_batch, scorer.score_batches(batches)))  # type: ignore[arg-type]


@unittest.skipUnless(HAS_PYARROW, "pyarrow is not installed")
class Batches(unittest.TestCase):
    def test_columns_are_those_of_the_outcomes_of_the_same_rows(self) -> None:
        rows = [*sums(2500), {"prompt": "?", "response": None, "answer": "4"}]
        scorer = Scorer([Reward(plugin("exact-answer"), weight=0.5), Reward(guest("abstain"), weight=0)], seed=3)
        expected = scorer.score(rows)
        table = pyarrow.Table.from_pylist(rows)
        for batches in (
            table,
            table.to_reader(max_chunksize=700),
            iter(table.to_batches(max_chunksize=1)),
            table.to_batches(max_chunksize=1200),
            pyarrow.Table.from_batches(table.to_batches(max_chunksize=1111)),
        ):
            found = columns(scorer, batches)
            self.assertEqual(found["id"].to_pylist(), [outcome.id for outcome in expected])
            self.assertEqual(found["reward"].to_pylist(), [outcome.reward for outcome in expected])
            self.assertEqual(found["outcome"].to_pylist(), [outcome.kind for outcome in expected])
            self.assertEqual(found["reason"].to_pylist()[:-1], [outcome.reason for outcome in expected[:-1]])
            self.assertIn("row 2500: ", found["reason"][-1].as_py())
            scores = {"exact-answer": 1.0, "abstain": None}
            self.assertEqual(found["scores"][0].as_py(), scores)
        names = ["id", "reward", "outcome", "reason", "scores"]
        self.assertEqual(found.schema.names, names)

    def test_a_batch_has_the_outcomes_of_its_rows(self) -> None:
        scorer = Scorer([plugin("exact-answer")], seed=3)
        batches = pyarrow.Table.from_pylist(sums(10)).to_batches(max_chunksize=4)
        scored = list(scorer.score_batches(batches))
        self.assertEqual([len(batch) for batch in scored], [4, 4, 2])
        seeds = [
            [(outcome.id, outcome.reward, outcome.rewards["exact-answer"].seed) for outcome in outcomes]
            for outcomes in ([outcome for batch in scored for outcome in batch.outcomes], scorer.score(sums(10)))
        ]
        self.assertEqual(seeds[0], seeds[1])
        empty = pyarrow.Table.from_pylist(sums(1)).slice(0, 0)
        self.assertEqual([len(batch) for batch in scorer.score_batches(empty.to_batches() or [])], [])
        self.assertEqual(list(scorer.score_batches([])), [])
        with_empty = [batches[0], batches[0].slice(0, 0), batches[1].slice(1, 2)]
        for several in (with_empty, pyarrow.RecordBatchReader.from_batches(batches[0].schema, with_empty)):
            self.assertEqual([len(batch) for batch in scorer.score_batches(several)], [4, 2])

    def test_a_group_may_go_on_in_the_next_batch(self) -> None:
        lengths = [("a", 3), ("a", 1), ("a", 2), ("b", 3), ("b", 2)]
        table = pyarrow.Table.from_pylist([{"id": id, "response": "x" * length} for id, length in lengths])
        found = columns(Scorer([guest("shortest")]), table.to_batches(max_chunksize=2))
        self.assertEqual(found["reward"].to_pylist(), [0.0, 1.0, 0.0, 0.0, 1.0])

    def test_parts_of_a_dataset_are_scored_as_the_whole(self) -> None:
        rows = [{"completion": row["response"], "extra": {"truth": row["answer"]}} for row in sums(50)]
        table = pyarrow.Table.from_pylist(rows)
        scorer = Scorer([plugin("exact-answer"), Reward(guest("random"), weight=0)], seed=3)
        names = {"ground_truth": "extra.truth"}
        whole = [batch for batch in scorer.score_batches(table, columns=names)]
        parts = [
            batch
            for first in (30, 0)
            for batch in scorer.score_batches(table.slice(first, 30), first=first, columns=names)
        ]
        outcomes = [outcome for batch in (parts[1], parts[0]) for outcome in batch.outcomes]
        facts = [(outcome.id, outcome.reward, outcome.rewards["random"].note) for outcome in outcomes]
        expected = [outcome for batch in whole for outcome in batch.outcomes]
        self.assertEqual(facts, [(outcome.id, outcome.reward, outcome.rewards["random"].note) for outcome in expected])
        self.assertEqual(facts[49][0], "data/row-49")
        self.assertEqual(whole[0].to_json_lines().decode(), "".join(f"{one.to_json()}\n" for one in whole[0].outcomes))
        broken = [
            outcome.reason
            for batch in scorer.score_batches(table, columns={"ground_truth": "truth"})
            for outcome in batch.outcomes
        ]
        self.assertIn("row 0: the row has no column `truth`", str(broken[0]))

    def test_batches_of_a_file_are_read_as_they_are_asked_for(self) -> None:
        read = []

        def batches() -> "Iterator[pyarrow.RecordBatch]":
            for number in range(100):
                read.append(number)
                yield pyarrow.RecordBatch.from_pylist(sums(3))

        for count, batch in enumerate(Scorer([plugin("exact-answer")]).score_batches(batches())):
            self.assertEqual(pyarrow.record_batch(batch)["reward"].to_pylist(), [1.0, 1.0, 0.0])
        self.assertEqual((count, len(read)), (99, 100))

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rows.parquet")
            messages = [{"role": "assistant", "content": "Answer: 4"}]
            rows = [{"completion": messages, "reward_model": {"ground_truth": "4"}}] * 5
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
            file = pyarrow.parquet.ParquetFile(path)
            found = columns(Scorer([plugin("exact-answer")]), file.iter_batches(batch_size=2))
            self.assertEqual(found["reward"].to_pylist(), [1.0] * 5)

    def test_texts_of_every_kind_of_column_arrive(self) -> None:
        scorer = Scorer([plugin("exact-answer")])
        text = 'Answer: é "4" \U0001f600'
        plain = pyarrow.array([text] * 3)
        for kind in (pyarrow.string(), pyarrow.large_string(), pyarrow.string_view()):
            table = pyarrow.table({"response": plain.cast(kind), "answer": plain.cast(kind)})
            self.assertEqual(len(columns(scorer, table)), 3)
        table = pyarrow.table({"response": plain.dictionary_encode(), "answer": ["4", "5", "6"]})
        self.assertEqual(columns(scorer, table)["outcome"].to_pylist(), ["scored"] * 3)
        notes = [batch.outcomes[0].rewards["exact-answer"].note for batch in scorer.score_batches(table.to_batches())]
        self.assertEqual(notes, ['é "4" \U0001f600'])

    def test_columns_outlive_the_scorer(self) -> None:
        table = columns(Scorer([plugin("exact-answer")]), pyarrow.Table.from_pylist(sums(3)))
        gc.collect()
        self.assertEqual(table["reward"].to_pylist(), [1.0, 1.0, 0.0])
        self.assertIsNone(table.validate(full=True))

    def test_errors_are_named(self) -> None:
        scorer = Scorer([plugin("exact-answer")])
        with self.assertRaisesRegex(TypeError, "an object of type int has no record batches of Arrow"):
            list(scorer.score_batches([3]))  # type: ignore[list-item]
        with self.assertRaisesRegex(ValueError, "cannot read the record batches: "):
            list(scorer.score_batches(pyarrow.chunked_array([[1, 2]])))

        def breaks() -> "Iterator[pyarrow.RecordBatch]":
            yield pyarrow.RecordBatch.from_pylist(sums(3))
            raise RuntimeError("the disk is gone")

        with self.assertRaisesRegex(RuntimeError, "the disk is gone"):
            list(scorer.score_batches(breaks()))
        schema = pyarrow.RecordBatch.from_pylist(sums(1)).schema
        with self.assertRaisesRegex(ValueError, "the disk is gone"):
            list(scorer.score_batches(pyarrow.RecordBatchReader.from_batches(schema, breaks())))
        scored = scorer.score_batches(breaks())
        scorer.close()
        with self.assertRaisesRegex(GavelError, "is closed"):
            next(scored)
        self.assertEqual(list(scored), [])

    def test_a_forked_process_cannot_go_on(self) -> None:
        scored = Scorer([plugin("exact-answer")]).score_batches(pyarrow.Table.from_pylist(sums(9)).to_batches(3))
        self.assertEqual(len(next(scored)), 3)

        def is_refused() -> bool:
            try:
                next(scored)
            except GavelError as error:
                return "belongs to the process that forked this one" in str(error)
            return False

        self.assertEqual(status_of_fork(is_refused), 0)
        self.assertEqual([len(batch) for batch in scored], [3, 3])

    def test_ctrl_c_ends_the_calls(self) -> None:
        rows = json.dumps(sums(3))
        ended = run(
            f"""
import json, pyarrow
{LOOPING}
table = pyarrow.Table.from_pylist(json.loads({rows!r}))
try:
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    list(looping.score_batches(table))
except KeyboardInterrupt:
    print("interrupted", len(list(scorer.score_batches(table))[0]))
"""
        )
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "interrupted 3\n", ""))


if __name__ == "__main__":
    unittest.main()
