"""Wall clock behind a judge whose answer takes from 0 to b seconds, with each schedule: the demo's model and task, and a
judge that only sleeps, whose score counts nothing. b is 0.2, 1 and 3 steps of a run without delay, which are measured
first. This is the experiment of "delays of 1 to 40 s a sample" scaled to a small model.

    cargo xtask demo && cargo xtask plugins
    python host/pipeline/benches/slow_judge.py
    python host/pipeline/benches/slow_judge.py --steps 12 --runs 1    # a first look

A schedule is `stream/max_staleness`; k is one more than the steps that the longest delay lasts. The runs alternate:
each round has every schedule with every delay once. Figures are medians over the rounds:

wall      seconds of all steps (the sum of `time/step`: no loading, validation or checkpoint)
ratio     to the same schedule with a judge that answers at once
gain      of the wall clock against off/0 with the same delay
idle      share of the wall clock in which the device had nothing to do (the sum of `device_wait/total`)
accuracy  on the validation set after the last step, so after equal samples: lowest, mean and highest of the seeds

No schedule here has a cap on calls under way, as a pool of 256 threads would be: Gavel has no such key.
"""
import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

root = Path(__file__).resolve().parents[3]
JUDGE = """
[[reward]]
name = "slow"
path = "target/guests/sleepy.wasm"
weight = 0.0
params = { milliseconds = 0, random = MILLISECONDS }
grant = { clock = "real" }
limits = { timeout = "10m" }
"""


def newest_model():
    checkpoints = sorted((root / "runs/demo-sft/checkpoints").glob("step-*"))
    return checkpoints[-1] if checkpoints else None


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gavel", type=Path, default=root / "target/release/gavel")
    parser.add_argument("--model", type=Path, default=newest_model(), help="the checkpoint of the demo's warm-up")
    parser.add_argument("--steps", type=int, default=60, help="steps of a run (60)")
    parser.add_argument("--runs", type=int, default=5, help="rounds (5)")
    parser.add_argument("--seeds", type=int, default=3, help="seeds, which the rounds take in turn (3)")
    parser.add_argument("--delays", type=float, nargs="+", default=[0.2, 1, 3], help="b, in undelayed steps (0.2 1 3)")
    parser.add_argument("--json", action="store_true", help="the results as JSON")
    given = parser.parse_args()
    if given.model is None:
        parser.error("no checkpoint in runs/demo-sft: run `cargo xtask demo`, or name one with --model")
    return given


def schedules(delay):
    """The schedules to compare at a delay of so many steps: (stream, max_staleness)."""
    return [(False, 0), (True, 0), (False, 1), (True, 1), (True, math.ceil(delay) + 1)]


def train(schedule, milliseconds, seed):
    """The steps of a run, each with its metrics."""
    stream, max_staleness = schedule
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "run.toml"
        config.write_text((root / "demo/train.toml").read_text() + JUDGE.replace("MILLISECONDS", str(milliseconds)))
        settings = {
            "model.path": json.dumps(str(given.model.resolve())), "seed": seed, "train.steps": given.steps,
            "train.validate_every": given.steps, "checkpoint.every": given.steps, "log.dir": json.dumps(folder),
            "log.tensorboard": "false", "schedule.stream": json.dumps(stream), "schedule.max_staleness": max_staleness,
        }
        command = [given.gavel.resolve(), "train", "-c", config, "--json"]
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        run = Path(json.loads(done.stdout)["folder"])
        return [json.loads(line) for line in open(run / "metrics.jsonl")][1:]


def measure(schedule, milliseconds, seed):
    steps = train(schedule, milliseconds, seed)
    wall = sum(step["time/step"] for step in steps)
    idle = sum(step["device_wait/total"] for step in steps)
    return dict(wall=wall, idle=idle / wall, accuracy=steps[-1]["val/accuracy"], seed=seed,
                staleness=statistics.mean(step.get("off_policy/staleness_mean", 0.0) for step in steps))


def name(schedule):
    return f"{'on' if schedule[0] else 'off'}/{schedule[1]}"


def row(delay, schedule, plain, found, first):
    median = lambda runs, key: statistics.median(run[key] for run in runs)
    accuracies = [run["accuracy"] for run in found[: given.seeds]]
    wall = median(found, "wall")
    return dict(
        delay=delay, schedule=name(schedule), wall=wall, ratio=wall / median(plain, "wall"),
        gain=1 - wall / median(first, "wall"), idle=median(found, "idle"), staleness=median(found, "staleness"),
        accuracy=[min(accuracies), statistics.mean(accuracies), max(accuracies)],
    )


given = arguments()
step = statistics.median(step["time/step"] for step in train((False, 0), 0, 0))
report = lambda text: None if given.json else print(text, flush=True)
report(f"a step without delay takes {step:.3f} s; {given.runs} runs of {given.steps} steps, {given.seeds} seeds")

cases = [(delay, schedule) for delay in given.delays for schedule in schedules(delay)]
cases = [(0, schedule) for schedule in sorted({schedule for _, schedule in cases}, key=lambda s: (s[1], s[0]))] + cases
results = {case: [] for case in cases}
for number in range(given.runs):
    for delay, schedule in cases:
        # Uniform below this number of milliseconds.
        milliseconds = round(1000 * delay * step)
        found = measure(schedule, milliseconds, number % given.seeds)
        results[delay, schedule].append(found)
        print(f"round {number + 1}, b {delay:g}, {name(schedule)}: {found['wall']:.1f} s", file=sys.stderr, flush=True)

table = [row(delay, schedule, results[0, schedule], found, results[delay, (False, 0)])
         for (delay, schedule), found in results.items()]
if given.json:
    print(json.dumps(dict(step=step, steps=given.steps, runs=given.runs, seeds=given.seeds, results=table), indent=2))
report(f"{'b, steps':>8} {'schedule':>8} {'wall, s':>8} {'ratio':>6} {'gain':>6} {'idle':>6} {'staleness':>9}  accuracy")
for line in table:
    lowest, mean, highest = line["accuracy"]
    report(f"{line['delay']:8g} {line['schedule']:>8} {line['wall']:8.1f} {line['ratio']:6.2f} {line['gain']:6.1%} "
           f"{line['idle']:6.1%} {line['staleness']:9.2f}  {lowest:.3f} {mean:.3f} {highest:.3f}")
