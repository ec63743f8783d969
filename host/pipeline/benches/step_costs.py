"""What a step of `gavel train` costs beside the work of the device: 1,000, 3,000 and 10,000 samples of 8 turns, written
by an agent, with three rewards, a record of each sample, and a checkpoint with the groups under way after each step. The
model has one layer of 16 numbers, and its thread is counted apart. A cost that grows as the samples do is the same in
each line.

    cargo xtask plugins
    python host/pipeline/benches/step_costs.py

lockstep  max_staleness = 1: groups are taken in the order of their draws
stream    stream = true, max_staleness = 1: groups are taken as they become whole

Figures are microseconds of processor time a sample, medians of the steps after the first:

first      the thread that starts samples, gathers groups, computes advantages and metrics, and writes
fast, slow the threads of plugins: the agent and the rewards
device     the thread of the model
saving     seconds of a checkpoint, by the clock
faults     page faults of all threads, for each sample
"""
import argparse
import json
import statistics
import tempfile
from pathlib import Path

import demo_runs
from processor_times import Watch

GROUP = 8
CONFIG = """
[model]
device = "cpu"
[model.init]
vocab_size = 259
hidden_size = 16
intermediate_size = 16
num_hidden_layers = 1
num_attention_heads = 2
max_position_embeddings = 1024

[data]
train = "{folder}/rows.jsonl"

[rollout]
group_size = {group}
max_tokens = 900
max_batch = 1024

[agent]
path = "target/plugins/debate.wasm"
reward_to = "last"
params = {{ rounds = 4, max_tokens = 1 }}

[[reward]]
name = "letter"
path = "target/plugins/format.wasm"
params = {{ pattern = '(?s).*[a-z].*' }}

[[reward]]
name = "answer"
path = "target/plugins/exact-answer.wasm"

[[reward]]
name = "length"
path = "target/plugins/length.wasm"
params = {{ max_response = 1000, buffer = 500 }}

[train]
learning_rate = 1e-3
max_tokens_per_micro_batch = 65536
validate_every = 1000

[checkpoint]
every = 1

[resources]
torch_threads = 1
"""
SCHEDULES = {"lockstep": (False, 1), "stream": (True, 1)}


def measure(schedule, samples):
    groups, (stream, staleness) = samples // GROUP, SCHEDULES[schedule]
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        rows = [{"prompt": f"Say a letter, and then the number {at}.", "answer": str(at)} for at in range(groups)]
        (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        settings = {"train.steps": given.steps, "train.prompts_per_step": groups, "schedule.stream": stream,
                    "schedule.max_staleness": staleness}
        watches = []
        metrics = demo_runs.run(given.gavel, folder, CONFIG.format(folder=folder, group=GROUP), settings,
                                lambda process: watches.append(Watch(process, folder)))
    steps = watches[0].steps()
    assert len(steps) == given.steps == len(metrics) - 1, (len(steps), len(metrics))
    assert metrics[-1]["num_turns/mean"] == 8, metrics[-1]["num_turns/mean"]
    # The last step starts nothing for the next one.
    middle = range(1, given.steps - 1)
    of_thread = lambda name: statistics.median(steps[at][name][0] for at in middle) / samples * 1e6
    return dict(
        schedule=schedule, samples=samples, first=of_thread("first"), fast=of_thread("fast lane"),
        slow=of_thread("slow lane"), device=of_thread("device"),
        saving=statistics.median(metrics[at + 1]["device_wait/saving"] for at in middle),
        faults=statistics.median(sum(step[1] for step in steps[at].values()) for at in middle) / samples,
    )


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--gavel", type=Path, default=demo_runs.root / "target/release/gavel")
parser.add_argument("--steps", type=int, default=4, help="steps of a run (4)")
parser.add_argument("--json", action="store_true", help="the results as JSON")
parser.add_argument("--samples", type=int, nargs="+", default=[1000, 3000, 10_000], help="samples of a step")
parser.add_argument("--schedules", nargs="+", choices=SCHEDULES, default=list(SCHEDULES))
given = parser.parse_args()
results = []
for schedule in given.schedules:
    for samples in given.samples:
        results.append(measure(schedule, samples))
        if not given.json:
            print("  ".join(f"{name} {value:.2f}" if isinstance(value, float) else f"{name} {value}"
                            for name, value in results[-1].items()), flush=True)
if given.json:
    print(json.dumps(results, indent=2))
