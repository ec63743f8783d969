"""TRL's GRPOTrainer with a component as its reward, and with the same function in Python: both train the same random
Qwen2 model to write digits, from the same seed, and must have the same rewards at each step.

    pip install torch==2.11.0 transformers==5.9.0 trl==1.16.0 datasets
    cargo xtask plugins && cargo xtask wheel && pip install target/wheels/*.whl
    python sdk/trainer-python/benches/trl_training.py
"""
import json
import os
import random
import re
import tempfile

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", CUDA_VISIBLE_DEVICES="")
import torch
from datasets import Dataset
from gavel_rl import Reward
from gavel_rl.trl import RewardFunction
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

PROMPTS, GROUP, RESPONSE, STEPS, SHOWN = 8, 8, 16, 40, 10
torch.set_num_threads(2)
specials = ["<|pad|>", "<|im_start|>", "<|im_end|>"]
alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
raw = Tokenizer(models.BPE(vocab={token: at for at, token in enumerate(specials + alphabet)}, merges=[]))
raw.add_special_tokens(specials)
raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
raw.decoder = decoders.ByteLevel()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="<|pad|>", eos_token="<|im_end|>", padding_side="left")
draw = random.Random(0)
prompts = [f"Question: what is {draw.randint(10, 99)} + {draw.randint(10, 99)}? Answer: " for _ in range(1000)]


def digits(completions, **_):
    return [float(re.fullmatch("(?s).*[0-9].*[0-9].*", completion) is not None) for completion in completions]


class Rewards(TrainerCallback):
    def __init__(self):
        self.means, self.gavel = [], []

    def on_log(self, args, state, control, logs=None, **_):
        if "reward" in logs:
            self.means.append(logs["reward"])
            self.gavel.append({name: value for name, value in logs.items() if name.startswith("gavel/")})


def train(reward):
    torch.manual_seed(0)
    model = Qwen2ForCausalLM(Qwen2Config(
        vocab_size=259, hidden_size=64, intermediate_size=192, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=512, tie_word_embeddings=True, pad_token_id=0, eos_token_id=2,
        bos_token_id=None,
    ))
    batch, rewards = PROMPTS * GROUP, Rewards()
    arguments = GRPOConfig(
        output_dir=tempfile.mkdtemp(), use_cpu=True, report_to=[], save_strategy="no", disable_tqdm=True,
        per_device_train_batch_size=batch, gradient_accumulation_steps=1, num_generations=GROUP,
        max_completion_length=RESPONSE, temperature=1.0, max_steps=STEPS, learning_rate=3e-3,
        lr_scheduler_type="constant", beta=0.0, loss_type="dapo", logging_steps=1, bf16=False,
        gradient_checkpointing=False, seed=0,
    )
    trainer = GRPOTrainer(
        model=model, reward_funcs=reward, args=arguments, processing_class=tokenizer, callbacks=[rewards],
        train_dataset=Dataset.from_list([{"prompt": prompt, "answer": "4"} for prompt in prompts]),
    )
    trainer.train()
    return rewards


component = RewardFunction([Reward("format", params={"pattern": "(?s).*[0-9].*[0-9].*"})])
ours, theirs = train(component), train(digits)
means = lambda values: [round(sum(values[at : at + SHOWN]) / SHOWN, 3) for at in range(0, STEPS, SHOWN)]
print(json.dumps({"steps": STEPS, "component": means(ours.means), "python": means(theirs.means),
                  "same_at_every_step": ours.means == theirs.means}))
print(json.dumps({"last_step": ours.gavel[-1]}))
assert ours.means == theirs.means
