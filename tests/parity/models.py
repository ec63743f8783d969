"""Writes the fixtures of `host/policy/tests/policy/parity.rs`: small models of
each family with random weights, and what `transformers` computes with them.

    pip install "transformers==5.23.0" "torch==2.11.0" safetensors numpy
    python tests/parity/models.py                 # writes tests/parity/models/
    python tests/parity/models.py gemma           # or only some
    python tests/parity/models.py --check A B     # two folders have equal logits

Each folder below `models/` is a checkpoint as `save_pretrained` writes it, with
`expected.safetensors` beside it:

    ids        [batch, time]            tokens; 0 is padding, on the right
    lengths    [batch]                  how many of them are not padding
    logits     [batch, time, vocab]     those of padding mean nothing
    greedy     [200]                    continues the first row
    scores     [batch, labels]          of a classifier, in place of both
    values     [batch, time, labels]    of a critic, in place of both; 0 for padding
    grad.NAME  the shape of NAME        gradients of the mean cross-entropy of
                                        the next token in each row, or of the
                                        classifier's or critic's sum of squared
                                        scores or values / 2
"""

import json
import pathlib
import sys

import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoConfig, AutoModelForCausalLM, AutoModelForSequenceClassification, AutoModelForTokenClassification,
)
from transformers import GemmaConfig, LlamaConfig, MinistralConfig, MistralConfig, Qwen2Config, Qwen3Config

FOLDER = pathlib.Path(__file__).parent / "models"
BATCH, TIME, GREEDY, VARIETY = 3, 40, 200, 12
SIZES = dict(
    vocab_size=61, hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=256, pad_token_id=0, bos_token_id=1, eos_token_id=2,
)
LLAMA3 = dict(rope_type="llama3", rope_theta=500.0, factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=32)
YARN = dict(rope_type="yarn", rope_theta=1000.0, factor=4.0, original_max_position_embeddings=64)
LINEAR = dict(rope_type="linear", rope_theta=10000.0, factor=2.5)
# The number outside the rotary settings goes before this one.
INSIDE = dict(YARN, original_max_position_embeddings=16)
BY_LAYER = ["full_attention", "sliding_attention", "full_attention"]

# name: (class of the configuration, changes to the sizes, how it is saved)
MODELS = {
    "qwen2": (Qwen2Config, dict(tie_word_embeddings=True), {}),
    "qwen2-untied-mha": (Qwen2Config, dict(tie_word_embeddings=False, num_key_value_heads=4), {}),
    "qwen2-window": (Qwen2Config, dict(use_sliding_window=True, sliding_window=9, max_window_layers=1,
                                       num_hidden_layers=3), {}),
    "qwen2-yarn": (Qwen2Config, dict(rope_parameters=YARN), {}),
    "qwen3": (Qwen3Config, dict(head_dim=24, tie_word_embeddings=True), {}),
    "qwen3-untied": (Qwen3Config, dict(head_dim=6, num_attention_heads=6, num_key_value_heads=3), {}),
    "llama": (LlamaConfig, dict(num_key_value_heads=1), {}),
    "llama-rope": (LlamaConfig, dict(rope_parameters=LLAMA3, tie_word_embeddings=True), {}),
    "llama-linear": (LlamaConfig, dict(rope_parameters=LINEAR, hidden_size=36, num_attention_heads=6), {}),
    "mistral": (MistralConfig, dict(sliding_window=7, head_dim=10), {}),
    "mistral-no-window": (MistralConfig, dict(sliding_window=None), {}),
    "gemma": (GemmaConfig, dict(head_dim=12, num_key_value_heads=1), {}),
    "llama-bf16-shards": (LlamaConfig, dict(), dict(dtype=torch.bfloat16, max_shard_size="20KB")),
    "qwen2-classifier": (Qwen2Config, dict(num_labels=1), {}),
    "llama-classifier": (LlamaConfig, dict(num_labels=3), {}),
    "qwen3-critic": (Qwen3Config, dict(num_labels=1, head_dim=10), dict(critic=True)),
    "llama-yarn-outside": (LlamaConfig, dict(rope_parameters=YARN, original_max_position_embeddings=64),
                           dict(edit=dict(rope_parameters=INSIDE))),
    # transformers takes a Mistral with `layer_types` for a Ministral.
    "mistral-by-layer": (MinistralConfig, dict(sliding_window=7, num_hidden_layers=3, head_dim=8, layer_types=BY_LAYER),
                         dict(edit=dict(model_type="mistral", architectures=["MistralForCausalLM"]))),
}


def build(number, config, kind):
    torch.manual_seed(number)
    config._attn_implementation = "eager"
    model = kind.from_config(config).float().eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            # Norms and biases must matter too, and greedy choices must be clear.
            if weight.dim() == 1:
                weight.add_(torch.randn_like(weight) * 0.2)
            elif "embed" in name:
                # A head that recognises its own input would only repeat it, and Gemma's is scaled.
                scale = 0.04 if config.model_type == "gemma" else 0.2 if config.tie_word_embeddings else 1.0
                weight.copy_(torch.randn_like(weight) * scale)
            else:
                weight.copy_(torch.randn_like(weight) * 1.3 / weight.shape[1] ** 0.5)
    return model


def batch(number):
    generator = torch.Generator().manual_seed(1000 + number)
    ids = torch.randint(3, SIZES["vocab_size"], (BATCH, TIME), generator=generator)
    lengths = [TIME, TIME - 13, 5]
    for row, length in enumerate(lengths):
        ids[row, length:] = 0
    return ids, torch.tensor(lengths), (ids != 0).long()


def language_model(model, ids, lengths, mask):
    logits = model(input_ids=ids, attention_mask=mask).logits
    targets = ids.clone()
    targets[mask == 0] = -100
    loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), targets[:, 1:].flatten())
    loss.backward()
    row = ids[:1]
    margins = []
    with torch.no_grad():
        for _ in range(GREEDY):
            top = model(input_ids=row).logits[0, -1].topk(2)
            margins.append((top.values[0] - top.values[1]).item())
            row = torch.cat([row, top.indices[:1].view(1, 1)], 1)
    greedy = row[0, TIME:].contiguous()
    # A continuation that only repeats itself shows nothing.
    clear = min(margins) if len(greedy.unique()) >= VARIETY else 0.0
    return dict(logits=logits.detach(), greedy=greedy), clear


def classifier(model, ids, lengths, mask):
    scores = model(input_ids=ids, attention_mask=mask).logits
    (scores.square().sum() / 2).backward()
    return dict(scores=scores.detach()), 1.0


def critic(model, ids, lengths, mask):
    values = model(input_ids=ids, attention_mask=mask).logits * mask[..., None]
    (values.square().sum() / 2).backward()
    return dict(values=values.detach()), 1.0


def write(names):
    for number, (name, (kind, changes, saved)) in enumerate(MODELS.items()):
        if names and name not in names:
            continue
        if "critic" in saved:
            form, compute = AutoModelForTokenClassification, critic
        elif "num_labels" in changes:
            form, compute = AutoModelForSequenceClassification, classifier
        else:
            form, compute = AutoModelForCausalLM, language_model
        # If two tokens are about equally likely, another summation order may choose the other.
        for seed in range(number * 100, number * 100 + 100):
            model = build(seed, kind(**{**SIZES, **changes}), form)
            dtype = saved.get("dtype", torch.float32)
            with torch.no_grad():
                # Only the weights: rotary wavelengths stay exact, as in a loaded checkpoint.
                for weight in model.parameters():
                    weight.copy_(weight.to(dtype))
            ids, lengths, mask = batch(seed)
            found, margin = compute(model, ids, lengths, mask)
            if margin > 1e-3:
                break
        else:
            sys.exit(f"{name}: no seed gives clear choices")
        folder = FOLDER / name
        grads = {f"grad.{key}": weight.grad.clone() for key, weight in model.named_parameters()}
        size = {"max_shard_size": saved["max_shard_size"]} if "max_shard_size" in saved else {}
        model.to(dtype).save_pretrained(folder, **size)
        edit(folder, saved.get("edit", {}), found, ids, mask)
        save_file(dict(ids=ids, lengths=lengths, **found, **grads), folder / "expected.safetensors")
        generation = folder / "generation_config.json"
        generation.unlink(missing_ok=True)
        print(f"{name}: seed {seed}, smallest margin {margin:.4f}")


def edit(folder, keys, found, ids, mask):
    """Changes keys of config.json, which must not change the model."""
    if not keys:
        return
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **keys}, indent=2) + "\n")
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    with torch.no_grad():
        again = model(input_ids=ids, attention_mask=mask).logits
    torch.testing.assert_close(again * mask[..., None], found["logits"] * mask[..., None], rtol=1e-5, atol=1e-5)


def check(one, other):
    """Checks that two checkpoints compute the same, to the last bit."""
    ids, _, mask = batch(7)
    found = []
    for folder in (one, other):
        config = AutoConfig.from_pretrained(folder)
        form = config.architectures[0].rsplit("For", 1)[1]
        kind = {"CausalLM": AutoModelForCausalLM, "SequenceClassification": AutoModelForSequenceClassification,
                "TokenClassification": AutoModelForTokenClassification}[form]
        model, report = kind.from_pretrained(folder, dtype="auto", output_loading_info=True)
        problems = {key: value for key, value in report.items() if value}
        if problems:
            sys.exit(f"{folder}: {problems}")
        with torch.no_grad():
            found.append(model.eval()(input_ids=ids, attention_mask=mask).logits)
    if not torch.equal(*found):
        sys.exit(f"{one} and {other} differ by {(found[0] - found[1]).abs().max()}")
    print(f"{one} and {other}: equal logits, {found[0].dtype}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--check"]:
        check(*sys.argv[2:])
    else:
        write(sys.argv[1:])
