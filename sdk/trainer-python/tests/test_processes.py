"""Threads, event loops, signals and processes."""

import asyncio
import concurrent.futures
import multiprocessing
import os
import subprocess
import sys
import tempfile
import unittest
import warnings
from collections.abc import Callable

from components import guest, hostile, plugin, sums
from gavel_rl import GavelError, Scorer

#: A call that would take the tests an hour.
LOOPS = {"cpu": "1h", "timeout": "1h"}


def rewards_of(scorer: Scorer) -> list[float | None]:
    return [outcome.reward for outcome in scorer.score(sums(3))]


def rewards_of_another() -> list[float | None]:
    return rewards_of(Scorer([plugin("exact-answer")]))


class Threads(unittest.TestCase):
    def test_threads_share_a_scorer(self) -> None:
        scorer = Scorer([plugin("exact-answer")])
        with concurrent.futures.ThreadPoolExecutor(4) as threads:
            found = list(threads.map(lambda _: scorer.score(sums(50)), range(8)))
        for outcomes in found:
            self.assertEqual([outcome.reward for outcome in outcomes], [float(n % 3 != 2) for n in range(50)])


class EventLoops(unittest.TestCase):
    def test_an_event_loop_goes_on_while_rows_are_scored(self) -> None:
        async def run(scorer: Scorer) -> list[float | None]:
            return [outcome.reward for outcome in await asyncio.gather(*map(scorer.score_async, sums(300)))]

        scorer = Scorer([plugin("exact-answer")])
        # Each loop has its own outcomes.
        for _ in range(2):
            self.assertEqual(asyncio.run(run(scorer)), [float(n % 3 != 2) for n in range(300)])

    def test_groups_are_judged_in_an_event_loop(self) -> None:
        async def run(scorer: Scorer) -> list[list[float | None]]:
            groups = [[{"response": "x" * length} for length in lengths] for lengths in ((3, 1, 2), (1, 2), ())]
            judged = await asyncio.gather(*map(scorer.judge_async, groups))
            return [[outcome.reward for outcome in outcomes] for outcomes in judged]

        self.assertEqual(asyncio.run(run(Scorer([guest("shortest")]))), [[0.0, 1.0, 0.0], [1.0, 0.0], []])

    def test_a_cancelled_task_waits_no_longer_and_others_go_on(self) -> None:
        async def run() -> None:
            scorer = Scorer([hostile("endless-loop")], limits=LOOPS)
            task = asyncio.ensure_future(scorer.score_async(sums(1)[0]))
            await asyncio.sleep(0.05)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertEqual((await Scorer([plugin("exact-answer")]).score_async(sums(1)[0])).reward, 1.0)

        asyncio.run(run())

    def test_a_scorer_that_is_closed_ends_what_it_began(self) -> None:
        async def run() -> str:
            scorer = Scorer([guest("loops")], limits={"cpu": "100ms"})
            task = asyncio.ensure_future(scorer.score_async({"response": "Answer: 7", "answer": "4"}))
            await asyncio.sleep(0)
            scorer.close()
            return (await task).kind

        self.assertEqual(asyncio.run(run()), "out-of-budget")

    def test_a_row_that_cannot_be_read_and_a_judger(self) -> None:
        self.assertEqual(asyncio.run(Scorer([plugin("exact-answer")]).score_async({})).kind, "fault")
        with self.assertRaisesRegex(ValueError, "judges whole groups"):
            asyncio.run(Scorer([guest("shortest")]).score_async({"response": "a"}))


class Processes(unittest.TestCase):
    def test_a_forked_process_cannot_use_its_parent_s_scorer_but_its_own(self) -> None:
        scorer = Scorer([plugin("exact-answer")])
        rewards_of(scorer)

        def has_its_own() -> bool:
            nonlocal scorer
            try:
                rewards_of(scorer)
            except GavelError as error:
                if "belongs to the process that forked this one" not in str(error):
                    return False
                scored = rewards_of_another() == [1.0, 1.0, 0.0]
                scorer.close()
                del scorer
                return scored
            return False

        self.assertEqual(status_of_fork(has_its_own), 0)
        self.assertEqual(rewards_of(scorer), [1.0, 1.0, 0.0])

    def test_a_spawned_process_has_a_copy(self) -> None:
        scorer = Scorer([plugin("exact-answer")])
        with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as processes:
            self.assertEqual(processes.submit(rewards_of, scorer).result(), [1.0, 1.0, 0.0])


def status_of_fork(is_right: Callable[[], bool]) -> int:
    """The status of a forked process: 0 if what must be right there is so."""
    with warnings.catch_warnings():
        # Python warns of a fork of a process with threads.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if is_right() else 2
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1]


def run(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a script in a process of its own, which must end by itself."""
    # A process that a shell starts in the background ignores Ctrl-C, and so would this one.
    interruptible = "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    script = "import asyncio, os, signal, sys, threading, time\n" + interruptible + script
    folder = os.path.dirname(os.path.abspath(__file__))
    variables = {**os.environ, "PYTHONPATH": folder, **environment}
    return subprocess.run([sys.executable, "-c", script], env=variables, capture_output=True, text=True, timeout=120)


LOOPING = f"""
from components import hostile, plugin, sums
from gavel_rl import Scorer
looping = Scorer([hostile("endless-loop")], limits={LOOPS!r})
scorer = Scorer([plugin("exact-answer")])
"""


class Endings(unittest.TestCase):
    def assert_ends(self, script: str, printed: str) -> None:
        ended = run(LOOPING + script)
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, printed, ""))

    def test_ctrl_c_ends_a_call(self) -> None:
        self.assert_ends(
            """
def interrupt():
    # Once the call loops: what comes before it takes less processor time.
    while time.process_time() < begun + 1:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)
begun = time.process_time()
try:
    threading.Thread(target=interrupt).start()
    looping.score(sums(3))
except KeyboardInterrupt:
    print("interrupted", scorer.score(sums(1))[0].reward)
""",
            "interrupted 1.0\n",
        )

    def test_ctrl_c_ends_an_event_loop(self) -> None:
        self.assert_ends(
            """
async def run():
    # Once this waits for the call.
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    asyncio.get_running_loop().call_soon(timer.start)
    await looping.score_async(sums(1)[0])
try:
    asyncio.run(run())
except KeyboardInterrupt:
    print("interrupted", scorer.score(sums(1))[0].reward)
""",
            "interrupted 1.0\n",
        )

    def test_the_interpreter_ends_while_a_thread_scores(self) -> None:
        self.assert_ends(
            """
threading.Thread(target=looping.score, args=(sums(3),), daemon=True).start()
time.sleep(0.3)
print("free")
""",
            "free\n",
        )

    def test_the_interpreter_ends_while_tasks_wait(self) -> None:
        self.assert_ends(
            """
async def run():
    tasks = [asyncio.ensure_future(looping.score_async(row)) for row in sums(3)]
    await asyncio.sleep(0.1)
    print((await scorer.score_async(sums(1)[0])).reward)
asyncio.run(run())
""",
            "1.0\n",
        )

    def test_components_are_compiled_by_this_interpreter_in_a_child(self) -> None:
        with tempfile.TemporaryDirectory() as cache:
            script = "from components import guest\nfrom gavel_rl import Scorer\nScorer([guest('abstain')])"
            other = run("sys.executable = '/bin/false'\n" + script, GAVEL_CACHE_DIR=cache)
            self.assertIn("the compiler ended with exit status: 1: it printed nothing", other.stderr)
            self.assertEqual(run(script, GAVEL_CACHE_DIR=cache).stderr, "")


if __name__ == "__main__":
    unittest.main()
