"""A GRPO step by Gavel and by TRL's GRPOTrainer, in one run, alternating: the same random Qwen2 checkpoint (hidden
256 and 128, 4 layers), 8 prompts with 8 responses of at most 32 tokens, AdamW, 32-bit, 2 threads.

    pip install torch==2.11.0 transformers trl datasets
    cargo build --release --workspace && cargo xtask plugins
    python host/pipeline/benches/grpo_vs_trl.py
"""
import json
import os
import random
import re
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", CUDA_VISIBLE_DEVICES="")
import torch
from datasets import Dataset
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

PROMPTS, GROUP, RESPONSE, STEPS, WARMUP, ROUNDS = 8, 8, 32, 14, 4, 2
root = Path(__file__).resolve().parents[3]
folder = Path(tempfile.mkdtemp())
torch.set_num_threads(2)
torch.manual_seed(0)

specials = ["<|pad|>", "<|im_start|>", "<|im_end|>"]
alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
raw = Tokenizer(models.BPE(vocab={token: at for at, token in enumerate(specials + alphabet)}, merges=[]))
raw.add_special_tokens(specials)
raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
raw.decoder = decoders.ByteLevel()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="<|pad|>", eos_token="<|im_end|>", padding_side="left")
tokenizer.chat_template = "{% for message in messages %}{{ message.content }}{% endfor %}"


def write_checkpoint(hidden):
    config = Qwen2Config(
        vocab_size=259, hidden_size=hidden, intermediate_size=3 * hidden, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=4096, tie_word_embeddings=True, pad_token_id=0, eos_token_id=2,
        bos_token_id=None,
    )
    Qwen2ForCausalLM(config).save_pretrained(checkpoint)
    tokenizer.save_pretrained(checkpoint)


checkpoint = folder / "model"
draw = random.Random(0)
prompts = [f"Question: what is {draw.randint(10, 99)} + {draw.randint(10, 99)}? Answer: " for _ in range(1000)]
(folder / "train.jsonl").write_text("".join(json.dumps({"prompt": prompt}) + "\n" for prompt in prompts))
(folder / "run.toml").write_text(f"""
[model]
path = "{checkpoint}"
[data]
train = "{folder}/train.jsonl"
[rollout]
group_size = {GROUP}
max_tokens = {RESPONSE}
[[reward]]
name = "digit"
path = "{root}/target/plugins/format.wasm"
params = {{ pattern = '(?s).*[0-9].*' }}
[train]
steps = {STEPS}
prompts_per_step = {PROMPTS}
learning_rate = 1e-3
[checkpoint]
every = 1000
[log]
dir = "{folder}/runs"
""")


def gavel():
    command = [root / "target/release/gavel", "train", "-c", folder / "run.toml", "--json"]
    summary = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    lines = [json.loads(line) for line in open(Path(summary["folder"]) / "metrics.jsonl")][1 + WARMUP :]
    median = lambda name: statistics.median(line[name] for line in lines)
    length = statistics.mean(line["response_length/mean"] for line in lines)
    return median("time/step"), length, f"generate {median('time/generate'):.3f} s, update {median('time/update'):.3f} s"


class Clock(TrainerCallback):
    def __init__(self):
        self.marks, self.lengths = [], []

    def on_step_end(self, args, state, control, **_):
        self.marks.append(time.perf_counter())

    def on_log(self, args, state, control, logs=None, **_):
        self.lengths += [logs["completions/mean_length"]] if "completions/mean_length" in logs else []


def trl():
    def reward(completions, **_):
        return [float(re.search("[0-9]", completion) is not None) for completion in completions]

    batch = PROMPTS * GROUP
    arguments = GRPOConfig(
        output_dir=str(folder / "trl"), use_cpu=True, report_to=[], save_strategy="no", disable_tqdm=True,
        per_device_train_batch_size=batch, gradient_accumulation_steps=1, num_generations=GROUP,
        max_completion_length=RESPONSE, temperature=1.0, max_steps=STEPS, learning_rate=1e-3,
        lr_scheduler_type="constant", beta=0.0, loss_type="dapo", logging_steps=1, bf16=False,
        gradient_checkpointing=False,
    )
    clock = Clock()
    trainer = GRPOTrainer(
        model=Qwen2ForCausalLM.from_pretrained(checkpoint, dtype=torch.float32), reward_funcs=reward, args=arguments,
        train_dataset=Dataset.from_list([{"prompt": prompt} for prompt in prompts]), processing_class=tokenizer,
        callbacks=[clock],
    )
    trainer.train()
    steps = [b - a for a, b in zip(clock.marks[WARMUP - 1 :], clock.marks[WARMUP:])]
    return statistics.median(steps), statistics.mean(clock.lengths[WARMUP:]), ""


for hidden in (256, 128):
    write_checkpoint(hidden)
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(gavel())
        theirs.append(trl())
    for name, rounds in (("gavel", ours), ("trl", theirs)):
        for seconds, length, parts in rounds:
            print(f"hidden {hidden} {name:6} {seconds:.3f} s/step, mean response {length:.1f} tokens  {parts}")
    ratio = statistics.median(run[0] for run in theirs) / statistics.median(run[0] for run in ours)
    print(f"hidden {hidden}: TRL's step takes {ratio:.2f} times Gavel's", flush=True)
