"""What samplers gain over the uniform draw on the demo. All train on the same few rows, so that each comes several times:
the first rows of the demo's training set. The validation set is the demo's.

    cargo xtask demo && cargo xtask plugins
    python host/pipeline/benches/samplers.py

uniform       each row once an epoch, the default
near-half     target/plugins/near-half.wasm, with the rewards of a wrong and a right answer: the form alone is worth 0.1
until-solved  target/plugins/until-solved.wasm
progress      target/plugins/progress.wasm, over the rows as two datasets: the shorter questions, and the longer ones

accuracy  on the validation set, at each validation: mean over the seeds, with the lowest and the highest after the last
dead      share of the groups whose rewards are all equal, over all steps
distinct  rows of a step that differ, over all steps; the uniform draw has one for each group
seconds   of the sampler's calls in a step
"""
import json
import statistics
import sys
import tempfile
from pathlib import Path

import demo_runs
import pyarrow.parquet as parquet

EVERY = 10
SAMPLERS = ("uniform", "near-half", "until-solved", "progress")
PARAMS = {"near-half": "{ lowest = 0.1, highest = 1.1 }"}


def config(sampler, folder):
    text = demo_runs.demo_config()
    parts = ["shorter", "longer"] if sampler == "progress" else ["all"]
    files = json.dumps([str(folder / f"{part}.parquet") for part in parts])
    text = text.replace('train = "target/demo/train.parquet"', f"train = {files}")
    if sampler == "uniform":
        return text
    path = json.dumps(str(demo_runs.root / f"target/plugins/{sampler}.wasm"))
    text = text.replace("[data]\n", '[data]\nsampler = "plugin:draws"\n')
    return f"{text}\n[plugin.draws]\npath = {path}\nparams = {PARAMS.get(sampler, '{}')}\n"


def write_rows(folder):
    """The rows of all runs, in one file and in two."""
    rows = parquet.read_table(demo_runs.root / "target/demo/train.parquet")[:given.rows]
    order = sorted(range(rows.num_rows), key=lambda row: len(str(rows.slice(row, 1).to_pylist())))
    middle = len(order) // 2
    for name, part in [("all", range(len(order))), ("shorter", order[:middle]), ("longer", order[middle:])]:
        parquet.write_table(rows.take(list(part)), folder / f"{name}.parquet")


def measure(folder, sampler, seed):
    steps = demo_runs.train(given, seed, config(sampler, folder), {"train.validate_every": EVERY})
    mean = lambda key: statistics.mean(step.get(key, 0) for step in steps[1:])
    return dict(sampler=sampler, seed=seed, dead=mean("frac_reward_zero_std"), distinct=mean("sampler/distinct_rows"),
                seconds=mean("time/sampler"),
                accuracy=[(step["step"], step["val/accuracy"]) for step in steps if "val/accuracy" in step])


parser = demo_runs.parser(__doc__)
parser.add_argument("--rows", type=int, default=256, help="rows of the demo's training set (256)")
given = demo_runs.arguments(parser)
found = []
with tempfile.TemporaryDirectory() as folder:
    write_rows(Path(folder))
    for seed in range(given.seeds):
        for sampler in SAMPLERS:
            found.append(measure(Path(folder), sampler, seed))
            print(json.dumps(found[-1]), file=sys.stderr, flush=True)
if given.json:
    print(json.dumps(found, indent=2))
else:
    for sampler in SAMPLERS:
        runs = [run for run in found if run["sampler"] == sampler]
        curves = zip(*(run["accuracy"] for run in runs))
        curve = [(points[0][0], statistics.mean(accuracy for _, accuracy in points)) for points in curves]
        last = [run["accuracy"][-1][1] for run in runs]
        print(sampler)
        print("  accuracy ", "  ".join(f"{step}: {accuracy:.1%}" for step, accuracy in curve),
              f" ({min(last):.1%} to {max(last):.1%})")
        print(f"  dead      {statistics.mean(run['dead'] for run in runs):.1%}")
        if sampler != "uniform":
            print(f"  distinct  {statistics.mean(run['distinct'] for run in runs):.1f}")
            print(f"  seconds   {statistics.mean(run['seconds'] for run in runs):.4f}")
