"""Wall clock of each schedule behind a judge whose answer takes from 0 to b seconds. The model and the task are the
demo's. The judge only sleeps, and its score has the weight 0. b is 0.2, 1 and 3 steps of a run without delay, which is
measured first. This is the experiment of "delays of 1 to 40 s a sample" scaled to a small model.

    cargo xtask demo && cargo xtask plugins
    python host/pipeline/benches/slow_judge.py
    python host/pipeline/benches/slow_judge.py --steps 12 --runs 1    # a first look

A schedule is `stream/max_staleness`; k is one more than the steps that the longest delay lasts. `capped` is on/1 with
room for the calls of a quarter of a batch, as a pool of 256 threads has for a batch of 1024; the room is plugin memory.
The runs alternate: each round has every schedule with every delay once. Figures are medians over the rounds:

wall      seconds of all steps (the sum of `time/step`: no loading, validation or checkpoint)
ratio     to the same schedule with a judge that answers at once
gain      of the wall clock against off/0 with the same delay
idle      share of the wall clock in which the device had nothing to do (the sum of `device_wait/total`)
accuracy  on the validation set after the last step, so after equal samples: lowest, mean and highest of the seeds
"""
import json
import math
import statistics
import sys
from typing import NamedTuple

import demo_runs

JUDGE = """
[[reward]]
name = "slow"
path = "target/guests/sleepy.wasm"
weight = 0.0
params = { milliseconds = 0, random = MILLISECONDS }
grant = { clock = "real" }
limits = { timeout = "10m" }
"""
# What 64 calls of the judge take, of the 256 of a batch.
CAP = "79MiB"


def arguments():
    parser = demo_runs.parser(__doc__)
    parser.add_argument("--runs", type=int, default=5, help="rounds, which take the seeds in turn (5)")
    parser.add_argument("--delays", type=float, nargs="+", default=[0.2, 1, 3], help="b, in undelayed steps (0.2 1 3)")
    return demo_runs.arguments(parser)


class Schedule(NamedTuple):
    stream: bool
    max_staleness: int
    is_capped: bool = False

    def __str__(self):
        return f"{'on' if self.stream else 'off'}/{self.max_staleness}" + (" capped" if self.is_capped else "")


SYNCHRONOUS = Schedule(False, 0)


def schedules(delay):
    """The schedules to compare at a delay of this many steps."""
    k = math.ceil(delay) + 1
    uncapped = [SYNCHRONOUS, Schedule(True, 0), Schedule(False, 1), Schedule(True, 1), Schedule(True, k)]
    return uncapped + [Schedule(True, 1, is_capped=True)]


def train(schedule, milliseconds, seed):
    """The steps of a run, each with its metrics."""
    settings = {
        "schedule.stream": schedule.stream, "schedule.max_staleness": schedule.max_staleness, "limits.memory": "2MiB",
    }
    if schedule.is_capped:
        settings["resources.plugin_memory"] = CAP
    config = demo_runs.demo_config() + JUDGE.replace("MILLISECONDS", str(milliseconds))
    return demo_runs.train(given, seed, config, settings)[1:]


def measure(schedule, milliseconds, seed):
    steps = train(schedule, milliseconds, seed)
    wall = sum(step["time/step"] for step in steps)
    idle = sum(step["device_wait/total"] for step in steps)
    return dict(wall=wall, idle=idle / wall, accuracy=steps[-1]["val/accuracy"], seed=seed,
                staleness=statistics.mean(step.get("off_policy/staleness_mean", 0.0) for step in steps))


def row(delay, schedule, plain, found, first):
    median = lambda runs, key: statistics.median(run[key] for run in runs)
    accuracies = [run["accuracy"] for run in found[: given.seeds]]
    wall = median(found, "wall")
    return dict(
        delay=delay, schedule=str(schedule), wall=wall, ratio=wall / median(plain, "wall"),
        gain=1 - wall / median(first, "wall"), idle=median(found, "idle"), staleness=median(found, "staleness"),
        accuracy=[min(accuracies), statistics.mean(accuracies), max(accuracies)],
    )


given = arguments()
step = statistics.median(step["time/step"] for step in train(SYNCHRONOUS, 0, 0))
report = lambda text: None if given.json else print(text, flush=True)
report(f"a step without delay takes {step:.3f} s; {given.runs} runs of {given.steps} steps, {given.seeds} seeds")

delayed = [(delay, schedule) for delay in given.delays for schedule in schedules(delay)]
plain = sorted({schedule for _, schedule in delayed}, key=lambda one: (one.max_staleness, one.stream, one.is_capped))
cases = [(0, schedule) for schedule in plain] + delayed
results = {case: [] for case in cases}
for number in range(given.runs):
    for delay, schedule in cases:
        # Uniform below this number of milliseconds.
        milliseconds = round(1000 * delay * step)
        found = measure(schedule, milliseconds, number % given.seeds)
        results[delay, schedule].append(found)
        print(f"round {number + 1}, b {delay:g}, {schedule}: {found['wall']:.1f} s", file=sys.stderr, flush=True)

table = [row(delay, schedule, results[0, schedule], found, results[delay, SYNCHRONOUS])
         for (delay, schedule), found in results.items()]
if given.json:
    print(json.dumps(dict(step=step, steps=given.steps, runs=given.runs, seeds=given.seeds, results=table), indent=2))
report(f"{'b, steps':>8} {'schedule':>11} {'wall, s':>8} {'ratio':>6} {'gain':>6} {'idle':>6} {'staleness':>9}  accuracy")
for line in table:
    lowest, mean, highest = line["accuracy"]
    report(f"{line['delay']:8g} {line['schedule']:>11} {line['wall']:8.1f} {line['ratio']:6.2f} {line['gain']:6.1%} "
           f"{line['idle']:6.1%} {line['staleness']:9.2f}  {lowest:.3f} {mean:.3f} {highest:.3f}")
