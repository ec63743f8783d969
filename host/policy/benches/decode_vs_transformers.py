"""Decoding by Gavel and by `transformers.generate`, in one run, alternating: a random Qwen2 of 3 million parameters,
32-bit, 2 threads, a prompt of 35 tokens and 128 new ones.

    pip install torch==2.11.0 transformers
    python host/policy/benches/decode_vs_transformers.py
"""
import json
import os
import statistics
import subprocess
import time

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

PROMPT, NEW, ROUNDS = 35, 128, 3
torch.set_num_threads(2)
torch.manual_seed(0)
config = Qwen2Config(
    vocab_size=259, hidden_size=256, intermediate_size=768, num_hidden_layers=4, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=4096, tie_word_embeddings=True, pad_token_id=0, eos_token_id=2,
    bos_token_id=None,
)
model = Qwen2ForCausalLM(config).eval()


def transformers_rates():
    rates = {}
    for batch in (1, 16, 64):
        ids = torch.randint(3, 259, (batch, PROMPT))
        seconds = []
        for _ in range(4):
            start = time.perf_counter()
            model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), do_sample=True, top_k=0,
                           max_new_tokens=NEW, min_new_tokens=NEW)
            seconds.append(time.perf_counter() - start)
        rates[batch] = batch * NEW / min(seconds[1:])
    return rates


def gavel_rates():
    # As `gavel` runs itself.
    environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "20000"}
    command = ["cargo", "bench", "--quiet", "--workspace", "--bench", "decode"]
    output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return {line["batch"]: line["tokens_per_second"] for line in lines}


gavel_rates()  # builds
ours, theirs = [], []
for _ in range(ROUNDS):
    ours.append(gavel_rates())
    theirs.append(transformers_rates())
print("batch  gavel tokens/s  transformers tokens/s  ratio")
for batch in (1, 16, 64):
    a = statistics.median(rates[batch] for rates in ours)
    b = statistics.median(rates[batch] for rates in theirs)
    print(f"{batch:5}  {a:14.0f}  {b:21.0f}  {a / b:5.2f}")
