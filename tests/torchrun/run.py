"""Runs `gavel train` under the real torchrun: two ranks against one process, and a rank that is killed and started again.

    python3 tests/torchrun/run.py

It builds nothing: `cargo xtask test` leaves the binary and the plugins that it needs. torchrun comes with PyTorch
(`pip install torch`); name another one with TORCHRUN.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GAVEL = ROOT / "target/release/gavel"
PLUGIN = ROOT / "target/plugins/format.wasm"
CONFIG = f"""
[model.init]
vocab_size = 259
hidden_size = 32
intermediate_size = 64
num_hidden_layers = 1
num_attention_heads = 2
max_position_embeddings = 64
[data]
train = "train.jsonl"
validation = "train.jsonl"
[rollout]
group_size = 4
max_tokens = 8
[[reward]]
name = "letter"
path = "{PLUGIN}"
params = {{ pattern = '(?s).*[a-z].*' }}
[train]
prompts_per_step = 4
mini_batch_prompts = 2
learning_rate = 1e-3
[checkpoint]
every = 5
[resources]
torch_threads = 1
plugin_threads = 1
"""
# What depends on a clock, or on the number of ranks.
VARIES = ("time/", "perf/", "device_wait/", "ranks/")


def metrics(folder):
    path = folder / "metrics.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def train(name, steps):
    return [str(GAVEL), "train", "-c", "run.toml", "--set", f"log.name={name}", "--set", f"train.steps={steps}"]


def start(torchrun, folder, command, restarts=0):
    options = ["--no-python", "--nproc-per-node", "2", "--max-restarts", str(restarts)]
    return subprocess.Popen([torchrun, *options, *command], cwd=folder)


def two_ranks_are_one_process(torchrun, folder):
    subprocess.run(train("one", 6), cwd=folder, check=True)
    assert start(torchrun, folder, train("two", 6)).wait(120) == 0, "torchrun failed"
    one, two = metrics(folder / "runs/one"), metrics(folder / "runs/two")
    assert len(one) == len(two) == 7, (len(one), len(two))
    for step, other in zip(one, two):
        for key, value in step.items():
            if key.startswith(VARIES) or "/latency_p" in key:
                continue
            found = other[key]
            assert abs(value - found) <= 1e-3 * max(abs(value), 1e-2), f"step {step['step']}: {key} {value} {found}"
    assert two[1]["ranks/size"] == 2


def a_killed_rank_is_started_again(torchrun, folder):
    agent = start(torchrun, folder, train("killed", 60), restarts=1)
    run = folder / "runs/killed"
    while len(metrics(run)) < 12:
        assert agent.poll() is None, "torchrun ended before a rank was killed"
        time.sleep(0.01)
    ranks = Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split()
    ranks = [int(pid) for pid in ranks if b"log.name=killed" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    os.kill(ranks[-1], signal.SIGKILL)
    assert agent.wait(120) == 0, "torchrun failed"
    assert [step["step"] for step in metrics(run)] == list(range(61)), "steps are missing or there twice"
    lines = [line for path in (run / "trajectories").iterdir() for line in path.read_text().splitlines()]
    samples = [json.loads(line)["id"] for line in lines]
    assert len(samples) == len(set(samples)) == 60 * 16, "samples are missing or there twice"
    assert not (folder / "runs/killed-2").exists(), "the run began anew"


def main():
    torchrun = os.environ.get("TORCHRUN") or shutil.which("torchrun")
    if torchrun is None:
        sys.exit("there is no torchrun: `pip install torch`, or name one with TORCHRUN")
    for path in (GAVEL, PLUGIN):
        if not path.exists():
            sys.exit(f"{path} is missing: run `cargo xtask test`")
    failed = 0
    for check in (two_ranks_are_one_process, a_killed_rank_is_started_again):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            rows = [json.dumps({"prompt": f"Say {row}"}) for row in range(40)]
            (folder / "train.jsonl").write_text("\n".join(rows) + "\n")
            (folder / "run.toml").write_text(CONFIG)
            try:
                check(torchrun, folder)
                print(f"ok      {check.__name__}", flush=True)
            except (AssertionError, subprocess.SubprocessError) as error:
                failed += 1
                print(f"FAILED  {check.__name__}: {error}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
