"""Rows a second of `Scorer.score`, `Scorer.score_batches` and `gavel score` (from file to file) with a reward in Rust, of
`Scorer.score_batches` with `reuse` and with verl's own kind of function as a component, and of verl's
RewardLoopManager with two Ray workers, with the function, with the reward in Rust and with the component. All give the
same scores to the same responses of 400 characters. It needs what `verl_loop.py` names.

    python sdk/trainer-python/benches/verl_rows.py

verl's workers have names, so only one manager can be there at a time: the three run one after the other, and the others
take turns with each of them.
"""
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import gavel_rl
import pyarrow
import ray
import verl_loop
from gavel_rl import Reward, Scorer, build

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
rust = {"path": "exact-answer", "params": {"prefix": "####"}}
wrapped = {"path": str(build(function))}

responses = [("step " * 80)[:390] + f"\n#### {at % 100}" for at in range(ROWS)]
truths = [str(at % 50) for at in range(ROWS)]
expected = [float(at % 100 == at % 50) for at in range(ROWS)]
rows = [{"response": response, "answer": truth} for response, truth in zip(responses, truths)]
table = pyarrow.Table.from_pylist(rows)
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
    """The same of this process, which drives the loop, and Ray's workers."""

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
        return super().used() + ticks / os.sysconf("SC_CLK_TCK")


loaded = Scorer([Reward(**rust)])
# The reward declares itself pure, so an instance may answer many calls.
loaded_reused = Scorer([Reward(**rust, reuse=1000)])
loaded_function = Scorer([Reward(**wrapped)])


def scorer():
    assert [outcome.reward for outcome in loaded.score(rows)] == expected


def batches(scorer):
    """Scores batches of 1,000 rows, and takes the columns."""
    scored = scorer.score_batches(table.to_batches(max_chunksize=1000))
    columns = pyarrow.Table.from_batches(pyarrow.record_batch(batch) for batch in scored)
    assert columns["reward"].to_pylist() == expected


def command():
    out = verl_loop.folder / "scores.jsonl"
    component = Path(gavel_rl.__file__).parent / "plugins/exact-answer.wasm"
    plugin = ["--plugin", f"reward={component}", "--params", json.dumps(rust["params"])]
    gavel = Path(sys.executable).with_name("gavel")
    subprocess.run([gavel, "score", *plugin, "--data", data, "--out", out], check=True, capture_output=True)
    assert [json.loads(line)["reward"] for line in open(out)] == expected


def measure(name, manager):
    """Rounds of the manager and of what needs no trainer, by turns."""
    whole = verl_loop.batch(responses, truths)

    def loop():
        assert verl_loop.scores(manager.compute_rm_score(whole)) == expected

    sides = {
        name: (Workers(), loop),
        "Scorer.score": (Own(), scorer),
        "Scorer.score_batches": (Own(), lambda: batches(loaded)),
        "Scorer.score_batches, reuse": (Own(), lambda: batches(loaded_reused)),
        "Scorer.score_batches, the function as a component": (Own(), lambda: batches(loaded_function)),
        "gavel score": (Children(), command),
    }
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
measure("verl's loop, the function as a component", verl_loop.start(verl_loop.gavel_function(), rewards=[wrapped]))
ray.shutdown()
