"""Writes the fixtures of `host/cli/tests/reward_model.rs`: small reward models of each family with random
weights, and the scores that `transformers` computes with them.

    pip install "transformers==5.23.0" "torch==2.11.0" safetensors numpy
    python tests/parity/reward_models.py            # writes tests/parity/reward_models/

Each folder is a checkpoint as `save_pretrained` writes it, with a tokenizer of `tokenizer_cases/` and a chat template of
`chat_templates/`. Beside it, `rows.jsonl` has conversations, each with

    score     of `AutoModelForSequenceClassification` on the text that `apply_chat_template` makes
    steps     of `AutoModelForTokenClassification` in place of it: the probability of the second label at each mark
              `<extra_0>`, where `<extra_0>` takes the place of the empty line between two steps and follows the last
"""

import json
import pathlib
import shutil

import torch
from models import SIZES, build
from transformers import (
    AutoModelForSequenceClassification, AutoModelForTokenClassification, GemmaConfig, LlamaConfig, MistralConfig,
    PreTrainedTokenizerFast, Qwen2Config, Qwen3Config,
)

HERE = pathlib.Path(__file__).parent
FOLDER = HERE / "reward_models"
MARK = "<extra_0>"
HEADERS = ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
TURNS = ["<start_of_turn>", "<end_of_turn>"]

# Ends with the end of a turn, which pads, too.
ENDS = "{% for message in messages %}{{ '<|' + message.role + '|>' + message.content + '</s>' }}{% endfor %}"

# name: (class of the configuration, changes to the sizes, tokenizer, its further special tokens, chat template)
MODELS = {
    "qwen2": (Qwen2Config, dict(), "byte_level", [], "qwen2_5"),
    "qwen3": (Qwen3Config, dict(head_dim=24), "byte_level", [], "qwen3"),
    "llama": (LlamaConfig, dict(num_key_value_heads=1), "byte_level", HEADERS, "header_json_tools"),
    "mistral": (MistralConfig, dict(sliding_window=16, head_dim=10), "byte_fallback", [], "mistral_v3"),
    "gemma": (GemmaConfig, dict(head_dim=12, num_key_value_heads=1), "byte_fallback", TURNS, "turns"),
    "qwen2-steps": (Qwen2Config, dict(num_labels=2), "byte_level", [MARK], "qwen2_5"),
    "qwen2-pad": (Qwen2Config, dict(), "byte_level", ["<|user|>", "<|assistant|>"], ENDS),
}

# The header that Llama's template writes has the day.
DAY = "24 Nov 2026"
USER = "What is 2 + 2? Réponds en français."
ANSWERS = [
    "4", "The answer is 4.", "Deux et deux font quatre.\n\nC'est tout.", "数学は楽しい 🦀", "No.\n\nI will not.\n\nAsk another.",
    "Step 1: two.\n\nStep 2: add two.\n\nStep 3: the answer is \\boxed{4}. Therefore, the answer is 4.", "word " * 30 + "end",
]


def tokenizer_of(kind, special, template):
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(HERE / "tokenizer_cases" / kind / "tokenizer.json"),
        bos_token="<s>", eos_token="</s>", unk_token="<unk>",
    )
    ends = template == ENDS
    pad = tokenizer.eos_token if ends else "<pad>"
    tokenizer.add_special_tokens({"pad_token": pad, "additional_special_tokens": special})
    tokenizer.chat_template = template if ends else (HERE / "chat_templates" / f"{template}.jinja").read_text()
    return tokenizer


def ids(tokenizer, prompt, answer):
    messages = [*prompt, {"role": "assistant", "content": answer}]
    text = tokenizer.apply_chat_template(messages, tokenize=False, date_string=DAY)
    return torch.tensor([tokenizer(text, add_special_tokens=False)["input_ids"]])


def rows(model, tokenizer, of_steps):
    user = [{"role": "user", "content": USER}]
    turns = [*user, {"role": "assistant", "content": "4"}, {"role": "user", "content": "Are you sure?"}]
    for prompt in (user, turns):
        for answer in ANSWERS:
            if of_steps:
                read = ids(tokenizer, prompt, answer.replace("\n\n", MARK) + MARK)
                at = read[0] == tokenizer.convert_tokens_to_ids(MARK)
                found = {"steps": model(input_ids=read).logits.softmax(-1)[0, at, 1].tolist()}
            else:
                read = ids(tokenizer, prompt, answer)
                found = {"score": model(input_ids=read).logits[0, 0].item()}
            assert read.shape[1] <= 512, read.shape
            yield {"prompt": prompt, "response": answer, **found}


def write():
    for number, (name, (kind, changes, of_tokenizer, special, template)) in enumerate(MODELS.items()):
        tokenizer = tokenizer_of(of_tokenizer, special, template)
        of_steps = "num_labels" in changes
        sizes = {**SIZES, "num_labels": 1, "max_position_embeddings": 512, **changes}
        sizes.update(vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id)
        form = AutoModelForTokenClassification if of_steps else AutoModelForSequenceClassification
        model = build(1000 + number, kind(**sizes), form)
        folder = FOLDER / name
        shutil.rmtree(folder, ignore_errors=True)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        with torch.no_grad():
            found = list(rows(model, tokenizer, of_steps))
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in found)
        (folder / "rows.jsonl").write_text(lines)
        values = [value for row in found for value in row.get("steps", [row.get("score")])]
        print(f"{name}: {len(found)} rows, values from {min(values):.3f} to {max(values):.3f}")


if __name__ == "__main__":
    write()
