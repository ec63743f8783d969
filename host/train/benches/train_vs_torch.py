"""An optimiser step by Gavel and by PyTorch with transformers, in one run, alternating: random Qwen2 models of hidden
128 and 256 with 4 layers, 32-bit, 2 threads, fused AdamW.

    pip install torch==2.11.0 transformers
    python host/train/benches/train_vs_torch.py

`group` is a GRPO step of 8 prompts with 48 tokens and 8 responses of 32 tokens to each; `ragged` one of supervised
fine-tuning over 64 rows of 36 to 288 tokens. The peer pads its rows to the longest, as collators do, and computes the
logits of responses only (`logits_to_keep`).
"""
import json
import os
import statistics
import subprocess
import time

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

ROUNDS, STEPS = 3, 8
torch.set_num_threads(2)
torch.manual_seed(0)


def peer(case, hidden):
    model = Qwen2ForCausalLM(Qwen2Config(
        vocab_size=259, hidden_size=hidden, intermediate_size=3 * hidden, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=4096, tie_word_embeddings=True, pad_token_id=0,
        eos_token_id=2, bos_token_id=None, attn_implementation="sdpa",
    )).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    prompt = 48 if case == "group" else 32
    responses = [32] * 64 if case == "group" else [4 * (row + 1) for row in range(64)]
    longest = max(responses)
    ids = torch.randint(3, 259, (64, prompt + longest))
    if case == "group":
        ids[:, :prompt] = ids[::8, :prompt].repeat_interleave(8, 0)
    mask = torch.arange(longest) < torch.tensor(responses)[:, None]
    attention = torch.cat([torch.ones(64, prompt, dtype=torch.bool), mask], 1).long()
    advantages = torch.tensor([1.0, -1.0] * 32)[:, None]
    old = torch.full((64, longest), -5.5)

    def step():
        logits = model(input_ids=ids, attention_mask=attention, logits_to_keep=longest + 1).logits[:, :-1]
        chosen = torch.gather(logits, 2, ids[:, prompt:, None])[..., 0] - logits.logsumexp(-1)
        if case == "group":
            ratio = (chosen - old).exp()
            losses = -torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
        else:
            losses = -chosen
        loss = (losses * mask).sum() / mask.sum()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    seconds = []
    for _ in range(STEPS):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[1:])


def gavel():
    # The settings with which `gavel` starts itself.
    environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "20000"}
    command = ["cargo", "bench", "--quiet", "--workspace", "--bench", "train"]
    output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return {(line["case"], line["hidden"]): line["seconds"] for line in lines}


cases = list(gavel())  # builds
ours, theirs = [], []
for _ in range(ROUNDS):
    ours.append(gavel())
    theirs.append({case: peer(*case) for case in cases})
print("case    hidden  gavel ms  torch ms  gavel / torch")
for case in cases:
    a, b = (statistics.median(times[case] for times in rounds) for rounds in (ours, theirs))
    print(f"{case[0]:7} {case[1]:6}  {1e3 * a:8.1f}  {1e3 * b:8.1f}  {a / b:13.2f}")
