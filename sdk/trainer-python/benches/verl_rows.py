"""Rows a second of `Scorer.score` with a reward in Rust, of `gavel score` with it from file to file, and of verl's
RewardLoopManager with two Ray workers, with verl's own kind of function in Python and with the reward in Rust. All give
the same scores to the same responses of 400 characters. It needs what `verl_loop.py` names.

    python sdk/trainer-python/benches/verl_rows.py

verl's workers have names, so only one manager can be there at a time: the two run one after the other, and
`Scorer.score` and `gavel score` take turns with each of them.
"""
import json
import os
import resource
import statistics
import subprocess
import time

import ray
import verl_loop
from gavel_rl import Reward, Scorer

ROWS, ROUNDS = 2000, 5
REWARD = r"""
import re

NUMBER = re.compile(r"####\s*(-?[0-9]+)")


def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    found = NUMBER.findall(solution_str)
    return float(bool(found) and found[-1] == ground_truth)
"""
function = verl_loop.folder / "reward_fn.py"
function.write_text(REWARD)
rust = {"path": str(verl_loop.ROOT / "target/plugins/exact-answer.wasm"), "params": {"prefix": "####"}}

responses = [("step " * 80)[:390] + f"\n#### {at % 100}" for at in range(ROWS)]
truths = [str(at % 50) for at in range(ROWS)]
expected = [float(at % 100 == at % 50) for at in range(ROWS)]
rows = [{"response": response, "answer": truth} for response, truth in zip(responses, truths)]
data = verl_loop.folder / "rows.jsonl"
data.write_text("".join(json.dumps(row) + "\n" for row in rows))


class Own:
    """Seconds of processor time of this process."""

    def used(self):
        used = resource.getrusage(resource.RUSAGE_SELF)
        return used.ru_utime + used.ru_stime


class Children(Own):
    """The same of the children that have ended, with their start."""

    def used(self):
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime


class Workers(Own):
    """The same of Ray's workers."""

    def used(self):
        ticks = 0
        for process in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{process}/stat") as file:
                    name, numbers = file.read().split("(", 1)[1].rsplit(")", 1)
            except OSError:
                continue
            if name.startswith("ray::"):
                ticks += sum(int(number) for number in numbers.split()[11:13])
        return ticks / os.sysconf("SC_CLK_TCK")


loaded = Scorer([Reward(**rust)])


def scorer():
    assert [outcome.reward for outcome in loaded.score(rows)] == expected


def command():
    out = verl_loop.folder / "scores.jsonl"
    plugin = ["--plugin", f"reward={rust['path']}", "--params", json.dumps(rust["params"])]
    call = [verl_loop.ROOT / "target/release/gavel", "score", *plugin, "--data", data, "--out", out]
    subprocess.run(call, check=True, capture_output=True)
    assert [json.loads(line)["reward"] for line in open(out)] == expected


def measure(name, manager):
    """Rounds of the manager, of `Scorer.score` and of `gavel score`, by turns."""
    whole = verl_loop.batch(responses, truths)

    def loop():
        assert verl_loop.scores(manager.compute_rm_score(whole)) == expected

    sides = {name: (Workers(), loop), "Scorer.score": (Own(), scorer), "gavel score": (Children(), command)}
    rounds = {side: [] for side in sides}
    for number in range(1 + ROUNDS):
        for side, (processor, run) in sides.items():
            used, begun = processor.used(), time.perf_counter()
            run()
            if number > 0:
                rounds[side].append((time.perf_counter() - begun, processor.used() - used))
    for side, found in rounds.items():
        seconds, used = (statistics.median(column) / ROWS for column in zip(*found))
        faster = statistics.median(theirs[0] / ours[0] for ours, theirs in zip(found, rounds[name]))
        print(json.dumps({"of": side, "rows_per_second": round(1 / seconds), "processor_us_a_row": round(used * 1e6),
                          "times_the_loop": round(faster, 2)}), flush=True)


measure("verl's loop, a function in Python", verl_loop.start(function))
ray.shutdown()
measure("verl's loop, Rust", verl_loop.start(verl_loop.gavel_function(), rewards=[rust]))
ray.shutdown()
