"""Rewards on Ray, with a cluster on this machine."""

import asyncio
import importlib.util
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cluster
from components import guest, plugin, sums
from gavel_rl import Reward, Scorer
from judge import Judge, asks

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.parquet
    import ray

    HAS_RAY = True
else:
    # It is too large for `cargo xtask test`.
    HAS_RAY = importlib.util.find_spec("ray") is not None
    if HAS_RAY:
        import pyarrow
        import pyarrow.parquet
        import ray

GAVEL = os.path.join(os.path.dirname(sys.executable), "gavel")
#: How long something may take that takes a second on a quiet machine.
PATIENCE = 600


def wait_until(holds: Any, what: str) -> None:
    give_up = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > give_up:
            raise AssertionError(f"after {PATIENCE} s: {what}")
        time.sleep(0.05)


def groups(count: int) -> list[dict[str, Any]]:
    """Rows in groups of five, which the borders of shards divide."""
    return [
        {**row, "response": row["response"] + "!" * (number % 7), "id": f"task {number // 5}"}
        for number, row in enumerate(sums(count))
    ]


def write(folder: str, rows: list[dict[str, Any]], files: int) -> str:
    data = os.path.join(folder, "rows")
    os.mkdir(data)
    size = -(-len(rows) // files)
    for number in range(files):
        part = pyarrow.Table.from_pylist(rows[number * size : (number + 1) * size])
        pyarrow.parquet.write_table(part, os.path.join(data, f"{number}.parquet"), row_group_size=37)
    return data


def facts(line: str) -> Any:
    """What must not depend on where a row was scored: all but times, memory and what was used."""
    outcome = json.loads(line)
    for call in outcome["plugins"].values():
        for use in ("elapsed_us", "cpu_us", "peak_memory"):
            del call[use]
    return outcome


def scored(out: str) -> list[Any]:
    parts = sorted(Path(out).glob("part-*.jsonl"))
    return [facts(line) for part in parts for line in part.read_text().splitlines()]


class WithoutRay(unittest.TestCase):
    def test_the_error_says_what_to_install(self) -> None:
        code = "import sys; sys.modules['ray'] = None; import gavel_rl.ray"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("hint: pip install 'ray[data]'", done.stderr)


@unittest.skipUnless(HAS_RAY, "ray is not installed")
class OnRay(unittest.TestCase):
    address: str

    @classmethod
    def setUpClass(cls) -> None:
        # More processors than the pools of three, beside which Ray divides a dataset.
        started = cluster.start(cpus=6, store=150 << 20)
        cls.addClassCleanup(started.shutdown)
        cls.address = started.address
        ray.init(address=cls.address, logging_level=logging.ERROR, log_to_driver=False)
        cls.addClassCleanup(ray.shutdown)
        ray.data.DataContext.get_current().enable_progress_bars = False

    def setUp(self) -> None:
        self.judge = Judge()
        self.addCleanup(self.judge.close)

    def test_a_pool_adds_columns(self) -> None:
        from gavel_rl.ray import score_dataset

        rows = [{**row, "number": number} for number, row in enumerate(sums(500))]
        dataset = ray.data.from_arrow(pyarrow.Table.from_pylist(rows)).repartition(4)
        found = score_dataset(dataset, [plugin("exact-answer")], batch_size=60).take_all()
        found.sort(key=lambda row: row["number"])
        expected = Scorer([plugin("exact-answer")]).score(rows)
        self.assertEqual([row["number"] for row in found], list(range(500)))
        self.assertEqual([row["reward"] for row in found], [outcome.reward for outcome in expected])
        self.assertEqual({row["outcome"] for row in found}, {"scored"})
        self.assertEqual(found[0]["scores"], {"exact-answer": 1.0})

    def test_a_judger_gets_whole_groups(self) -> None:
        from gavel_rl.ray import score_dataset

        rows = [{"response": "x" * (1 + (number * 7) % 11), "task": number % 5} for number in range(60)]
        dataset = ray.data.from_arrow(pyarrow.Table.from_pylist(rows)).repartition(6)
        with self.assertRaisesRegex(ValueError, 'hint: name the column of groups, group="id"'):
            score_dataset(dataset, [guest("shortest")])
        found = score_dataset(dataset, [guest("shortest")], group="task").take_all()
        scorer = Scorer([guest("shortest")])
        for task in range(5):
            group = [row for row in found if row["task"] == task]
            self.assertEqual(len(group), 12)
            expected = scorer.judge([{"response": row["response"]} for row in group])
            self.assertEqual([row["reward"] for row in group], [outcome.reward for outcome in expected])

    def test_a_job_has_the_lines_of_one_process(self) -> None:
        from gavel_rl.ray import score_parquet

        rows = groups(1000)
        rows[500]["response"] = None
        rewards = [
            Reward(plugin("exact-answer")),
            Reward(guest("shortest"), weight=0.5),
            Reward(guest("random"), weight=0),
        ]
        with tempfile.TemporaryDirectory() as folder:
            data, out = write(folder, rows, 3), os.path.join(folder, "scores")
            summary = score_parquet(data, out, rewards, seed=5)
            table = pyarrow.parquet.read_table(data)
            expected = [
                facts(outcome.to_json())
                for batch in Scorer(rewards, seed=5).score_batches(table)
                for outcome in batch.outcomes
            ]
            self.assertEqual(scored(out), expected)
            self.assertEqual((summary.rows, summary.unreadable), (1000, 1))
            self.assertEqual(summary.outcomes["scored"], sum(line["outcome"] == "scored" for line in expected))
            self.assertEqual(len(list(Path(out).glob("part-*"))), 16)
            self.assertEqual(
                sorted(path.name for path in Path(out).iterdir() if not path.name.startswith("part-")),
                ["job.json", "summary.json"],
            )
            # It is done, so the same call scores nothing again, and another one is refused.
            begun = [path.stat().st_mtime_ns for path in sorted(Path(out).iterdir())]
            self.assertEqual(score_parquet(data, out, rewards, seed=5), summary)
            self.assertEqual([path.stat().st_mtime_ns for path in sorted(Path(out).iterdir())], begun)
            with self.assertRaisesRegex(ValueError, "scores of another job, with other scorer"):
                score_parquet(data, out, rewards, seed=6)

    def test_the_command_goes_on_after_its_death(self) -> None:
        rows = [{"response": str(number)} for number in range(1000)]
        # The job cannot end before it is killed.
        rows[-1]["response"] = "hang"
        chat = "judge={" + ", ".join(f'{name} = "{value}"' for name, value in self.judge.chat.items()) + "}"
        asking = ["--plugin", str(guest("asks")), "--grant", 'asks={chat = ["judge"]}', "--chat", chat]
        with tempfile.TemporaryDirectory() as folder:
            data, out = write(folder, rows, 2), os.path.join(folder, "scores")
            command = [GAVEL, "score", "--data", data, *asking, "--timeout", f"{2 * PATIENCE}s"]
            on_ray = [*command, "--ray", self.address, "--out", out, "--json"]
            driver = subprocess.Popen(on_ray, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            try:
                wait_until(
                    lambda: any(".pending." not in path.name for path in Path(out).glob("checkpoint/*.parquet")),
                    "no shard is committed",
                )
            finally:
                driver.send_signal(signal.SIGKILL)
                driver.communicate()
            written = {path.stat().st_mtime_ns for path in Path(out).glob("shards/*.jsonl")}
            self.judge.released.set()
            done = subprocess.run(on_ray, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout)["rows"], 1000)
            kept = written & {path.stat().st_mtime_ns for path in Path(out).glob("part-*")}
            self.assertTrue(kept, "it began anew")
            alone = os.path.join(folder, "alone.jsonl")
            subprocess.run([*command, "--out", alone], check=True, capture_output=True)
            self.assertEqual(scored(out), [facts(line) for line in Path(alone).read_text().splitlines()])

    def test_a_rate_holds_over_all_workers(self) -> None:
        from gavel_rl.ray import score_dataset

        rows = [{"response": str(number)} for number in range(90)]
        dataset = ray.data.from_arrow(pyarrow.Table.from_pylist(rows)).repartition(6)
        limiter = {"judge": {"requests_per_second": 20, "concurrency": 2}}
        pool = ray.data.ActorPoolStrategy(size=3)
        found = score_dataset(
            dataset, [asks()], chat={"judge": {**self.judge.chat, "limit": "judge"}}, limiter=limiter, compute=pool
        ).take_all()
        self.assertEqual({row["reward"] for row in found}, {1.0})
        self.assertEqual(self.judge.asked, 90)
        # With a rate for each worker, it would be a third of that.
        self.assertGreater(self.judge.times[-1] - self.judge.times[0], 0.8 * 90 / 20)
        self.assertLessEqual(self.judge.most_at_once, 2)

    def test_an_endpoint_has_its_own_limit_once(self) -> None:
        from gavel_rl.ray import score_dataset

        rows = [{"response": str(number)} for number in range(60)]
        dataset = ray.data.from_arrow(pyarrow.Table.from_pylist(rows)).repartition(6)
        chat = {"judge": {**self.judge.chat, "concurrency": 1}}
        pool = ray.data.ActorPoolStrategy(size=3)
        found = score_dataset(dataset, [asks()], chat=chat, compute=pool).take_all()
        self.assertEqual({row["reward"] for row in found}, {1.0})
        self.assertEqual(self.judge.most_at_once, 1)

    def test_the_places_of_a_worker_that_dies_are_given_to_others(self) -> None:
        from gavel_rl.ray import SharedLimits, reward_actor

        limits = SharedLimits({"judge": {"concurrency": 1}})
        chat = {"judge": {**self.judge.chat, "limit": "judge"}}
        options: Any = {"chat": chat, "limiter": limits, "limits": {"timeout": "5m"}}
        first, second = (reward_actor([asks()], **options) for _ in range(2))
        first.score.remote({"response": "hang"})
        wait_until(lambda: self.judge.asked == 1, "the first row is not asked about")
        waiting = second.score.remote({"response": "1"})
        self.assertEqual(ray.wait([waiting], timeout=1)[0], [])
        ray.kill(first)
        self.assertEqual(ray.get(waiting, timeout=PATIENCE).reward, 1.0)

    def test_limits_of_a_name_are_shared_by_drivers(self) -> None:
        from gavel_rl.ray import SharedLimits

        SharedLimits({"judge": {"concurrency": 1}}, name="of the test")
        SharedLimits({"judge": {"concurrency": 1}}, name="of the test")
        with self.assertRaisesRegex(ValueError, "exist with other values"):
            SharedLimits({"judge": {"concurrency": 2}}, name="of the test")
        with self.assertRaisesRegex(ValueError, "limiter.judge.requests_per_second is 0"):
            SharedLimits({"judge": {"requests_per_second": 0.0}})
        with self.assertRaisesRegex(ValueError, "limiter.judge.share names a folder"):
            SharedLimits({"judge": {"share": "/tmp/limits"}})
        ray.kill(ray.get_actor("of the test", namespace="gavel"))

    def test_an_actor_scores_as_a_scorer(self) -> None:
        from gavel_rl.ray import reward_actor

        rows = sums(200)
        actor = reward_actor([plugin("exact-answer")], at_once=8)
        expected = [outcome.reward for outcome in Scorer([plugin("exact-answer")]).score(rows)]
        found = ray.get([actor.score.remote(row, caller=str(number % 3)) for number, row in enumerate(rows)])
        self.assertEqual([outcome.reward for outcome in found], expected)
        self.assertEqual([outcome.reward for outcome in ray.get(actor.score_all.remote(rows))], expected)
        judging = reward_actor([guest("shortest")])
        judged = ray.get(judging.judge.remote([{"response": "x" * length} for length in (3, 1, 2)]))
        self.assertEqual(
            [outcome.reward for outcome in judged],
            [
                outcome.reward
                for outcome in Scorer([guest("shortest")]).judge([{"response": "x" * n} for n in (3, 1, 2)])
            ],
        )

    def test_callers_take_turns(self) -> None:
        from gavel_rl.ray.actor import _Turns

        async def order() -> list[str]:
            turns, had = _Turns(1), []

            async def call(caller: str) -> None:
                async with turns.turn(caller):
                    had.append(caller)
                    await asyncio.sleep(0)

            calls = [asyncio.create_task(call(caller)) for caller in ["many"] * 6 + ["few", "few", "one"]]
            await asyncio.sleep(0)
            calls[3].cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            async with turns.turn("last"):
                pass
            return had

        self.assertEqual(asyncio.run(order()), ["many", "many", "few", "one", "many", "few", "many", "many"])


if __name__ == "__main__":
    unittest.main()
