"""Decoding by Gavel and by `transformers.generate`, in one run, alternating: the cases that `decode.rs` describes, or
those that are named. 32-bit, 2 threads.

    pip install torch==2.11.0 transformers
    python host/policy/benches/decode_vs_transformers.py [plain] [ragged] [group]
"""
import json
import os
import statistics
import subprocess
import sys
import time

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

PROMPT, NEW, ROUNDS = 35, 128, 3
CASES = sys.argv[1:] or ["plain", "ragged", "group"]
torch.set_num_threads(2)
torch.manual_seed(0)
SMALL = dict(vocab_size=259, hidden_size=256, intermediate_size=768, num_hidden_layers=4, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=4096, tie_word_embeddings=True, pad_token_id=0,
             eos_token_id=2, bos_token_id=None)
WIDE = SMALL | dict(hidden_size=896, intermediate_size=4864, num_attention_heads=14)


def model(sizes):
    return Qwen2ForCausalLM(Qwen2Config(**sizes)).eval()


def generate(model, ids, new, **more):
    model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), do_sample=True, top_k=0, max_new_tokens=new,
                   min_new_tokens=new, **more)


def best(rounds, run):
    """The seconds of the fastest run."""
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def plain():
    small = model(SMALL)
    for batch in (1, 16, 64):
        ids = torch.randint(3, 259, (batch, PROMPT))
        yield f"batch {batch}", batch * NEW / best(4, lambda: generate(small, ids, NEW))


def ragged():
    small = model(SMALL)
    lengths = [8 + 97 * i % 249 for i in range(512)]
    ids = torch.randint(3, 259, (512, PROMPT))

    def run():
        # Requests run in their order; a batch lasts as long as its longest response.
        for first in range(0, 512, 64):
            generate(small, ids[first:first + 64], max(lengths[first:first + 64]))

    yield "512 responses, 64 under way", sum(lengths) / best(1, run)


def group():
    wide, ids = model(WIDE), torch.randint(3, 259, (1, 512))
    run = lambda: generate(wide, ids, NEW, num_return_sequences=8)
    yield "8 responses to 512 tokens", 8 * NEW / best(3, run)


def transformers_rates():
    return {(case, what): rate for case in CASES for what, rate in globals()[case]()}


def gavel_rates():
    # The settings with which `gavel` starts itself.
    environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "20000"}
    command = ["cargo", "bench", "--quiet", "--workspace", "--bench", "decode", "--", *CASES]
    output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return {(line["case"], line["what"]): line["tokens_per_second"] for line in lines}


subprocess.run(["cargo", "bench", "--workspace", "--bench", "decode", "--no-run"], check=True)
ours, theirs = [], []
for _ in range(ROUNDS):
    ours.append(gavel_rates())
    theirs.append(transformers_rates())
print(f"{'case':<8}{'':<29}{'gavel tokens/s':>15}{'transformers':>14}{'ratio':>7}  (of each round)")
for key in ours[0]:
    a, b = [rates[key] for rates in ours], [rates[key] for rates in theirs]
    each = " ".join(f"{x / y:.2f}" for x, y in zip(a, b))
    a, b = statistics.median(a), statistics.median(b)
    print(f"{key[0]:<8}{key[1]:<29}{a:>15.0f}{b:>14.0f}{a / b:>7.2f}  ({each})")
