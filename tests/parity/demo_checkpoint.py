"""Loads the checkpoints of a run of the demo with `transformers`, answers the validation set greedily and compares
the accuracy with what Gavel logged for the same step.

    pip install torch transformers pyarrow tensorboard
    python tests/parity/demo_checkpoint.py runs/demo
"""
import glob
import json
import re
import sys
from pathlib import Path

import pyarrow.parquet as parquet
import torch
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from transformers import AutoModelForCausalLM, AutoTokenizer

run = Path(sys.argv[1])
rows = parquet.read_table("target/demo/validation.parquet").to_pylist()
logged = {line["step"]: line for line in map(json.loads, open(run / "metrics.jsonl"))}
right_answer = re.compile(r"Answer:\s*(.*)")


def accuracy(checkpoint):
    tokenizer = AutoTokenizer.from_pretrained(checkpoint, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32).eval()
    right = 0
    for start in range(0, len(rows), 100):
        batch = rows[start : start + 100]
        texts = [tokenizer.apply_chat_template(r["prompt"], tokenize=False, add_generation_prompt=True) for r in batch]
        inputs = tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False, return_token_type_ids=False)
        with torch.no_grad():
            output = model.generate(**inputs, do_sample=False, max_new_tokens=32)
        answers = tokenizer.batch_decode(output[:, inputs.input_ids.shape[1] :], skip_special_tokens=True)
        for row, answer in zip(batch, answers):
            found = right_answer.findall(answer)
            right += bool(found) and " ".join(found[-1].split()) == row["reward_model"]["ground_truth"]
    return right / len(rows)


failed = False
for checkpoint in sorted((run / "checkpoints").iterdir()):
    step = int(checkpoint.name.removeprefix("step-"))
    found, expected = accuracy(checkpoint), logged[step].get("val/accuracy")
    # A tie may be decided either way in float arithmetic.
    same = expected is None or abs(found - expected) <= 1 / len(rows)
    failed |= not same
    print(f"{checkpoint}: transformers {found:.3f}, gavel {expected} {'' if same else 'DIFFERENT'}")

scalars = {}
for path in sorted(glob.glob(str(run / "events.out.tfevents.*"))):
    for event in EventFileLoader(path).Load():
        for value in event.summary.value:
            number = value.tensor.float_val[0] if value.HasField("tensor") else value.simple_value
            scalars[value.tag, event.step] = number
for step, line in logged.items():
    for name, value in line.items():
        if name != "step" and abs(scalars[name, step] - value) > 1e-6 * max(1, abs(value)):
            failed = True
            print(f"TensorBoard has {scalars[name, step]} for {name} at step {step}, metrics.jsonl {value}")
print(f"{len(scalars)} TensorBoard scalars compared")
sys.exit(failed)
