"""Whether a policy learns to break its judge if samples that break it are dropped, and if they get the lowest score. The
model is the demo's. The judge gives 1 or -1, and loops for ever over wrong answers that begin with 5 or more.

    cargo xtask demo && cargo xtask plugins
    python host/pipeline/benches/broken_judge.py

dropped   on_outcome = { out-of-budget = "drop" }
lowest    on_outcome = { out-of-budget = "lowest-if-caused" }, the default

loops     share of the samples that break the judge, in the first ten steps and in the last ten: mean and range of the seeds
wrong     share of the samples that it scores -1, in the same steps
accuracy  on the validation set after the last step
"""
import json
import re
import statistics
import sys

import demo_runs

WINDOW = 10
JUDGE = """
[[reward]]
name = "answer"
path = "target/guests/loops.wasm"
weight = 1.0
limits = { cpu = "20ms" }
"""


def config():
    """The demo's configuration, with this judge in place of its rewards."""
    return re.sub(r"(?s)\[\[reward\]\].*?(?=\n\[train\])", JUDGE, demo_runs.demo_config())


def shares(steps):
    """Of the samples of these steps: those that break the judge, and those that it scores -1."""
    total = lambda key: sum(step.get(key, 0) for step in steps)
    samples = total("outcome/answer/scored") + total("outcome/answer/out-of-budget")
    loops = total("outcome/answer/caused-by/response") / samples
    # A mean of 1 and -1 says how many there are of each.
    scored = [(step["outcome/answer/scored"], step["reward/answer/mean"]) for step in steps]
    wrong = sum(count * (1 - mean) / 2 for count, mean in scored) / samples
    return loops, wrong


def measure(on_outcome, seed):
    settings = {"train.on_outcome.out-of-budget": on_outcome}
    steps = demo_runs.train(given, seed, config(), settings)[1:]
    first, last = shares(steps[:WINDOW]), shares(steps[-WINDOW:])
    return dict(on_outcome=on_outcome, seed=seed, loops=(first[0], last[0]), wrong=(first[1], last[1]),
                accuracy=steps[-1]["val/accuracy"])


given = demo_runs.arguments(demo_runs.parser(__doc__))
found = []
for seed in range(given.seeds):
    for on_outcome in ("drop", "lowest-if-caused"):
        found.append(measure(on_outcome, seed))
        print(json.dumps(found[-1]), file=sys.stderr, flush=True)
if given.json:
    print(json.dumps(found, indent=2))
else:
    spread = lambda values: f"{statistics.mean(values):6.1%} ({min(values):.1%} to {max(values):.1%})"
    for on_outcome in ("drop", "lowest-if-caused"):
        runs = [run for run in found if run["on_outcome"] == on_outcome]
        print(on_outcome)
        for name in ("loops", "wrong"):
            first, last = ([run[name][index] for run in runs] for index in (0, 1))
            print(f"  {name:9} {spread(first)}  ->  {spread(last)}")
        print(f"  accuracy  {spread([run['accuracy'] for run in runs])}")
