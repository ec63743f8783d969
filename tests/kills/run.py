"""Kills asynchronous runs at random moments, resumes them, and checks that no task is trained on twice and none is lost.

    cargo build --release --workspace && cargo xtask plugins
    python tests/kills/run.py                   # 50 kills
    python tests/kills/run.py --kills 8 --seed 7

A small random model is trained with a judge that sleeps, longer for longer responses. Each schedule gets an equal share
of the kills; SIGKILL comes at any moment from the start of the process on. A run that was killed before its first
checkpoint is started again, any other is resumed. At the end of each run

- every draw was trained on, dropped or is in the queue of the last checkpoint, exactly once, with all its samples;
- each step trained on as many groups as it has, none staler than allowed;
- the counts in the checkpoint (draws, and groups by what became of them) are those of the trajectories;
- `gavel replay` finds every recorded verdict again;
- where nothing depends on a clock, metrics and weights are those of a run that nobody killed, to the last bit.

Exits with 1 if a check fails, and then keeps the run's folder. Two cores take about four minutes.
"""
import argparse
import collections
import json
import random
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

root = Path(__file__).resolve().parents[2]
PROMPTS, GROUP = 4, 4
SCHEDULES = {
    "behind": "schedule.max_staleness=1",
    "both": "schedule.stream=true schedule.max_staleness=2",
    "partial": "schedule.stream=true schedule.max_staleness=2 schedule.partial_rollout=true",
    "filter": "schedule.stream=true schedule.max_staleness=2 train.filter_groups.max_num_gen_batches=3",
}
CONFIG = f"""
[model.init]
vocab_size = 259
hidden_size = 32
intermediate_size = 64
num_hidden_layers = 1
num_attention_heads = 2
num_key_value_heads = 1
max_position_embeddings = 64
tie_word_embeddings = true
[data]
train = "train.jsonl"
[rollout]
group_size = {GROUP}
max_tokens = 8
[[reward]]
name = "letter"
path = "TARGET/plugins/format.wasm"
params = {{ pattern = '(?s).*[a-z].*' }}
[[reward]]
name = "slow"
path = "TARGET/guests/sleepy.wasm"
weight = 0.0
params = {{ milliseconds = 5, each_byte = 3, random = 60 }}
grant = {{ clock = "real" }}
[train]
prompts_per_step = {PROMPTS}
mini_batch_prompts = 2
learning_rate = 1e-3
[checkpoint]
every = 1
[log]
tensorboard = false
"""


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def checkpoints(run):
    return [path for path in sorted((run / "checkpoints").glob("step-*")) if not path.name.endswith(".partial")]


def command(name, resume):
    settings = f"train.steps={given.steps} log.name={name} {SCHEDULES[name.split('-')[0]]}".split()
    sets = [part for setting in settings for part in ("--set", setting)]
    return [given.gavel.resolve(), "train", "-c", "train.toml", *sets, *(["--resume"] if resume else [])]


def start(name, resume):
    log = open(folder / f"{name}.log", "a")
    return subprocess.Popen(command(name, resume), cwd=folder, stdout=log, stderr=log)


def finish(name, process):
    if process.wait() != 0:
        raise SystemExit(f"{name}: exit status {process.returncode}\n{(folder / f'{name}.log').read_text()[-2000:]}")


def kill_and_resume(name, kills, window):
    """Kills the run up to this many times, then lets it end. Gives the number of kills and of new starts."""
    run, killed, new = folder / "runs" / name, 0, 0
    while True:
        resume = bool(checkpoints(run))
        if not resume:
            shutil.rmtree(run, ignore_errors=True)
            new += 1
        process = start(name, resume)
        if killed == kills:
            break
        try:
            # Longer each time, so that a run gets a checkpoint even on a machine that has become slower.
            process.wait(draw.uniform(0, window * 2 ** (new - 1)))
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            killed += 1
    finish(name, process)
    return killed, new


def check(name):
    """The failed checks of a run that ended."""
    run, wrong = folder / "runs" / name, []
    expect = lambda what, found, expected: None if found == expected else wrong.append(
        f"{what}: {found}, expected {expected}")
    rows = [row for file in sorted((run / "trajectories").glob("*.jsonl")) for row in lines(file)]
    last = checkpoints(run)[-1]
    state = json.loads((last / "state.json").read_text())
    expect("the last step", state["step"], given.steps)

    twice = [id for id, count in collections.Counter(row["id"] for row in rows).items() if count > 1]
    expect("samples that were recorded twice", twice, [])
    fates, members = {}, collections.Counter()
    for row in rows:
        number = (row["step"] - 1) * PROMPTS + row["group"]
        members[number] += 1
        fates.setdefault(number, set()).add(row.get("trained_step"))
    expect("draws with a part of their samples", [n for n, count in members.items() if count != GROUP], [])
    expect("draws with two fates", [n for n, found in fates.items() if len(found) > 1], [])
    queued = [line["draw"] for line in lines(last / "queue.jsonl")]
    expect("draws that have an end, and those in the queue", sorted([*members, *queued]), list(range(state["draws"])))

    trained = collections.Counter(step for found in fates.values() for step in found if step is not None)
    dropped = sum(found == {None} for found in fates.values())
    expect("groups of each step beyond its own", {s: n for s, n in trained.items() if n > PROMPTS}, {})
    if name.split("-")[0] != "filter":
        expect("groups of each step", trained, {step: PROMPTS for step in range(1, given.steps + 1)})
    counts = dict(state["groups"])
    expect("groups that are counted as trained on", counts.pop("trained", 0), sum(trained.values()))
    expect("groups that are counted as dropped", sum(counts.values()), dropped)
    allowed = 1 if name.startswith("behind") else 2
    expect("groups that are too stale", [
        row["id"] for row in rows if row.get("trained_step") is not None
        and row["trained_step"] - 1 - (row["tokens"]["policy_version"] or 0) > allowed
    ], [])
    expect("steps in the metrics", [line["step"] for line in lines(run / "metrics.jsonl")],
           list(range(given.steps + 1)))
    replay = [given.gavel.resolve(), "replay", run, "--allow-grants"]
    expect("the exit status of `gavel replay`", subprocess.run(replay, capture_output=True).returncode, 0)
    return wrong


def compare(name, whole):
    """The differences from the run that was not killed."""
    is_clock = lambda key: key.startswith(("time/", "perf/", "device_wait/")) or "/latency_p" in key
    metrics = lambda run: [{key: value for key, value in line.items() if not is_clock(key)}
                           for line in lines(folder / "runs" / run / "metrics.jsonl")]
    weights = lambda run: (checkpoints(folder / "runs" / run)[-1] / "model.safetensors").read_bytes()
    return [f"{what} differ from those of {whole}"
            for what, of in (("metrics", metrics), ("weights", weights)) if of(name) != of(whole)]


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--gavel", type=Path, default=root / "target/release/gavel")
parser.add_argument("--kills", type=int, default=50, help="the kills of all schedules together (50)")
parser.add_argument("--steps", type=int, default=40, help="the steps of a run (40)")
parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000, help="the seed of the moments; random by default")
given = parser.parse_args()
draw = random.Random(given.seed)
folder = Path(tempfile.mkdtemp(prefix="gavel-kills-"))
(folder / "train.toml").write_text(CONFIG.replace("TARGET", str(root / "target")))
(folder / "train.jsonl").write_text("".join(
    json.dumps({"prompt": [{"role": "user", "content": f"Say {number}"}]}) + "\n" for number in range(40)))

begin = time.monotonic()
process = start("behind-whole", False)
while not checkpoints(folder / "runs/behind-whole") and process.poll() is None:
    time.sleep(0.01)
begun = time.monotonic() - begin
finish("behind-whole", process)
whole = time.monotonic() - begin
# Some kills come while a process starts, and a run takes several of them.
window = begun + (whole - begun) / 4
print(f"seed {given.seed}, {folder}: {begun:.1f} s until the first checkpoint, {whole:.1f} s in all", flush=True)
failed = False
for number, name in enumerate(SCHEDULES):
    left, runs = given.kills // len(SCHEDULES) + (number < given.kills % len(SCHEDULES)), 0
    while left > 0:
        runs += 1
        run = f"{name}-{runs}"
        killed, new = kill_and_resume(run, left, window)
        left -= killed
        wrong = check(run) + (compare(run, "behind-whole") if name == "behind" else [])
        print(f"{run}: {killed} kills, {new - 1} before the first checkpoint: {'; '.join(wrong) or 'all holds'}", flush=True)
        failed |= bool(wrong)
if failed:
    raise SystemExit(1)
shutil.rmtree(folder)
