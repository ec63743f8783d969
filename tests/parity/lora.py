"""Writes the fixtures of `host/policy/tests/policy/lora.rs`: random LoRA
adapters to models of `tests/parity/models/`, and PEFT's results with them.

    pip install "peft==0.21.2" "transformers==5.23.0" "torch==2.11.0" safetensors
    python tests/parity/lora.py                 # writes tests/parity/lora/
    python tests/parity/lora.py llama-rslora    # or only some
    python tests/parity/lora.py --check A B     # two folders compute the same

Each folder below `lora/` is an adapter as `save_pretrained` writes it, with
`expected.safetensors` beside it. Those of language models have

    ids        [batch, time]            tokens; 0 is padding, on the right
    logits     [batch, time, vocab]     those of padding mean nothing
    greedy     [200]                    continues the first row
    grad.NAME  the shape of NAME        gradients of the mean cross-entropy of
                                        the next token in each row

and those of classifiers and critics, whose head is trained whole,

    ids        [batch, time]            as above
    lengths    [batch]                  tokens of each row
    outputs    [batch, labels]          the scores of each row, or
               [batch, time, labels]    the values of each token
    grad.NAME  the shape of NAME        gradients of the sum of squares of the
                                        outputs of tokens

The folders of `--check` are adapters, or checkpoints, such as a merged one.
"""

import os
import pathlib
import sys

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
)

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
# Of a critic, PEFT takes the head for one of "all-linear".
LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
# name: (task, class, base, labels)
CLASSIFIERS = {
    "qwen3-scores": ("SEQ_CLS", AutoModelForSequenceClassification, "qwen3", 1),
    "llama-values": ("TOKEN_CLS", AutoModelForTokenClassification, "llama", 2),
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


def write_classifiers(names):
    os.chdir(RUN_IN)
    for number, (name, (task, kind, base, labels)) in enumerate(CLASSIFIERS.items()):
        if names and name not in names:
            continue
        torch.manual_seed(number)
        model = kind.from_pretrained(f"../../tests/parity/models/{base}", num_labels=labels, dtype=torch.float32,
                                     attn_implementation="eager", pad_token_id=0)
        model = get_peft_model(model, LoraConfig(task_type=task, target_modules=LINEAR, r=4, lora_alpha=8)).eval()
        with torch.no_grad():
            for key, weight in model.named_parameters():
                if "lora_B" in key or "modules_to_save" in key:
                    weight.copy_(torch.randn_like(weight) * 0.2)
        ids, lengths, mask = batch(number)
        outputs = model(input_ids=ids, attention_mask=mask).logits
        counted = outputs if task == "SEQ_CLS" else outputs * mask.unsqueeze(2)
        (counted ** 2).sum().backward()
        folder = FOLDER / name
        model.save_pretrained(folder)
        (folder / "README.md").unlink()
        grads = {f"grad.{key.replace('.modules_to_save', '').replace('.default', '')}": weight.grad.clone()
                 for key, weight in model.named_parameters() if weight.requires_grad}
        found = dict(outputs=outputs.detach(), lengths=torch.as_tensor(lengths))
        save_file(dict(ids=ids, **found, **grads), folder / "expected.safetensors")
        print(f"{name}: {len(grads)} tensors")


def loaded(folder):
    """The checkpoint or adapter in a folder."""
    if not (pathlib.Path(folder) / "adapter_config.json").exists():
        return AutoModelForCausalLM.from_pretrained(folder, dtype="auto")
    config = LoraConfig.from_pretrained(folder)
    kind = {"SEQ_CLS": AutoModelForSequenceClassification,
            "TOKEN_CLS": AutoModelForTokenClassification}.get(config.task_type, AutoModelForCausalLM)
    labels = {key: weight.shape[0] for key, weight in load_file(pathlib.Path(folder) / "adapter_model.safetensors").items()
              if key.endswith(".score.weight")}
    settings = dict(num_labels=next(iter(labels.values())), pad_token_id=0) if labels else {}
    base = kind.from_pretrained(config.base_model_name_or_path, dtype="auto", **settings)
    return PeftModel.from_pretrained(base, folder)


def logits(folder, ids, mask):
    with torch.no_grad():
        return loaded(folder).eval()(input_ids=ids, attention_mask=mask).logits


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
        names = sys.argv[1:]
        write(names)
        write_classifiers(names)
