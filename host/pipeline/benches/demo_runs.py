"""Runs of the demo's training with other settings, for the scripts beside this file."""
import argparse
import json
import subprocess
import tempfile
from pathlib import Path

root = Path(__file__).resolve().parents[3]


def newest_model():
    """The checkpoint of the demo's warm-up; None without one."""
    checkpoints = sorted((root / "runs/demo-sft/checkpoints").glob("step-*"))
    return checkpoints[-1] if checkpoints else None


def parser(description, steps=60):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gavel", type=Path, default=root / "target/release/gavel")
    parser.add_argument("--model", type=Path, default=newest_model(), help="the checkpoint of the demo's warm-up")
    parser.add_argument("--steps", type=int, default=steps, help=f"steps of a run ({steps})")
    parser.add_argument("--seeds", type=int, default=3, help="seeds (3)")
    parser.add_argument("--json", action="store_true", help="the results as JSON")
    return parser


def arguments(parser):
    given = parser.parse_args()
    if given.model is None:
        parser.error("no checkpoint in runs/demo-sft: run `cargo xtask demo`, or name one with --model")
    return given


def train(given, seed, config, settings, seen=lambda process: None):
    """The lines of metrics of a run of `given.model`; see `run`."""
    settings = {
        "model.path": str(given.model.resolve()), "seed": seed, "train.steps": given.steps,
        "train.validate_every": given.steps, "checkpoint.every": given.steps, **settings,
    }
    with tempfile.TemporaryDirectory() as folder:
        return run(given.gavel, Path(folder), config, settings, seen)


def run(gavel, folder, config, settings, seen=lambda process: None, prefix=()):
    """The lines of metrics of a run in `folder`, from step 0 on; `config` is the whole configuration, which `settings`
    change. `prefix` is what the command begins with."""
    path = folder / "run.toml"
    path.write_text(config)
    settings = {"log.dir": str(folder), "log.tensorboard": False, **settings}
    command = [*prefix, gavel.resolve(), "train", "-c", path, "--json"]
    for key, value in settings.items():
        command += ["--set", f"{key}={json.dumps(value)}"]
    process = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    seen(process)
    output, errors = process.communicate()
    if process.returncode != 0:
        raise SystemExit(errors)
    with open(Path(json.loads(output)["folder"]) / "metrics.jsonl") as lines:
        return [json.loads(line) for line in lines]


def demo_config():
    return (root / "demo/train.toml").read_text()
