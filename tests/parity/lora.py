"""Writes the fixtures of `host/policy/tests/policy/lora.rs`: random LoRA
adapters to models of `tests/parity/models/`, and PEFT's results with them.

    pip install "peft==0.21.2" "transformers==5.23.0" "torch==2.11.0" safetensors
    python tests/parity/lora.py                 # writes tests/parity/lora/
    python tests/parity/lora.py llama-rslora    # or only some
    python tests/parity/lora.py --check A B     # two folders compute the same

Each folder below `lora/` is an adapter as `save_pretrained` writes it, with
`expected.safetensors` beside it:

    ids        [batch, time]            tokens; 0 is padding, on the right
    logits     [batch, time, vocab]     those of padding mean nothing
    greedy     [200]                    continues the first row
    grad.NAME  the shape of NAME        gradients of the mean cross-entropy of
                                        the next token in each row

The folders of `--check` are adapters, or checkpoints, such as a merged one.
"""

import os
import pathlib
import sys

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

from models import batch, language_model

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = HERE / "lora"
# The folder in which `cargo test` runs the test: the path to the base is relative to it.
RUN_IN = HERE.parents[1] / "host/policy"

# name: (base, settings of the adapter, kind of the base's numbers)
ADAPTERS = {
    "qwen2-all-linear": ("qwen2", dict(target_modules="all-linear", r=4, lora_alpha=8), torch.float32),
    "qwen3-query-value": ("qwen3", dict(target_modules=["q_proj", "v_proj"], r=8, lora_alpha=16), torch.float32),
    "llama-rslora": ("llama", dict(target_modules="all-linear", r=4, lora_alpha=4, use_rslora=True), torch.float32),
    "mistral-patterns": ("mistral", dict(target_modules=["k_proj", "o_proj", "up_proj", "down_proj"], r=4, lora_alpha=8,
                                         rank_pattern={"k_proj": 2, "model.layers.1.mlp.down_proj": 6},
                                         alpha_pattern={"o_proj": 3, "layers.0.mlp.up_proj": 5}), torch.float32),
    "gemma-one-layer": ("gemma", dict(target_modules=r".*layers\.1\.(self_attn\.[qk]_proj|mlp\.gate_proj)", r=3,
                                      lora_alpha=6, lora_dropout=0.1), torch.float32),
    "llama-bf16": ("llama-bf16-shards", dict(target_modules="all-linear", r=4, lora_alpha=8), torch.bfloat16),
}


def adapted(number, base, settings, dtype):
    torch.manual_seed(number)
    path = f"../../tests/parity/models/{base}"
    model = AutoModelForCausalLM.from_pretrained(path, dtype=dtype, attn_implementation="eager")
    model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **settings)).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            # PEFT starts with B = 0, which would show nothing.
            if "lora_B" in name:
                weight.copy_(torch.randn_like(weight) * 0.2)
    return model


def write(names):
    os.chdir(RUN_IN)
    for number, (name, (base, settings, dtype)) in enumerate(ADAPTERS.items()):
        if names and name not in names:
            continue
        # If two tokens are about equally likely, another summation order may choose the other.
        for seed in range(number * 100, number * 100 + 100):
            model = adapted(seed, base, settings, dtype)
            ids, lengths, mask = batch(seed)
            found, margin = language_model(model, ids, lengths, mask)
            if margin > 1e-3 or dtype != torch.float32:
                break
        else:
            sys.exit(f"{name}: no seed gives clear choices")
        folder = FOLDER / name
        model.save_pretrained(folder)
        (folder / "README.md").unlink()
        grads = {f"grad.{key.replace('.default', '')}": weight.grad.clone()
                 for key, weight in model.named_parameters() if weight.requires_grad}
        save_file(dict(ids=ids, **found, **grads), folder / "expected.safetensors")
        print(f"{name}: seed {seed}, smallest margin {margin:.4f}, {len(grads)} tensors")


def logits(folder, ids, mask):
    if (pathlib.Path(folder) / "adapter_config.json").exists():
        base = LoraConfig.from_pretrained(folder).base_model_name_or_path
        model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base, dtype="auto"), folder)
    else:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype="auto")
    with torch.no_grad():
        return model.eval()(input_ids=ids, attention_mask=mask).logits


def check(one, other):
    """Checks that two folders compute the same, except for the rounding of a
    merge, which is coarse in 16 bits."""
    one, other = pathlib.Path(one).resolve(), pathlib.Path(other).resolve()
    os.chdir(RUN_IN)
    ids, _, mask = batch(7)
    a, b = logits(one, ids, mask), logits(other, ids, mask)
    difference = ((a.float() - b.float()).abs().max() / a.float().abs().max()).item()
    print(f"{one} and {other}: logits differ by {difference:.1e} of the largest")
    if difference > (2e-4 if a.dtype == torch.float32 else 5e-2):
        sys.exit(1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--check"]:
        check(*sys.argv[2:])
    else:
        write(sys.argv[1:])
