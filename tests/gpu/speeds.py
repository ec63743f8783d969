"""How fast the GPU is used: decoding, training and whole steps, against its limits, `transformers` and PyTorch."""
import asyncio
import contextlib
import importlib.util
import json
import pathlib
import random
import statistics
import sys
import threading
import time

import torch
from common import FULL, PLUGINS, SMALL, Table, commas, give_back, random_checkpoint, in_one_line, words

PARTS = ["context", "decode", "prefill", "train", "step", "trl", "judge", "lora"]
# By the name of the device, in bytes a second: the figure of this project. A copy reached 4.2e12 on an H200.
BANDWIDTHS = {"H200": 4.3e12}
# Otherwise an update would need 154 GiB.
ONLY_CHECKPOINTED = ["7B"]
TRAINING = {
    False: ["--prompts", 2, "--prompt-tokens", 512, "--response-tokens", 512],
    True: ["--prompts", 2, "--group-size", 4, "--prompt-tokens", 16, "--response-tokens", 16],
}
# Prompts of a step, the tokens of a prompt and of a response, and the tokens of a response behind a judge.
STEP = {False: (64, 512, 512, 128), True: (4, 16, 16, 16)}


# A reward that tells responses of as many tokens apart: words have several lengths.
LENGTH = f"""
            [[reward]]
            name = "length"
            path = {json.dumps(str(PLUGINS / "length.wasm"))}
            params = {{ max_response = 10000, buffer = 10000, unit = "characters" }}
            """


class Speeds:
    def __init__(self, gavel, args, folder):
        self.gavel, self.folder, self.small, self.rounds = gavel, folder, args.small, args.rounds
        self.only = args.only or PARTS
        known = SMALL if args.small else FULL
        self.sizes = {name: config for name, config in known.items() if name in (args.models or [name])}
        if not set(args.models or []) <= set(known) or not set(self.only) <= set(PARTS):
            sys.exit(f"--models knows {', '.join(known)}, and --only {', '.join(PARTS)}")
        self.dtype = "float32" if args.small else "bfloat16"
        self.table = Table("model", "what", "time", "tokens/s", "against the device", "peer", "ratio", "memory")

    def measure(self):
        device, small = self.gavel.device, self.small
        name = "CPU" if small else torch.cuda.get_device_name(0)
        copied, self.ceiling = memory_bandwidth(device, small), matmul_ceiling(device, self.dtype, small)
        self.bandwidth = next((bandwidth for of, bandwidth in BANDWIDTHS.items() if of in name), copied)
        print(f"{name}, PyTorch {torch.__version__}: copies {copied / 1e9:.0f} GB/s, multiplies "
              f"{self.ceiling / 1e12:.1f} TFLOP/s in {self.dtype}; the floor is at {self.bandwidth / 1e9:.0f} GB/s",
              flush=True)
        for size, config in self.sizes.items():
            (self.folder / f"{size}.json").write_text(json.dumps(config))
        for part in self.only:
            for size in self.sizes if part in ("decode", "prefill", "train") else [list(self.sizes)[0]]:
                if part == "lora":
                    size = list(self.sizes)[-1]
                started = time.monotonic()
                try:
                    getattr(self, part)(size)
                except Exception as error:
                    self.table.fail([size, part], in_one_line(error))
                print(f"{size}, {part}: {time.monotonic() - started:.0f} s in all", flush=True)
                give_back()
        return self.table

    def bench(self, what, size, *arguments, model=None):
        model = ["-m", model] if model else ["--init", self.folder / f"{size}.json"]
        return self.gavel.lines("bench", what, *model, "--dtype", self.dtype, "--json", *arguments)

    def context(self, size):
        """The memory that a process has beside what libtorch holds for tensors."""
        (self.folder / "tiny.json").write_text(json.dumps(SMALL["small"]))
        with Memory(self.gavel.device) as memory:
            lines = self.bench("decode", "tiny", "--prompt-tokens", 32, "--new-tokens", 2000, "--batch", 8)
        held = lines[0].get("reserved_bytes", 0) / 2**20
        self.table.add("tiny", "decode 8", "", "", "", "", "", f"{memory.bytes / 2**20:.0f} MiB in use, {held:.0f} held")

    def decode(self, size):
        batches, prompt, new = ([1, 4, 8], 32, 16) if self.small else ([1, 32, 256], 512, 128)
        arguments = ["--prompt-tokens", prompt, "--new-tokens", new, "--bandwidth", self.bandwidth, "--batch",
                     commas(batches)]
        ours, theirs = {batch: [] for batch in batches}, {batch: [] for batch in batches}
        peer = Peer(self.sizes[size], self.gavel.device, self.dtype, prompt, 16 if self.small else 48)
        for _ in range(self.rounds):
            for line in self.bench("decode", size, *arguments):
                ours[line["batch"]].append(line)
            for batch in batches:
                if rate := peer.rate(batch):
                    theirs[batch].append(rate)
        for batch in batches:
            row = decode_row(size, batch, ours[batch], theirs[batch], peer.failures.get(batch, ""))
            self.table.add(*row, *[""] * (7 - len(row)), *map(memory_of, ours[batch][-1:]))
        # Frees its memory for what follows.
        del peer
        give_back()
        for line in self.bench("decode", size, *arguments, "--cuda-fast-paths", "off"):
            row = decode_row(size, line["batch"], [line], [], "")
            self.table.add(row[0], f"{row[1]}, plain", *row[2:], "", memory_of(line))

    def prefill(self, size):
        batches, prompt = ([1, 4], 32) if self.small else ([1, 32], 512)
        for line in self.bench("prefill", size, "--prompt-tokens", prompt, "--batch", commas(batches)):
            row = [size, f"prefill {line['batch']} x {line['prompt_tokens']}", f"{line['seconds'] * 1e3:.1f} ms",
                   f"{line['tokens_per_second']:.0f}", f"{line['flops_per_second'] / self.ceiling:.0%} of the ceiling"]
            self.table.add(*row, "", "", memory_of(line))

    def train(self, size):
        for how in [["--gradient-checkpointing"]] if size in ONLY_CHECKPOINTED else [[], ["--ragged"]]:
            rate = None
            if not how or size in ONLY_CHECKPOINTED:
                rate = self.peer_update(size, bool(how))
            self.train_row(size, how, None, rate)

    def train_row(self, size, how, model, rate=None):
        for line in self.bench("train", size, *TRAINING[self.small], "--ceiling", self.ceiling, *how, model=model):
            again = ", layers again" if line["gradient_checkpointing"] else ""
            again += ", ragged" if line["ragged"] else ""
            again += ", LoRA" if model else ""
            tokens = f"({line['prompt_tokens']} + {line['response_tokens']})"
            row = [size, f"train {line['prompts']} x {line['group_size']} x {tokens}{again}",
                   f"{line['seconds'] * 1e3:.0f} ms", f"{line['tokens_per_second']:.0f}",
                   f"{line['share_of_ceiling']:.0%} of the ceiling"]
            peer = [f"{rate:.0f}", f"{line['tokens_per_second'] / rate:.2f}"] if rate else ["", ""]
            self.table.add(*row, *peer, memory_of(line))

    def peer_update(self, size, checkpointing):
        """Response tokens a second of PyTorch with the model of `transformers`: the same rows, each with its prompt, in
        the micro-batches that fit, and fused AdamW in the weights' own dtype."""
        device = self.gavel.device
        prompts, group, prompt, response = (2, 4, 16, 16) if self.small else (2, 8, 512, 512)
        try:
            model = Peer(self.sizes[size], device, self.dtype, prompt, response).model.train()
            if checkpointing:
                model.gradient_checkpointing_enable()
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-9, fused=device != "cpu")
            ids = torch.randint(3, self.sizes[size]["vocab_size"], (prompts * group, prompt + response), device=device)

            def update():
                for rows in ids.split(4):
                    logits = model(input_ids=rows, logits_to_keep=response + 1).logits[:, :-1]
                    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), rows[:, prompt:].flatten())
                    loss.backward()
                optimizer.step()
                optimizer.zero_grad()

            return prompts * group * response / seconds(update, device, rounds=3, before=1)
        except Exception as error:
            print(f"PyTorch, {size}: {in_one_line(error)}", flush=True)
            return None
        finally:
            model = optimizer = None
            give_back()

    def lora(self, size):
        """An update of adapters of all linear layers."""
        base, adapter = self.checkpoint(size), self.folder / "adapter"
        config = self.sizes[size]
        adapter.mkdir()
        layers, hidden, inner = config["num_hidden_layers"], config["hidden_size"], config["intermediate_size"]
        shared = hidden // config["num_attention_heads"] * config["num_key_value_heads"]
        shapes = {"self_attn.q_proj": (hidden, hidden), "self_attn.k_proj": (hidden, shared),
                  "self_attn.v_proj": (hidden, shared), "self_attn.o_proj": (hidden, hidden),
                  "mlp.gate_proj": (hidden, inner), "mlp.up_proj": (hidden, inner), "mlp.down_proj": (inner, hidden)}
        from safetensors.torch import save_file
        tensors = {}
        for layer in range(layers):
            for name, (inputs, outputs) in shapes.items():
                path = f"base_model.model.model.layers.{layer}.{name}"
                tensors[f"{path}.lora_A.weight"] = torch.randn(16, inputs) * 0.02
                tensors[f"{path}.lora_B.weight"] = torch.zeros(outputs, 16)
        save_file(tensors, adapter / "adapter_model.safetensors")
        (adapter / "adapter_config.json").write_text(json.dumps(dict(
            peft_type="LORA", task_type="CAUSAL_LM", r=16, lora_alpha=32, base_model_name_or_path=str(base),
            target_modules=[name.split(".")[1] for name in shapes])))
        self.train_row(size, ["--gradient-checkpointing"], adapter)

    def checkpoint(self, size):
        folder = self.folder / f"{size}-checkpoint"
        if not folder.exists():
            random_checkpoint(folder, self.sizes[size], self.gavel.device)
            give_back()
        return folder

    def step(self, size):
        """Whole steps of GRPO: responses of one length, and the plugin `length` as the reward."""
        prompts, prompt, response, _ = STEP[self.small]
        config = self.write_run("step", size, response, LENGTH)
        with Memory(self.gavel.device) as memory:
            steps = self.trained(config, "step", 3)
        predicted = self.gavel.run([self.gavel.path, "train", "-c", config, "--dry-run"], cwd=self.folder)
        predicted = next((line for line in predicted.splitlines() if "at most" in line), "").removeprefix("# memory, ")
        # The first step also warms up.
        last = steps[1:]
        phases = ", ".join(f"{key.removeprefix('time/')} {median(last, key):.2f}" for key in sorted(last[0])
                           if key.startswith("time/") and key not in ("time/step", "time/timestamp"))
        self.table.add(size, f"GRPO {prompts} x 8 x ({prompt} + {response})", f"{median(last, 'time/step'):.2f} s",
                       f"{median(last, 'perf/tokens_per_second'):.0f}", f"seconds: {phases}", "", "",
                       f"{memory.most()} in use, {predicted}")
        print(json.dumps(last[-1]), flush=True)

    def trl(self, size):
        """The same step by TRL, where it is installed."""
        if not importlib.util.find_spec("trl"):
            self.table.add(size, "GRPO by TRL", "TRL is not installed")
            return
        prompts, prompt, response, _ = STEP[self.small]
        self.write_run("trl", size, response, LENGTH)
        script = pathlib.Path(__file__).with_name("trl_step.py")
        steps = self.gavel.run([sys.executable, script, self.checkpoint(size), self.folder / "rows.jsonl", "--prompts",
                                prompts, "--response-tokens", response, "--dtype", self.dtype, "--device",
                                self.gavel.device])
        last = json.loads([line for line in steps.splitlines() if line.startswith("{")][-1])
        self.table.add(size, f"GRPO by TRL {prompts} x 8 x ({prompt} + {response})", f"{last['seconds']:.2f} s",
                       f"{prompts * 8 * (prompt + response) / last['seconds']:.0f}",
                       f"seconds: generate {last['generation']:.2f}")

    def judge(self, size):
        """The device's idle share behind a judge whose delays are random, up to three steps, with and without a
        schedule."""
        response = STEP[self.small][3]
        quick = self.trained(self.write_run("quick", size, response, LENGTH), "quick", 2)[-1]["time/step"]
        with slow_judge(3 * quick) as port:
            slow = f"""
                [[reward]]
                name = "judge"
                path = {json.dumps(str(PLUGINS / "service.wasm"))}
                url = "http://127.0.0.1:{port}/score"
                limits = {{ timeout = "10m" }}
                """
            for name, how, count in ("off", "", 3), ("on", "schedule = { stream = true, max_staleness = 3 }", 9):
                config = self.write_run(f"judge-{name}", size, response, slow, how)
                steps = self.trained(config, f"judge-{name}", count)[2 if how else 1:]
                idle = statistics.mean(line["perf/device_idle"] for line in steps)
                seconds = statistics.mean(line["time/step"] for line in steps)
                self.table.add(size, f"judge, up to {3 * quick:.1f} s, schedule {name}", f"{seconds:.2f} s a step", "",
                               f"{idle:.0%} idle; {quick:.2f} s a step without delays")

    def write_run(self, name, size, response, reward, more=""):
        prompts, prompt, _, _ = STEP[self.small]
        vocab = self.sizes[size]["vocab_size"]
        rows = [dict(prompt=words(3 + (row * 7919 + at * 104729) % (vocab - 3) for at in range(prompt)))
                for row in range(4 * prompts)]
        (self.folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        path = self.folder / f"{name}.toml"
        path.write_text(f"""
            {more}
            [model]
            path = {json.dumps(str(self.checkpoint(size)))}
            dtype = "{self.dtype}"
            device = "{self.gavel.device}"
            [data]
            train = "rows.jsonl"
            [rollout]
            group_size = 8
            max_tokens = {response}
            max_batch = 512
            logit_bias = {{ {self.sizes[size]["eos_token_id"]} = -100.0 }}
            [train]
            steps = 1
            prompts_per_step = {prompts}
            mini_batch_prompts = {prompts // 4}
            learning_rate = 1e-6
            [checkpoint]
            every = 1000
            [log]
            dir = "runs"
            name = "{name}"
            {reward}
            """)
        return path

    def trained(self, config, name, steps):
        """The metrics of the steps of a run."""
        self.gavel.run([self.gavel.path, "train", "-c", config, "--set", f"train.steps={steps}"], cwd=self.folder)
        lines = (self.folder / "runs" / name / "metrics.jsonl").read_text().splitlines()
        return [line for line in map(json.loads, lines) if "time/step" in line]


class Memory:
    """Looks at the memory of a GPU while something runs."""

    def __init__(self, device):
        self.is_gpu, self.bytes, self.over = device != "cpu", 0, threading.Event()

    def __enter__(self):
        if self.is_gpu:
            give_back()
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
        return f"{self.bytes / 2**30:.1f} GiB"


@contextlib.contextmanager
def slow_judge(most):
    """A server of verdicts, each after a random delay of up to `most` seconds."""
    delays, loop = random.Random(0), asyncio.new_event_loop()

    async def answer(reader, writer):
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = next(line for line in head.splitlines() if line.startswith("content-length:"))
                asked = json.loads(await reader.readexactly(int(length.split(":")[1])))
                await asyncio.sleep(delays.uniform(0, most))
                verdicts = json.dumps(dict(verdicts=[dict(score=delays.random()) for _ in asked["samples"]])).encode()
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: "
                             + str(len(verdicts)).encode() + b"\r\n\r\n" + verdicts)
                await writer.drain()
        writer.close()

    server = loop.run_until_complete(asyncio.start_server(answer, "127.0.0.1", 0, backlog=1024))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def median(steps, key):
    return statistics.median(step[key] for step in steps)


def memory_of(line):
    """The most memory of a measurement: of tensors, held for them, and predicted for them."""
    what = [("allocated", "tensors"), ("reserved", "held"), ("predicted", "predicted")]
    numbers = [f"{line[f'{key}_bytes'] / 2**30:.1f} {label}" for key, label in what if f"{key}_bytes" in line]
    return ", ".join(numbers) + " GiB"


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
            self.missing = in_one_line(error)
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

            first, whole = (seconds(lambda: generate(count), self.device, rounds=1, before=before)
                            for count, before in ((1, 1), (self.new, 0)))
            return batch * (self.new - 1) / (whole - first)
        except Exception as error:
            self.failures[batch] = in_one_line(error)
            return None


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
