"""What scoring costs inside a training run of 1,024 prompts with 8 samples each: processor time of a sample, and how much
longer a step takes, on all cores and on one.

    cargo xtask plugins && sh host/plugin/benches/python/build.sh
    python host/pipeline/benches/scoring_in_training.py

The model is small and random, and a response has at most 32 tokens. Each case adds a reward, so that a case is compared
with the one before it:

rust     a pattern in Rust, a fresh instance a sample
judge    and a language model behind a server that answers after 100 ms, 256 requests at once; it sees whole groups
python   and a pattern in Python, a fresh instance a sample
reused   the same, but an instance of the Python reward answers 64 calls

Figures are of the second of two steps, by the clock or of the processor:

step, s       the whole step
wait, s       the part of it after the last response, in which only rewards were under way
plugins, µs   processor time of the plugins' threads, for each sample
others, µs    processor time of the run's first thread, for each sample
idle          the share of the step in which the model had nothing to do
"""
import argparse
import json
import os
import subprocess
import sys
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
hidden_size = 32
intermediate_size = 64
num_hidden_layers = 2
num_attention_heads = 4
max_position_embeddings = 256

[data]
train = "{folder}/rows.jsonl"

[rollout]
group_size = {group}
max_tokens = 32

[[reward]]
name = "letter"
path = "target/plugins/format.wasm"
params = {{ pattern = '(?s).*[a-f].*' }}

[train]
steps = 2
prompts_per_step = {prompts}
learning_rate = 1e-3
validate_every = 1000
max_steps_without_update = 10

[checkpoint]
every = 1000
"""
JUDGE = """
[[reward]]
name = "judge"
path = "target/plugins/llm-judge.wasm"
params = {{ mode = "single" }}
grant = {{ chat = ["judge"] }}
limits = {{ timeout = "5m" }}

[chat.judge]
base_url = "http://127.0.0.1:{port}/v1"
model = "judge"
concurrency = 256
"""
PYTHON = """
[[reward]]
name = "python"
path = "target/bench/answer.wasm"
"""
REUSED = PYTHON + "reuse = 64\n"


def cases(port):
    judge = JUDGE.format(port=port)
    return {"rust": "", "judge": judge, "python": judge + PYTHON, "reused": judge + REUSED}


def measure(case, added, cores):
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        rows = [{"prompt": f"Say the number {at}.", "answer": str(at)} for at in range(given.prompts)]
        (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        config = CONFIG.format(folder=folder, group=GROUP, prompts=given.prompts) + added
        watches = []
        metrics = demo_runs.run(given.gavel, folder, config, {},
                                lambda process: watches.append(Watch(process, folder)),
                                prefix=("taskset", "-c", ",".join(map(str, cores))))
    used, step, samples = watches[0].steps()[-1], metrics[-1], GROUP * given.prompts
    assert step["outcome/letter/scored"] == samples, step
    of_sample = lambda *threads: sum(used[thread][0] for thread in threads) / samples * 1e6
    return {"cores": len(cores), "case": case, "step, s": step["time/step"], "wait, s": step["time/wait_for_reward"],
            "plugins, µs": of_sample("fast lane", "slow lane"), "others, µs": of_sample("first"),
            "idle": step["perf/device_idle"]}


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--gavel", type=Path, default=demo_runs.root / "target/release/gavel")
parser.add_argument("--prompts", type=int, default=1024, help="prompts of a step (1024)")
parser.add_argument("--json", action="store_true", help="the results as JSON")
given = parser.parse_args()
command = [sys.executable, Path(__file__).with_name("chat_server.py"), "100"]
results = []
with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
    try:
        port = int(server.stdout.readline())
        cores = sorted(os.sched_getaffinity(0))
        for number in (len(cores), 1):
            for case, added in cases(port).items():
                results.append(measure(case, added, cores[:number]))
                if not given.json:
                    print("  ".join(f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}"
                                    for name, value in results[-1].items()), flush=True)
    finally:
        server.terminate()
if given.json:
    print(json.dumps(results, indent=2))
