"""Decoding and training on a GPU: is it right, and how fast, beside what the device can do and beside `transformers`.

    python tests/gpu/run.py path/to/gavel            # on a machine with PyTorch for CUDA; nothing is built
    python tests/gpu/run.py path/to/gavel --small    # small models on the CPU, to test this script

The binary runs against the libtorch of the installed PyTorch, whose version must be that which it was built with. The
models have random weights and the sizes of Qwen2.5-0.5B and 7B. Checked is that the small models in
tests/parity/models continue their prompts as `transformers` did. Exits with 1 where a check fails.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import torch

MODELS = pathlib.Path(__file__).parent.parent / "parity" / "models"
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

TRAINING = {
    False: ["--prompts", 2, "--prompt-tokens", 512, "--response-tokens", 512],
    True: ["--prompts", 2, "--group-size", 4, "--prompt-tokens", 16, "--response-tokens", 16],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gavel", type=pathlib.Path, help="the binary")
    parser.add_argument("--small", action="store_true", help="small models, on the CPU, in 32 bits")
    parser.add_argument("--models", nargs="+", help="only these sizes")
    args = parser.parse_args()
    if not args.small and not torch.cuda.is_available():
        sys.exit("PyTorch finds no GPU; --small runs on the CPU")
    device, dtype = ("cpu", "float32") if args.small else ("cuda:0", "bfloat16")
    gavel = Gavel(args.gavel.resolve(), device)
    sizes = {name: of for name, of in (SMALL if args.small else FULL).items() if name in (args.models or [name])}
    if not sizes:
        sys.exit(f"--models knows {', '.join(SMALL if args.small else FULL)}")
    batches, prompt, new = ([1, 4, 8], 32, 16) if args.small else ([1, 32, 256], 512, 128)

    name = "CPU" if args.small else torch.cuda.get_device_name(0)
    bandwidth, ceiling = memory_bandwidth(device, args.small), matmul_ceiling(device, dtype, args.small)
    torch.cuda.empty_cache()
    print(f"{name}, PyTorch {torch.__version__}: copies {bandwidth / 1e9:.0f} GB/s, "
          f"multiplies {ceiling / 1e12:.1f} TFLOP/s in {dtype}")
    with tempfile.TemporaryDirectory() as folder:
        checks = [check(gavel, fixture, kind, pathlib.Path(folder))
                  for fixture in FIXTURES for kind in ("float32", "bfloat16")]
        rows = []
        for size, config in sizes.items():
            path = pathlib.Path(folder) / f"{size}.json"
            path.write_text(json.dumps(config))
            shape = ["--init", path, "--dtype", dtype, "--prompt-tokens", prompt, "--json", "--batch"]
            decoding = gavel.lines("bench", "decode", *shape, commas(batches), "--new-tokens", new,
                                   "--bandwidth", bandwidth)
            prefill = gavel.lines("bench", "prefill", *shape, commas(batches[:2]))
            train = [gavel.lines("bench", "train", *shape[:4], "--json", *TRAINING[args.small], "--ceiling", ceiling,
                                 *again) for again in ([], ["--gradient-checkpointing"])]
            peer = transformers_rates(config, device, dtype, batches, prompt, new)
            # What PyTorch keeps for itself, the next model needs.
            torch.cuda.empty_cache()
            rows += [decode_row(size, line, peer) for line in decoding]
            rows += [train_row(size, line) for [line] in train]
            for line in prefill:
                share = line["flops_per_second"] / ceiling
                rows.append([size, f"prefill {line['batch']} x {prompt}", f"{line['seconds'] * 1e3:.1f} ms",
                             f"{line['tokens_per_second']:.0f}", f"{share:.0%} of the ceiling", "", ""])
    print_table(["model", "what", "time", "tokens/s", "against the device", "transformers", "ratio"], rows)
    print_table(["check", "numbers", "", "found"], checks)
    sys.exit(0 if all(row[2] == "passed" for row in checks) else 1)


class Gavel:
    def __init__(self, path, device):
        libraries = [os.path.join(torch.__path__[0], "lib"), os.environ.get("LD_LIBRARY_PATH")]
        self.environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(filter(None, libraries))}
        self.path, self.device = path, device

    def lines(self, *arguments):
        """The JSON lines that it prints."""
        command = [self.path, *map(str, arguments), "--device", self.device]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stderr}")
        return [json.loads(line) for line in done.stdout.splitlines()]


def commas(numbers):
    return ",".join(map(str, numbers))


def check(gavel, fixture, dtype, folder):
    """Greedy decoding against what is stored: in 32 bits every token, in 16 the first and its log-probability."""
    expected = safetensors(MODELS / fixture / "expected.safetensors")
    prompt = expected["ids"][0, :expected["lengths"][0]].tolist()
    greedy, logits = expected["greedy"].tolist(), expected["logits"][0, len(prompt) - 1]
    checkpoint = folder / fixture
    if not checkpoint.exists():
        shutil.copytree(MODELS / fixture, checkpoint)
        words = {f"t{token}": token for token in range(len(logits))}
        tokenizer = dict(version="1.0", added_tokens=[], model=dict(type="WordLevel", vocab=words, unk_token="t0"),
                         pre_tokenizer=dict(type="WhitespaceSplit"))
        (checkpoint / "tokenizer.json").write_text(json.dumps(tokenizer))
        (checkpoint / "chat_template.jinja").write_text("{{ messages[0].content }}")
        # One that ends nothing.
        unused = next(token for token in range(len(logits)) if token not in greedy)
        (checkpoint / "generation_config.json").write_text(json.dumps(dict(eos_token_id=unused)))
    count = len(greedy) if dtype == "float32" else 1
    text = " ".join(f"t{token}" for token in prompt)
    [found] = gavel.lines("generate", "-m", checkpoint, "--dtype", dtype, "--prompt", text, "--temperature", 0,
                          "--max-tokens", count, "--logprobs", "--json")
    right = next((i for i, (a, b) in enumerate(zip(found["token_ids"], greedy)) if a != b), len(found["token_ids"]))
    off = abs(found["logprobs"][0] - logits.log_softmax(-1)[greedy[0]].item())
    passed = right == count and off < (1e-3 if dtype == "float32" else 0.1)
    return [fixture, dtype, "passed" if passed else "FAILED",
            f"{right} of {count} tokens, first log-probability off by {off:.1g}"]


def safetensors(path):
    """What a file holds (https://github.com/huggingface/safetensors)."""
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


def seconds(run, device, rounds=10):
    """The median of some runs."""
    times = []
    for _ in range(rounds + 2):
        start = time.perf_counter()
        run()
        if device != "cpu":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times[2:])


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


def transformers_rates(config, device, dtype, batches, prompt, new):
    """Tokens a second of `generate` after the first token, by batch; nothing where transformers is not installed."""
    try:
        from transformers import Qwen2Config, Qwen2ForCausalLM
    except ImportError:
        return {}
    torch.manual_seed(0)
    with torch.device(device):
        torch.set_default_dtype(getattr(torch, dtype))
        model = Qwen2ForCausalLM(Qwen2Config(**config)).eval()
        torch.set_default_dtype(torch.float32)
    rates = {}
    for batch in batches:
        ids = torch.randint(3, config["vocab_size"], (batch, prompt), device=device)

        def generate(new):
            model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), do_sample=True, top_k=0, pad_token_id=0,
                           max_new_tokens=new, min_new_tokens=new)

        whole, first = (seconds(lambda: generate(count), device, rounds=1) for count in (new, 1))
        rates[batch] = batch * (new - 1) / (whole - first)
    return rates


def decode_row(size, line, peer):
    rate = peer.get(line["batch"])
    against = [f"{rate:.0f}", f"{line['tokens_per_second'] / rate:.2f}"] if rate else ["", ""]
    return [size, f"decode {line['batch']}", f"{line['step_ms']:.2f} ms", f"{line['tokens_per_second']:.0f}",
            f"{line['times_floor']:.2f} x the floor", *against]


def train_row(size, line):
    again = ", layers again" if line["gradient_checkpointing"] else ""
    what = f"train {line['prompts']} x {line['group_size']} x ({line['prompt_tokens']} + {line['response_tokens']}){again}"
    return [size, what, f"{line['seconds'] * 1e3:.0f} ms", f"{line['tokens_per_second']:.0f}",
            f"{line['share_of_ceiling']:.0%} of the ceiling", "", ""]


def print_table(header, rows):
    rows = [header, *rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
    print()
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


if __name__ == "__main__":
    main()
