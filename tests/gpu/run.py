"""Checks and measures decoding and training on a GPU, against the limits of the device and against `transformers`.

    python tests/gpu/run.py path/to/gavel                # on a machine with PyTorch for CUDA; nothing is built
    python tests/gpu/run.py path/to/gavel --checks-only  # a first look, in some minutes: are the results right?
    python tests/gpu/run.py path/to/gavel --models 0.5B --rounds 1
    python tests/gpu/run.py path/to/gavel --small        # small models on the CPU, to test this script

To carry the binary elsewhere, `strip` it and compress it with `xz`: gavel.xz is unpacked first. Beside this folder, the
checks need tests/parity/models, and a built target/plugins/length.wasm for a short run of GRPO.

The binary runs against the libtorch of the installed PyTorch, which must have the version that the binary was built
with. The models have random weights and the sizes of Qwen2.5-0.5B and 7B. The checks are that the small models in
tests/parity/models continue their prompts as `transformers` did, that compute-sanitizer, where it is installed, finds
nothing in sampled decoding, and that three steps of GRPO in 16 bits with a KL penalty and ragged responses run, and are
resumed. Faster operations of the binary that its own checks found wrong are rows too.

A decoding step is compared with its floor, the time of reading what it must read. The bandwidth is --bandwidth;
without it, 4300 GB/s on an H200, the figure of this project for it, and elsewhere what a copy reaches. Gavel and
`transformers` decode in turn; the figures are medians of the rounds. "plain" is once without those faster operations.
Rows are printed as they are known, and in tables at the end. A command that fails, or takes longer than --limit, is a
row of its own, and the rest continues. Rows have the most memory of tensors, what libtorch held for them, and what was
predicted for them; that of GRPO has the most that was in use as the driver reports it. Exits with 1 if a check or a
command failed.
"""
import argparse
import contextlib
import gc
import json
import lzma
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MODELS = ROOT / "tests" / "parity" / "models"
PLUGIN = ROOT / "target" / "plugins" / "length.wasm"
FIXTURES = ["qwen2", "qwen2-window", "qwen3", "llama-rope", "gemma"]
QWEN2 = dict(model_type="qwen2", architectures=["Qwen2ForCausalLM"], max_position_embeddings=32768,
             rms_norm_eps=1e-6, rope_theta=1000000.0, eos_token_id=2, initializer_range=0.02)
FULL = {
    "0.5B": QWEN2 | dict(vocab_size=151936, hidden_size=896, intermediate_size=4864, num_hidden_layers=24,
                         num_attention_heads=14, num_key_value_heads=2, tie_word_embeddings=True),
    "7B": QWEN2 | dict(vocab_size=152064, hidden_size=3584, intermediate_size=18944, num_hidden_layers=28,
                       num_attention_heads=28, num_key_value_heads=4, tie_word_embeddings=False),
}
SMALL = {"small": QWEN2 | dict(vocab_size=300, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
                               num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=False)}

# Decoding, on a GPU and with --small.
ROUNDS = {False: 3, True: 1}
# By the name of the device, in bytes a second.
BANDWIDTHS = {"H200": 4.3e12}
# Otherwise an update would need 154 GiB.
ONLY_CHECKPOINTED = ["7B"]
TRAINING = {
    False: ["--prompts", 2, "--prompt-tokens", 512, "--response-tokens", 512],
    True: ["--prompts", 2, "--group-size", 4, "--prompt-tokens", 16, "--response-tokens", 16],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gavel", type=pathlib.Path, help="the binary")
    parser.add_argument("--small", action="store_true", help="small models, on the CPU, in 32 bits")
    parser.add_argument("--checks-only", action="store_true", help="no measurements")
    parser.add_argument("--models", nargs="+", help="only these sizes")
    parser.add_argument("--rounds", type=int, metavar="N", help="how often decoding is measured; 3 by default")
    parser.add_argument("--limit", type=float, default=300, metavar="SECONDS",
                        help="the time of a command, after which it has failed; 300 by default")
    parser.add_argument("--bandwidth", type=float, metavar="GB/s",
                        help="the bandwidth for the floor; by default that of a copy, or 4300 on an H200")
    args = parser.parse_args()
    if not args.small and not torch.cuda.is_available():
        sys.exit("PyTorch finds no GPU; --small runs on the CPU")
    device, dtype = ("cpu", "float32") if args.small else ("cuda:0", "bfloat16")
    sizes = {name: of for name, of in (SMALL if args.small else FULL).items() if name in (args.models or [name])}
    if not sizes:
        sys.exit(f"--models knows {', '.join(SMALL if args.small else FULL)}")

    checks = Table("check", "how", "found")
    speed = Table("model", "what", "time", "tokens/s", "against the device", "transformers", "ratio", "memory")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        gavel = Gavel(unpacked(args.gavel, folder), device, args.limit)
        for what, run in all_checks(gavel, checks, folder):
            try:
                run()
            except Exception as error:
                checks.fail(what, told(error))
        if not args.checks_only:
            measure(gavel, speed, sizes, args, dtype, folder)
        for line in sorted(gavel.not_used):
            checks.fail(["fast paths", dtype], line)
    speed.print()
    checks.print()
    sys.exit(1 if speed.failed or checks.failed else 0)


def unpacked(binary, folder):
    """The path of the binary, which may be compressed."""
    if binary.suffix == ".xz":
        path = folder / "gavel"
        with lzma.open(binary) as compressed, path.open("wb") as out:
            shutil.copyfileobj(compressed, out)
        path.chmod(0o755)
        return path
    if not os.access(binary, os.X_OK):
        sys.exit(f"{binary} cannot be executed")
    return binary.resolve()


def measure(gavel, table, sizes, args, dtype, folder):
    """Prefill, training and decoding of each size."""
    device, rounds = gavel.device, args.rounds or ROUNDS[args.small]
    batches, prompt, new = ([1, 4, 8], 32, 16) if args.small else ([1, 32, 256], 512, 128)
    name = "CPU" if args.small else torch.cuda.get_device_name(0)
    copied, ceiling = memory_bandwidth(device, args.small), matmul_ceiling(device, dtype, args.small)
    known = next((bandwidth for of, bandwidth in BANDWIDTHS.items() if of in name), copied)
    bandwidth = args.bandwidth * 1e9 if args.bandwidth else known
    print(f"{name}, PyTorch {torch.__version__}: copies {copied / 1e9:.0f} GB/s, "
          f"multiplies {ceiling / 1e12:.1f} TFLOP/s in {dtype}; the floor is at {bandwidth / 1e9:.0f} GB/s", flush=True)
    for size, config in sizes.items():
        path = folder / f"{size}.json"
        path.write_text(json.dumps(config))
        model = ["--init", path, "--dtype", dtype, "--json"]
        for line in gavel.lines(table, [size, "prefill"], "bench", "prefill", *model, "--prompt-tokens", prompt,
                                "--batch", commas(batches[:2])):
            table.add(*prefill_row(size, line, ceiling), "", "", memory_of(line))
        decode = ["bench", "decode", *model, "--prompt-tokens", prompt, "--new-tokens", new,
                  "--bandwidth", bandwidth, "--batch", commas(batches)]
        peer = Peer(config, device, dtype, prompt, new)
        ours, theirs = decode_in_turn(gavel, table, size, decode, peer, batches, rounds)
        for batch in batches:
            row = decode_row(size, batch, ours[batch], theirs[batch], peer.failures.get(batch, ""))
            table.add(*row, *[""] * (7 - len(row)), *map(memory_of, ours[batch][-1:]))
        for line in gavel.lines(table, [size, "decode, plain"], *decode, "--cuda-fast-paths", "off"):
            row = decode_row(size, line["batch"], [line], [], "")
            table.add(row[0], f"{row[1]}, plain", *row[2:], "", memory_of(line))
        # Frees its memory for what follows.
        del peer
    # Last, because it needs most memory.
    for size in sizes:
        model = ["--init", folder / f"{size}.json", "--dtype", dtype, "--json"]
        again = [["--gradient-checkpointing"]]
        for how in again if size in ONLY_CHECKPOINTED else [[], *again, ["--ragged"], ["--ragged", "--cudnn-attention"]]:
            for line in gavel.lines(table, [size, " ".join(["train", *how])], "bench", "train", *model,
                                    *TRAINING[args.small], "--ceiling", ceiling, *how):
                table.add(*train_row(size, line, how), "", "", memory_of(line))


class Table:
    """Rows that are printed one by one, and at the end together in columns."""

    def __init__(self, *header):
        self.rows, self.failures = [header], 0

    @property
    def failed(self):
        return self.failures > 0

    def add(self, *row):
        self.rows.append(row)
        print("  ".join(filter(None, row)), flush=True)

    def fail(self, what, why):
        self.failures += 1
        self.add(*what, f"FAILED: {why}")

    def print(self):
        # The last cell of a row may be long.
        widths = [max((len(row[column]) for row in self.rows if column + 1 < len(row)), default=0)
                  for column in range(len(self.rows[0]))]
        print()
        for row in self.rows:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip(), flush=True)


class Gavel:
    def __init__(self, path, device, limit):
        libraries = [os.path.join(torch.__path__[0], "lib"), os.environ.get("LD_LIBRARY_PATH")]
        self.environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(filter(None, libraries))}
        self.path, self.device, self.limit = path, device, limit
        # The most memory of the device during the last command.
        self.memory = ""
        # What the binary said of faster operations that its own checks found wrong.
        self.not_used = set()

    def lines(self, table, what, *arguments):
        """The JSON lines that it prints. If it fails, those before the failure, and `table` gets a row for `what`."""
        done = self.run(table, what, [self.path, *arguments, "--device", self.device])
        return [json.loads(line) for line in done.splitlines()]

    def run(self, table, what, command, **options):
        """What a command prints to stdout. If it fails or hangs, `table` gets a row for `what`."""
        gc.collect()
        # After an error PyTorch cannot use the device any more, but other processes may.
        with contextlib.suppress(RuntimeError):
            torch.cuda.empty_cache()
        print("running", *what, flush=True)
        with Memory(self.device) as memory, tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as said:
            process = subprocess.Popen(list(map(str, command)), env=self.environment, stdout=out, stderr=said,
                                       start_new_session=True, **options)
            try:
                code = process.wait(self.limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                code = None
            out.seek(0), said.seek(0)
            printed, said = out.read(), said.read()
        self.memory = memory.most()
        self.not_used |= {line.split(" WARN ")[-1].strip() for line in said.splitlines() if " is not used: " in line}
        if code is None:
            table.fail(what, f"still ran after {self.limit:.0f} s; {last_error(said)}")
        elif code:
            table.fail(what, last_error(said) or f"ended with {code}")
        return printed


class Memory:
    """Looks at the memory of a GPU while something runs."""

    def __init__(self, device):
        self.is_gpu, self.bytes, self.over = device != "cpu", 0, threading.Event()

    def __enter__(self):
        if self.is_gpu:
            self.before = self.used()
            self.thread = threading.Thread(target=self.look, daemon=True)
            self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        if self.is_gpu:
            self.thread.join()

    @staticmethod
    def used():
        free, total = torch.cuda.mem_get_info()
        return total - free

    def look(self):
        while not self.over.wait(0.05):
            with contextlib.suppress(RuntimeError):
                self.bytes = max(self.bytes, self.used() - self.before)

    def most(self):
        return f"{self.bytes / 2**30:.1f} GiB" if self.bytes else ""


def memory_of(line):
    """The most memory of a measurement: of tensors, held for them, and predicted for them."""
    what = [("allocated", "tensors"), ("reserved", "held"), ("predicted", "predicted")]
    numbers = [f"{line[f'{key}_bytes'] / 2**30:.1f} {said}" for key, said in what if f"{key}_bytes" in line]
    return ", ".join(numbers) + " GiB"


def last_error(stderr):
    """The last message of the binary, in one line."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    start = max((at for at, line in enumerate(lines) if line.startswith("error: ")), default=-3)
    return "; ".join(lines[start:]).removeprefix("error: ")[:500]


def told(error):
    """An exception in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]


def commas(numbers):
    return ",".join(map(str, numbers))


def all_checks(gavel, table, folder):
    """Each with its name, for the row of a failure."""
    for fixture in FIXTURES:
        for dtype in ("float32", "bfloat16"):
            yield [fixture, dtype], lambda: check(gavel, table, fixture, dtype, folder)
    yield ["compute-sanitizer", "sampled"], lambda: check_sanitized(gavel, table, folder)
    yield ["grpo", "bfloat16"], lambda: check_training(gavel, table, folder)


def with_tokenizer(fixture, folder):
    """A small model with a tokenizer, whose words are t0, t1 and so on, and what transformers says of the model."""
    expected = safetensors(MODELS / fixture / "expected.safetensors")
    checkpoint = folder / fixture
    if not checkpoint.exists():
        shutil.copytree(MODELS / fixture, checkpoint)
        tokens = expected["logits"].shape[-1]
        words = {f"t{token}": token for token in range(tokens)}
        tokenizer = dict(version="1.0", added_tokens=[], model=dict(type="WordLevel", vocab=words, unk_token="t0"),
                         pre_tokenizer=dict(type="WhitespaceSplit"))
        (checkpoint / "tokenizer.json").write_text(json.dumps(tokenizer))
        (checkpoint / "chat_template.jinja").write_text("{{ messages[0].content }}")
        # A stop token that does not occur.
        unused = next(token for token in range(tokens) if token not in expected["greedy"].tolist())
        (checkpoint / "generation_config.json").write_text(json.dumps(dict(eos_token_id=unused)))
    return checkpoint, expected


def check(gavel, table, fixture, dtype, folder):
    """Greedy decoding against the stored tokens: in 32 bits all, in 16 bits the first one and its log-probability."""
    checkpoint, expected = with_tokenizer(fixture, folder)
    prompt = expected["ids"][0, :expected["lengths"][0]].tolist()
    greedy, logits = expected["greedy"].tolist(), expected["logits"][0, len(prompt) - 1]
    count = len(greedy) if dtype == "float32" else 1
    text = " ".join(f"t{token}" for token in prompt)
    lines = gavel.lines(table, [fixture, dtype], "generate", "-m", checkpoint, "--dtype", dtype, "--prompt", text,
                        "--temperature", 0, "--max-tokens", count, "--logprobs", "--json")
    if not lines:
        return
    [found] = lines
    right = next((i for i, (a, b) in enumerate(zip(found["token_ids"], greedy)) if a != b), len(found["token_ids"]))
    off = abs(found["logprobs"][0] - logits.log_softmax(-1)[greedy[0]].item())
    passed = right == count and off < (1e-3 if dtype == "float32" else 0.1)
    about = f"{right} of {count} tokens, first log-probability off by {off:.1g}"
    if passed:
        table.add(fixture, dtype, f"passed: {about}")
    else:
        table.fail([fixture, dtype], about)


def check_sanitized(gavel, table, folder):
    """Sampled decoding, in which compute-sanitizer finds no access outside of memory."""
    what, sanitizer = ["compute-sanitizer", "sampled"], shutil.which("compute-sanitizer")
    if gavel.device == "cpu" or not sanitizer:
        table.add(*what, "not run: " + ("there is no GPU" if gavel.device == "cpu" else "it is not installed"))
        return
    checkpoint, _ = with_tokenizer(FIXTURES[0], folder)
    failed = table.failures
    gavel.run(table, what, [sanitizer, "--error-exitcode", 9, gavel.path, "generate", "-m", checkpoint, "--prompt",
                            "t5 t6 t7", "--max-tokens", 16, "--top-p", 0.9, "--device", gavel.device])
    if table.failures == failed:
        table.add(*what, "passed")


def check_training(gavel, table, folder):
    """Three steps of GRPO, the last of which is run once more after --resume."""
    what = ["grpo", "bfloat16"]
    if not PLUGIN.exists():
        table.fail(what, f"{PLUGIN} is not there; `cargo xtask plugins` builds it")
        return
    checkpoint, _ = with_tokenizer(FIXTURES[0], folder)
    # A likely stop token makes responses of many lengths.
    (checkpoint / "generation_config.json").write_text(json.dumps(dict(eos_token_id=list(range(40)))))
    prompts = [dict(prompt=" ".join(f"t{5 + (row * 7 + at) % 60}" for at in range(3 + row % 5))) for row in range(16)]
    (folder / "prompts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in prompts))
    (folder / "run.toml").write_text(f"""
        [model]
        path = {json.dumps(str(checkpoint))}
        dtype = "bfloat16"
        device = "{gavel.device}"
        [data]
        train = "prompts.jsonl"
        [rollout]
        group_size = 8
        max_tokens = 48
        [[reward]]
        name = "length"
        path = {json.dumps(str(PLUGIN))}
        params = {{ max_response = 48, buffer = 48 }}
        [train]
        steps = 3
        prompts_per_step = 8
        learning_rate = 1e-4
        loss = {{ kl = {{ coefficient = 0.01 }} }}
        [log]
        dir = "runs"
        name = "grpo"
        """)
    failed = table.failures
    for more in ["--set", "train.steps=2"], ["--set", "train.steps=3", "--resume"]:
        gavel.run(table, what, [gavel.path, "train", "-c", "run.toml", *more], cwd=folder)
        if table.failures > failed:
            return
    memory = gavel.memory
    predicted = gavel.run(table, what, [gavel.path, "train", "-c", "run.toml", "--dry-run"], cwd=folder)
    predicted = next((line for line in predicted.splitlines() if "at most" in line), "").removeprefix("# memory, ")
    steps = [json.loads(line) for line in (folder / "runs/grpo/metrics.jsonl").read_text().splitlines()]
    steps = [step for step in steps if "loss" in step]
    about = (f"{len(steps)} steps, mean gradient norm {statistics.mean(step['grad_norm'] for step in steps):.3g}, "
             f"mismatch {max(step['logprob_mismatch'] for step in steps):.2g}; {memory or 'memory'} {predicted}")
    if len(steps) == 3 and all(step["grad_norm"] > 0 and step["logprob_mismatch"] < 0.1 for step in steps):
        table.add(*what, f"passed: {about}")
    else:
        table.fail(what, about)


def safetensors(path):
    """The tensors of a file (https://github.com/huggingface/safetensors)."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    kinds = {"F32": torch.float32, "I64": torch.int64, "BF16": torch.bfloat16}
    tensors = {}
    for name, about in header.items():
        if name != "__metadata__":
            first, last = about["data_offsets"]
            part = bytearray(data[start + first:start + last])
            tensors[name] = torch.frombuffer(part, dtype=kinds[about["dtype"]]).view(about["shape"])
    return tensors


def seconds(run, device, rounds=10, before=2):
    """The median of some runs, after the warm-up."""
    times = []
    for _ in range(before + rounds):
        start = time.perf_counter()
        run()
        if device != "cpu":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times[before:])


def memory_bandwidth(device, small):
    """Bytes a second, read and written, of a copy that no cache holds."""
    a = torch.ones((64 << 20) if small else (4 << 30), dtype=torch.uint8, device=device)
    b = torch.empty_like(a)
    return 2 * a.numel() / seconds(lambda: b.copy_(a), device)


def matmul_ceiling(device, dtype, small):
    """Operations a second of one large product."""
    n = 1024 if small else 8192
    a = torch.randn(n, n, device=device, dtype=getattr(torch, dtype))
    b = torch.randn_like(a)
    return 2 * n**3 / seconds(lambda: a @ b, device)


class Peer:
    """A model of `transformers`."""

    def __init__(self, config, device, dtype, prompt, new):
        self.vocab, self.device, self.prompt, self.new = config["vocab_size"], device, prompt, new
        # The last failure, by batch.
        self.model, self.failures = None, {}
        try:
            from transformers import Qwen2Config, Qwen2ForCausalLM
            torch.manual_seed(0)
            torch.set_default_dtype(getattr(torch, dtype))
            with torch.device(device):
                self.model = Qwen2ForCausalLM(Qwen2Config(**config)).eval()
        except Exception as error:
            self.missing = told(error)
        finally:
            torch.set_default_dtype(torch.float32)

    def rate(self, batch):
        """Tokens a second of `generate` after the first token; `None` if it fails."""
        if self.model is None:
            self.failures[batch] = self.missing
            return None
        try:
            ids = torch.randint(3, self.vocab, (batch, self.prompt), device=self.device)

            def generate(new):
                self.model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), do_sample=True, top_k=0,
                                    pad_token_id=0, max_new_tokens=new, min_new_tokens=new)

            whole, first = (seconds(lambda: generate(count), self.device, rounds=1, before=1)
                            for count in (self.new, 1))
            return batch * (self.new - 1) / (whole - first)
        except Exception as error:
            self.failures[batch] = told(error)
            return None


def decode_in_turn(gavel, table, size, command, peer, batches, rounds):
    """By batch, the lines of the binary and the rates of transformers, alternating in each round."""
    ours, theirs = ({batch: [] for batch in batches} for _ in range(2))
    for number in range(1, rounds + 1):
        for line in gavel.lines(table, [size, f"decode, round {number}"], *command):
            ours[line["batch"]].append(line)
            print(f"{size}, round {number}: decode {line['batch']} in {line['step_ms']:.2f} ms", flush=True)
        for batch in batches:
            if rate := peer.rate(batch):
                theirs[batch].append(rate)
                print(f"{size}, round {number}: transformers {batch} at {rate:.0f} tokens/s", flush=True)
    return ours, theirs


def decode_row(size, batch, ours, theirs, failure):
    row = [size, f"decode {batch}", "failed", "", ""]
    rate = statistics.median(theirs) if theirs else None
    if ours:
        step, tokens, floor = (statistics.median(line[key] for line in ours)
                               for key in ("step_ms", "tokens_per_second", "times_floor"))
        row[2:] = [f"{step:.2f} ms", f"{tokens:.0f}", f"{floor:.2f} x the floor"]
    if rate is None:
        return [*row, failure]
    return [*row, f"{rate:.0f}", f"{tokens / rate:.2f}" if ours else ""]


def prefill_row(size, line, ceiling):
    return [size, f"prefill {line['batch']} x {line['prompt_tokens']}", f"{line['seconds'] * 1e3:.1f} ms",
            f"{line['tokens_per_second']:.0f}", f"{line['flops_per_second'] / ceiling:.0%} of the ceiling"]


def train_row(size, line, how):
    again = ", layers again" if line["gradient_checkpointing"] else ""
    again += ", ragged" if line["ragged"] else ""
    again += ", attention of cuDNN" if "--cudnn-attention" in how else ""
    tokens = f"({line['prompt_tokens']} + {line['response_tokens']})"
    what = f"train {line['prompts']} x {line['group_size']} x {tokens}{again}"
    return [size, what, f"{line['seconds'] * 1e3:.0f} ms", f"{line['tokens_per_second']:.0f}",
            f"{line['share_of_ceiling']:.0%} of the ceiling"]


if __name__ == "__main__":
    main()
