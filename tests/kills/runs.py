"""What runs are killed, and what holds at the end of one."""
import collections
import json
import socket
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

PROMPTS, GROUP = 4, 4
SCHEDULES = {
    "behind": "schedule.max_staleness=1",
    "both": "schedule.stream=true schedule.max_staleness=2",
    "partial": "schedule.stream=true schedule.max_staleness=2 schedule.partial_rollout=true",
    "filter": "schedule.stream=true schedule.max_staleness=2 train.filter_groups.max_num_gen_batches=3",
}
# Of several ranks. Where they share groups by load, the clock decides which rank draws one.
RANKS = {
    "lockstep": "schedule.max_staleness=0",
    "load": 'ranks.share="load" ranks.groups_at_once=1 schedule.stream=true schedule.max_staleness=2',
}
STALENESS = {"lockstep": 0, "behind": 1}
# Schedules in which nothing depends on a clock.
REPRODUCIBLE = "behind", "lockstep"
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


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def checkpoints(run: Path) -> list[Path]:
    return [path for path in sorted((run / "checkpoints").glob("step-*")) if not path.name.endswith(".partial")]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Place(NamedTuple):
    """The folder of all runs, the program, and the steps of a run. The name of a run begins with its schedule."""

    folder: Path
    gavel: Path
    steps: int

    def write(self, target: Path) -> None:
        (self.folder / "train.toml").write_text(CONFIG.replace("TARGET", str(target)))
        rows = [{"prompt": [{"role": "user", "content": f"Say {number}"}]} for number in range(40)]
        (self.folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def run(self, name: str) -> Path:
        return self.folder / "runs" / name

    def command(self, name: str, resume: bool, *more: str) -> list[Any]:
        schedule = {**SCHEDULES, **RANKS}[name.split("-")[0]]
        settings = f"train.steps={self.steps} log.name={name} {schedule}".split()
        sets = [part for setting in [*settings, *more] for part in ("--set", setting)]
        return [self.gavel, "train", "-c", "train.toml", *sets, *(["--resume"] if resume else [])]


def check(place: Place, name: str) -> list[str]:
    """The failed checks of a run that ended."""
    run, wrong = place.run(name), []
    schedule = name.split("-")[0]
    expect = lambda what, found, expected: None if found == expected else wrong.append(
        f"{what}: {found}, expected {expected}")
    rows = [row for file in sorted((run / "trajectories").glob("*.jsonl")) for row in lines(file)]
    last = checkpoints(run)[-1]
    state = json.loads((last / "state.json").read_text())
    expect("the last step", state["step"], place.steps)
    left = [path.name for path in (run / "checkpoints").iterdir() if path.name.endswith(".partial")]
    expect("checkpoints that are not whole", left, [])

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
    if schedule != "filter":
        expect("groups of each step", trained, {step: PROMPTS for step in range(1, place.steps + 1)})
    counts = dict(state["groups"])
    expect("groups that are counted as trained on", counts.pop("trained", 0), sum(trained.values()))
    expect("groups that are counted as dropped", sum(counts.values()), dropped)
    allowed = STALENESS.get(schedule, 2)
    expect("groups that are too stale", [
        row["id"] for row in rows if row.get("trained_step") is not None
        and row["trained_step"] - 1 - (row["tokens"]["policy_version"] or 0) > allowed
    ], [])
    expect("steps in the metrics", [line["step"] for line in lines(run / "metrics.jsonl")],
           list(range(place.steps + 1)))
    replay = [place.gavel, "replay", run, "--allow-grants"]
    expect("the exit status of `gavel replay`", subprocess.run(replay, capture_output=True).returncode, 0)
    return wrong


def compare(place: Place, name: str, whole: str) -> list[str]:
    """The differences from the run that was not killed."""
    is_clock = lambda key: key.startswith(("time/", "perf/", "device_wait/", "ranks/")) or "/latency_p" in key
    metrics = lambda run: [{key: value for key, value in line.items() if not is_clock(key)}
                           for line in lines(place.run(run) / "metrics.jsonl")]
    weights = lambda run: (checkpoints(place.run(run))[-1] / "model.safetensors").read_bytes()
    return [f"{what} differ from those of {whole}"
            for what, of in (("metrics", metrics), ("weights", weights)) if of(name) != of(whole)]
