"""Whether results on a GPU are right: against `transformers` on the same GPU, against stored results, and in runs."""
import contextlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import threading
import time

import torch
from common import (FULL, MODELS, PLUGINS, ROOT, SMALL, Failed, add_tokenizer, last_error, random_checkpoint, words)
from safetensors.torch import load_file

LORA = ROOT / "tests" / "parity" / "lora"
CLASSIFIER = ROOT / "tests" / "parity" / "reward_models" / "qwen2"
# A model of each family, then adapters.
FIXTURES = ["qwen2", "qwen2-window", "qwen3", "llama-rope", "mistral", "gemma"]
ADAPTERS = ["qwen2-all-linear", "qwen3-query-value", "gemma-one-layer"]
# Kills a GPU for the process that loads it, once a file exists: no other process is harmed.
FAULT = """
#include <cstdlib>
#include <thread>
#include <unistd.h>
__global__ void fault() { *(volatile int *)16 = 1; }
static struct Fault {
  Fault() {
    if (const char *file = getenv("GPU_FAULT_FILE")) std::thread([file] {
      while (access(file, F_OK)) usleep(20000);
      fault<<<1, 1>>>();
      cudaDeviceSynchronize();
    }).detach();
  }
} at_start;
"""
# PyTorch computes for one check at a time.
TORCH = threading.Lock()


class Checks:
    def __init__(self, gavel, folder, small, policy_tests):
        self.gavel, self.folder, self.small = gavel, folder, small
        self.policy_tests, self.lock = policy_tests, threading.Lock()
        self.dtypes = ["float32"] if small else ["float32", "bfloat16"]
        self.large = random_checkpoint(folder / "large", SMALL["small"] if small else FULL["0.5B"], gavel.device, 5.0)

    def all(self):
        """The checks, the longest first, each with its name."""
        yield ["compute-sanitizer", "draws"], self.sanitized_draws
        yield ["compute-sanitizer", "decoding"], self.sanitized_decoding
        yield ["compute-sanitizer", "update"], self.sanitized_update
        yield ["demo", "float32"], self.demo
        if self.policy_tests:
            yield ["model's tests", "float32"], self.model_tests
        for dtype in self.dtypes:
            yield ["large", dtype], lambda dtype=dtype: self.large_model(dtype, "auto")
            yield ["large, sft", dtype], lambda dtype=dtype: self.supervised(dtype)
        yield ["large, plain", self.dtypes[-1]], lambda: self.large_model(self.dtypes[-1], "off")
        yield ["broken GPU", "serve"], self.broken_server
        yield ["broken GPU", "train"], self.broken_run
        yield ["grpo", self.dtypes[-1]], self.grpo
        yield ["fewer bits", self.dtypes[-1]], self.fewer_bits
        yield ["kill and resume", self.dtypes[-1]], self.killed
        yield ["deterministic", self.dtypes[-1]], self.deterministic
        yield ["classifier", "float32"], self.classifier
        for name in FIXTURES + ADAPTERS:
            for dtype in self.dtypes:
                yield [name, dtype], lambda name=name, dtype=dtype: self.drawn(name, dtype)
        for name in FIXTURES:
            yield [name, "greedy"], lambda name=name: self.greedy(name)

    def alone(self):
        """The checks that leave no memory for others."""
        yield ["full memory", "update"], self.full_memory

    # Draws.

    def fixture(self, name):
        """A small model or adapter with a tokenizer, the prompt of its stored results, and the tokens that follow."""
        adapter = name in ADAPTERS
        folder = self.folder / name
        expected = load_file((LORA if adapter else MODELS) / name / "expected.safetensors")
        with self.lock:
            if not folder.exists():
                shutil.copytree((LORA if adapter else MODELS) / name, folder)
                tokens = expected["logits"].shape[-1]
                unused = next(token for token in range(tokens) if token not in expected["greedy"].tolist())
                if adapter:
                    settings = folder / "adapter_config.json"
                    about = json.loads(settings.read_text())
                    base = shutil.copytree(MODELS / pathlib.Path(about["base_model_name_or_path"]).name,
                                           self.folder / f"{name}-base")
                    settings.write_text(json.dumps(about | dict(base_model_name_or_path=str(base))))
                    add_tokenizer(base, tokens, unused)
                add_tokenizer(folder, tokens, unused)
        row = expected["ids"][0]
        return folder, row[row != 0].tolist(), expected["greedy"].tolist()

    def greedy(self, name):
        """Greedy decoding in 32 bits, against the stored tokens."""
        folder, prompt, greedy = self.fixture(name)
        [found] = self.gavel.lines("generate", "-m", folder, "--dtype", "float32", "--prompt", words(prompt),
                                   "--temperature", 0, "--max-tokens", len(greedy), "--json")
        right = len(os.path.commonprefix([found["token_ids"], greedy]))
        return right == len(greedy), f"{right} of {len(greedy)} tokens"

    def drawn(self, name, dtype):
        folder, prompt, _ = self.fixture(name)
        return self.against_transformers(folder, dtype, prompt, 5, 200, "auto")

    def large_model(self, dtype, fast_paths):
        """A prompt and responses for which the cache grows several times, in a number that graphs pad."""
        prompt, new = (20, 100) if self.small else (700, 300)
        prompt = [3 + (at * 7919) % (290 if self.small else 150_000) for at in range(prompt)]
        return self.against_transformers(self.large, dtype, prompt, 13, new, fast_paths)

    def against_transformers(self, folder, dtype, prompt, count, new, fast_paths):
        """The log-probabilities of drawn tokens, compared with `transformers` in 32 bits with the same weights. In 16
        bits, the error may not be far from the error of `transformers` in 16 bits."""
        found = self.gavel.lines("generate", "-m", folder, "--dtype", dtype, "--prompt", words(prompt), "--n", count,
                                 "--temperature", 1, "--max-tokens", new, "--seed", 7, "--logprobs", "--json",
                                 "--cuda-fast-paths", fast_paths)
        # Another check may load a model, which changes the default for a while.
        ours = torch.tensor([logprob for one in found for logprob in one["logprobs"]], dtype=torch.float32)
        responses = [one["token_ids"] for one in found]
        with TORCH:
            model = peer(folder, dtype, torch.float32, self.gavel.device)
            truth = logprobs(model, prompt, responses)
            if dtype != "float32":
                model = peer(folder, dtype, getattr(torch, dtype), self.gavel.device)
                theirs = logprobs(model, prompt, responses)
            del model
        if len(responses) != count or len(ours) != len(truth):
            return False, f"{len(responses)} of {count} responses, {len(ours)} log-probabilities of {len(truth)}"
        mean, most = apart(ours, truth)
        about = f"{len(ours)} tokens, log-probabilities off by {mean:.1e}, at most {most:.1e}"
        if dtype == "float32":
            return most < 2e-3, about
        mean_of_theirs, most_of_theirs = apart(theirs, truth)
        about += f"; transformers in 16 bits by {mean_of_theirs:.1e}, {most_of_theirs:.1e}"
        return mean < 1.5 * mean_of_theirs + 1e-4 and most < 3 * most_of_theirs + 1e-3, about

    def classifier(self):
        """A served classifier's scores, against the stored scores."""
        rows = [json.loads(line) for line in (CLASSIFIER / "rows.jsonl").read_text().splitlines()]
        with self.served(CLASSIFIER, "--dtype", "float32") as (port, _):
            worst = 0.0
            for row in rows:
                messages = row["prompt"] + [dict(role="assistant", content=row["response"])]
                status, answer = post(port, "/v1/embeddings", dict(messages=messages))
                if status != 200:
                    return False, f"status {status}: {answer}"[:300]
                worst = max(worst, abs(json.loads(answer)["data"][0]["embedding"][0] - row["score"]))
        return worst < 1e-3, f"{len(rows)} scores, off by at most {worst:.1e}"

    def model_tests(self):
        """The tests of the model in Rust, which compare logits, gradients, adapters and classifiers with stored
        results of `transformers`."""
        package = ROOT / "host" / "policy"
        environment = dict(CARGO_MANIFEST_DIR=str(package), GAVEL_TEST_DEVICE=self.gavel.device)
        with self.gavel.started([self.policy_tests, "--test-threads", 1], environment, cwd=package) as running:
            code = None
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = running.process.wait(self.gavel.limit)
            printed = running.stdout()
        tests = [line for line in printed.splitlines() if line.startswith("test ")]
        failed = [line for line in tests if "FAILED" in line]
        why = printed[printed.find("failures:"):][:6000] if failed else ""
        return code == 0, "; ".join([f"{len(tests)} tests, {len(failed)} failed, ended with {code}", *failed, why])

    # Updates.

    def supervised(self, dtype):
        """The loss and the gradient's norm of a batch of ragged rows, against PyTorch."""
        size = (8, 5) if self.small else (150, 100)
        rows = [([3 + (row * 7919 + at * 31) % 290 for at in range(size[0] + 13 * row)],
                 [3 + (row * 104729 + at * 17) % 290 for at in range(size[1] + 29 * row)]) for row in range(6)]
        name = f"sft-{dtype}"
        self.write_rows(name, [dict(prompt=words(prompt), response=words(response)) for prompt, response in rows])
        config = self.write_run(name, self.large, dtype, f"""
            [train]
            steps = 1
            batch_size = 6
            learning_rate = 1e-9
            optimizer = {{ max_grad_norm = inf }}
            """)
        self.gavel.run([self.gavel.path, "sft", "-c", config], cwd=self.folder)
        [step] = [line for line in self.metrics(name) if "loss" in line]
        # What ends a response is learned, too.
        end = json.loads((self.large / "config.json").read_text())["eos_token_id"]
        rows = [(prompt, response + [end]) for prompt, response in rows]
        with TORCH:
            truth = loss_and_norm(self.large, dtype, torch.float32, self.gavel.device, rows)
            theirs = loss_and_norm(self.large, dtype, getattr(torch, dtype), self.gavel.device, rows)
        ours = (step["loss"], step["grad_norm"])
        errors = [[abs(a - b) / b for a, b in zip(of, truth)] for of in (ours, theirs)]
        about = (f"loss {ours[0]:.6f}, {errors[0][0]:.1e} from PyTorch's in 32 bits; gradient's norm {ours[1]:.5g}, "
                 f"{errors[0][1]:.1e} from it; PyTorch in {dtype}: {errors[1][0]:.1e}, {errors[1][1]:.1e}")
        bounds = (1e-5, 1e-3) if dtype == "float32" else (1e-3, 2e-2)
        return all(error < bound for error, bound in zip(errors[0], bounds)), about

    def grpo(self):
        """Three steps of GRPO with a KL penalty and ragged responses, the last of which is run after --resume."""
        config = self.write_grpo("grpo", "grpo-model", 3)
        for more in ["--set", "train.steps=2"], ["--set", "train.steps=3", "--resume"]:
            self.gavel.run([self.gavel.path, "train", "-c", config, *more], cwd=self.folder)
        steps = [step for step in self.metrics("grpo") if "loss" in step]
        mismatch = max(step["logprob_mismatch"] for step in steps)
        about = (f"{len(steps)} steps, gradient norms {min(step['grad_norm'] for step in steps):.3g} to "
                 f"{max(step['grad_norm'] for step in steps):.3g}, mismatch {mismatch:.2g}")
        return len(steps) == 3 and all(step["grad_norm"] > 0 for step in steps) and mismatch < 0.1, about

    def fewer_bits(self):
        """A step of GRPO whose responses are drawn with weights in fp8, or int8 on the CPU, and corrected."""
        config = self.write_grpo("fewer-bits", "fewer-bits-model", 2, self.large)
        bits = "int8" if self.gavel.device == "cpu" else "fp8"
        self.gavel.run([self.gavel.path, "train", "-c", config, "--set", f"rollout.quantization='{bits}'",
                        "--set", "train.off_policy.rollout_is='token'"], cwd=self.folder)
        steps = [step for step in self.metrics("fewer-bits") if "loss" in step]
        mismatch = [step["logprob_mismatch"] for step in steps]
        about = f"{bits}: {len(steps)} steps, mismatch {min(mismatch):.2g} to {max(mismatch):.2g}"
        return len(steps) == 2 and all(1e-5 < found < 0.3 for found in mismatch), about

    def killed(self):
        """A run that is killed after its third step, and resumed."""
        config = self.write_grpo("killed", "killed-model", 6)
        with self.gavel.started([self.gavel.path, "train", "-c", config], cwd=self.folder) as running:
            deadline = time.monotonic() + self.gavel.limit
            while sum("loss" in step for step in self.metrics("killed")) < 3:
                if running.process.poll() is not None or time.monotonic() > deadline:
                    return False, f"did not reach its third step: {last_error(running.stderr())}"
                time.sleep(0.02)
            os.killpg(running.process.pid, signal.SIGKILL)
        self.gavel.run([self.gavel.path, "train", "-c", config, "--resume"], cwd=self.folder)
        steps = [step["step"] for step in self.metrics("killed") if "loss" in step]
        return steps == list(range(1, 7)), f"steps {steps}"

    def deterministic(self):
        """Two runs with `resources.deterministic` end with the same bits."""
        rows = [dict(prompt=words(range(3, 9 + row)), response=words(range(20, 40 + 3 * row))) for row in range(8)]
        weights = []
        for number in "12":
            name = f"deterministic-{number}"
            self.write_rows(name, rows)
            config = self.write_run(name, self.large, self.dtypes[-1], """
                [train]
                steps = 3
                batch_size = 8
                learning_rate = 1e-4
                [resources]
                deterministic = true
                """)
            self.gavel.run([self.gavel.path, "sft", "-c", config], cwd=self.folder)
            weights.append((self.folder / f"runs/{name}/checkpoints/step-000003/model.safetensors").read_bytes())
        return weights[0] == weights[1], "two runs, " + ("equal bits" if weights[0] == weights[1] else "other bits")

    def demo(self):
        """The demo learns on the GPU as on the CPU."""
        data, warm_up = ROOT / "target" / "demo", sorted(ROOT.glob("runs/demo-sft*/checkpoints/step-*"))
        if not (data / "train.parquet").exists() or not warm_up:
            return None, "its data are missing; `cargo xtask demo` makes them"
        started = time.monotonic()
        self.gavel.run([self.gavel.path, "train", "-c", "demo/train.toml", "--set", f"model.path={warm_up[-1]}",
                        "--set", f"model.device={self.gavel.device}", "--set", f"log.dir={self.folder}/runs",
                        *(["--set", "train.steps=2"] if self.small else [])], cwd=ROOT)
        accuracy = [step["val/accuracy"] for step in self.metrics("demo") if "val/accuracy" in step]
        about = f"accuracy {accuracy[0]:.3f} to {accuracy[-1]:.3f} in {time.monotonic() - started:.0f} s"
        return self.small or accuracy[-1] > 0.95, about

    # Failures.

    def full_memory(self):
        """A micro-batch that no GPU has room for."""
        if self.gavel.device == "cpu":
            return None, "there is no GPU"
        config = self.folder / "full.json"
        config.write_text(json.dumps(FULL["0.5B"]))
        command = [self.gavel.path, "bench", "train", "--init", config, "--prompts", 8, "--group-size", 64,
                   "--prompt-tokens", 512, "--response-tokens", 8192, "--max-tokens-per-micro-batch", 10_000_000,
                   "--device", self.gavel.device]
        try:
            self.gavel.run(command)
        except Failed as error:
            names = "out of memory in training, while a micro-batch of" in str(error)
            return names and "max_tokens_per_micro_batch" in str(error), str(error)
        return False, "it ran"

    def broken_server(self):
        """A server whose GPU has failed answers with the first error and ends."""
        fault = self.fault()
        if isinstance(fault, str):
            return None, fault
        file = self.folder / "break-server"
        environment = dict(LD_PRELOAD=str(fault[0]), GPU_FAULT_FILE=str(file))
        with self.served(self.large, environment=environment) as (port, running):
            asked = dict(model="large", prompt=words(range(3, 20)), max_tokens=20_000)
            threading.Timer(3, file.touch).start()
            status, answer = post(port, "/v1/completions", asked)
            try:
                code = running.process.wait(20)
            except subprocess.TimeoutExpired:
                return False, f"status {status}, and it still ran: {answer[:300]}"
        about = f"status {status}, then ended with {code}: {' '.join(answer.split())[:300]}"
        return status in (500, 503) and code == 2 and "nothing more can be computed" in answer, about

    def broken_run(self):
        """A run whose GPU has failed ends with the first error."""
        fault = self.fault()
        if isinstance(fault, str):
            return None, fault
        file, config = self.folder / "break-run", self.write_grpo("broken", "broken-model", 100_000)
        environment = dict(LD_PRELOAD=str(fault[0]), GPU_FAULT_FILE=str(file))
        with self.gavel.started([self.gavel.path, "train", "-c", config], environment, cwd=self.folder) as running:
            deadline = time.monotonic() + self.gavel.limit
            while len(self.metrics("broken")) < 3:
                if running.process.poll() is not None or time.monotonic() > deadline:
                    return False, f"did not begin: {last_error(running.stderr())}"
                time.sleep(0.05)
            file.touch()
            try:
                code = running.process.wait(30)
            except subprocess.TimeoutExpired:
                return False, "it still ran after 30 s"
            error = last_error(running.stderr())
        return code not in (0, None) and "nothing more can be computed" in error, f"ended with {code}: {error}"

    def fault(self):
        """The library that breaks a GPU; or why there is none."""
        if self.gavel.device == "cpu" or not shutil.which("nvcc"):
            return "there is no GPU" if self.gavel.device == "cpu" else "nvcc is not installed"
        with self.lock:
            library = self.folder / "libfault.so"
            if not library.exists():
                source = self.folder / "fault.cu"
                source.write_text(FAULT)
                done = subprocess.run(["nvcc", "-arch=native", "-shared", "-Xcompiler", "-fPIC", "-o", library, source],
                                      capture_output=True, text=True)
                if done.returncode:
                    return f"nvcc: {done.stderr}"[:300]
        return (library,)

    def sanitized_draws(self):
        folder, prompt, _ = self.fixture(FIXTURES[0])
        return self.sanitized("generate", "-m", folder, "--prompt", words(prompt), "--n", 3, "--max-tokens", 16,
                              "--top-p", 0.9, "--dtype", self.dtypes[-1])

    def sanitized_decoding(self):
        """Of a vocabulary that kernels draw from."""
        return self.sanitized("bench", "decode", "--init", self.small_config("decoding"), "--prompt-tokens", 17,
                              "--new-tokens", 19, "--batch", 3, "--dtype", self.dtypes[-1])

    def sanitized_update(self):
        config = self.small_config("update")
        return self.sanitized("bench", "train", "--init", config, "--prompts", 2, "--group-size", 3, "--prompt-tokens",
                              17, "--response-tokens", 19, "--ragged", "--dtype", self.dtypes[-1])

    def small_config(self, name):
        config = self.folder / f"sanitized-{name}.json"
        config.write_text(json.dumps(SMALL["small"]))
        return config

    def sanitized(self, *command):
        """A command in which compute-sanitizer finds no access outside of memory."""
        sanitizer = shutil.which("compute-sanitizer")
        if self.gavel.device == "cpu" or not sanitizer:
            return None, "there is no GPU" if self.gavel.device == "cpu" else "compute-sanitizer is not installed"
        log = self.folder / f"{'-'.join(command[:2])}.sanitizer"
        command = [sanitizer, "--target-processes", "all", "--report-api-errors", "no", "--error-exitcode", 9,
                   "--log-file", log, self.gavel.path,
                   *command, "--device", self.gavel.device]
        try:
            self.gavel.run(command)
        except Failed as error:
            found = log.read_text(errors="replace") if log.exists() else ""
            return False, f"{error}; {' '.join(found.split())[:1200]}"
        return True, " ".join(log.read_text().split())[-200:]

    # Runs.

    def write_rows(self, name, rows):
        (self.folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def write_run(self, name, model, dtype, more):
        path = self.folder / f"{name}.toml"
        path.write_text(f"""
            [model]
            path = {json.dumps(str(model))}
            dtype = "{dtype}"
            device = "{self.gavel.device}"
            [data]
            train = "{name}.jsonl"
            [log]
            dir = "runs"
            name = "{name}"
            {more}
            """)
        return path

    def write_grpo(self, name, model, steps, source=None):
        """GRPO of a model, a small one by default, whose likely stop tokens make responses of many lengths."""
        source = source or self.fixture("qwen2")[0]
        model = shutil.copytree(source, self.folder / model)
        (model / "generation_config.json").write_text(json.dumps(dict(eos_token_id=list(range(40)))))
        self.write_rows(name, [dict(prompt=words(5 + (row * 7 + at) % 50 for at in range(3 + row % 5)))
                               for row in range(16)])
        return self.write_run(name, model, self.dtypes[-1], f"""
            [rollout]
            group_size = 8
            max_tokens = 48
            [[reward]]
            name = "length"
            path = {json.dumps(str(PLUGINS / "length.wasm"))}
            params = {{ max_response = 48, buffer = 48 }}
            [train]
            steps = {steps}
            prompts_per_step = 8
            learning_rate = 1e-4
            loss = {{ kl = {{ coefficient = 0.01 }} }}
            [checkpoint]
            every = 1
            """)

    def metrics(self, name):
        path = self.folder / "runs" / name / "metrics.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        found = []
        for line in lines:
            # The last line may be half written.
            with contextlib.suppress(json.JSONDecodeError):
                found.append(json.loads(line))
        return found

    @contextlib.contextmanager
    def served(self, model, *more, environment=None):
        """A server of the model, once it answers: its port and its process."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [self.gavel.path, "serve", "-m", model, "--port", port, "--device", self.gavel.device, *more]
        with self.gavel.started(command, environment) as running:
            deadline = time.monotonic() + self.gavel.limit
            while True:
                with contextlib.suppress(OSError):
                    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                    connection.request("GET", "/health")
                    if connection.getresponse().status == 200:
                        break
                if running.process.poll() is not None or time.monotonic() > deadline:
                    raise Failed(f"the server did not start: {last_error(running.stderr())}")
                time.sleep(0.1)
            yield port, running


def post(port, path, body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
    answer = connection.getresponse()
    return answer.status, answer.read().decode(errors="replace")


def apart(found, truth):
    """The mean and the largest difference."""
    difference = (found - truth).abs()
    return difference.mean().item(), difference.max().item()


def peer(folder, rounded, dtype, device):
    """The model of `transformers`, whose weights are rounded before they get `dtype`."""
    from transformers import AutoModelForCausalLM
    adapter = folder / "adapter_config.json"
    base = json.loads(adapter.read_text())["base_model_name_or_path"] if adapter.exists() else folder
    # `model.to` would round the wavelengths of positions, too.
    model = AutoModelForCausalLM.from_pretrained(base, dtype=getattr(torch, rounded), attn_implementation="eager")
    if adapter.exists():
        from peft import PeftModel
        model = PeftModel.from_pretrained(model, folder, autocast_adapter_dtype=False)
        for name, weight in model.named_parameters():
            weight.data = weight.data.to(getattr(torch, rounded))
    return (model.float() if dtype == torch.float32 else model).to(device).eval()


@torch.no_grad()
def logprobs(model, prompt, responses):
    """The log-probability of each token of the responses, one row at a time."""
    found = []
    for response in responses:
        ids = torch.tensor([prompt + response], device=model.device)
        logits = model(input_ids=ids).logits[0, len(prompt) - 1:-1].float()
        drawn = torch.tensor(response, device=model.device)[:, None]
        found.append(logits.log_softmax(-1).gather(1, drawn)[:, 0].cpu())
    return torch.cat(found)


def loss_and_norm(folder, rounded, dtype, device, rows):
    """The mean loss of the responses' tokens, and the norm of its gradient."""
    model = peer(folder, rounded, dtype, device)
    count = sum(len(response) for _, response in rows)
    loss = 0.0
    for prompt, response in rows:
        ids = torch.tensor([prompt + response], device=device)
        logits = model(input_ids=ids).logits[0, len(prompt) - 1:-1].float()
        part = torch.nn.functional.cross_entropy(logits, torch.tensor(response, device=device), reduction="sum") / count
        part.backward()
        loss += part.item()
    squares = sum(weight.grad.double().square().sum() for weight in model.parameters() if weight.grad is not None)
    return loss, squares.sqrt().item()
