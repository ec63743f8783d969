"""What checks and measurements share: the binary, models for it, and the tables of results."""
import contextlib
import gc
import json
import lzma
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MODELS = ROOT / "tests" / "parity" / "models"
PLUGINS = ROOT / "target" / "plugins"
QWEN2 = dict(model_type="qwen2", architectures=["Qwen2ForCausalLM"], max_position_embeddings=32768,
             rms_norm_eps=1e-6, rope_theta=1000000.0, eos_token_id=2, initializer_range=0.02)
FULL = {
    "0.5B": QWEN2 | dict(vocab_size=151936, hidden_size=896, intermediate_size=4864, num_hidden_layers=24,
                         num_attention_heads=14, num_key_value_heads=2, tie_word_embeddings=True),
    "7B": QWEN2 | dict(vocab_size=152064, hidden_size=3584, intermediate_size=18944, num_hidden_layers=28,
                       num_attention_heads=28, num_key_value_heads=4, tie_word_embeddings=False),
}
SMALL = {"small": QWEN2 | dict(vocab_size=300, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
                               num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=False)}


def unpacked(binary, folder):
    """The path of a program, which may be compressed."""
    if binary.suffix == ".xz":
        path = folder / binary.stem
        with lzma.open(binary) as compressed, path.open("wb") as out:
            shutil.copyfileobj(compressed, out)
        path.chmod(0o755)
        return path
    if not os.access(binary, os.X_OK):
        sys.exit(f"{binary} cannot be executed")
    return binary.resolve()


class Table:
    """Rows that are printed as they are known, and at the end together in columns."""

    def __init__(self, *header):
        self.rows, self.failures, self.lock = [header], 0, threading.Lock()

    @property
    def failed(self):
        return self.failures > 0

    def add(self, *row, failed=False):
        with self.lock:
            self.failures += failed
            self.rows.append(row)
            print("  ".join(filter(None, row)), flush=True)

    def fail(self, what, why):
        self.add(*what, f"FAILED: {why}", failed=True)

    def print(self):
        if len(self.rows) == 1:
            return
        # The last cell of a row may be long.
        widths = [max((len(row[column]) for row in self.rows if column + 1 < len(row)), default=0)
                  for column in range(len(self.rows[0]))]
        print()
        for row in self.rows:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip(), flush=True)


class Failed(Exception):
    """Why a command or a check failed."""


class Gavel:
    def __init__(self, path, device, limit):
        libraries = [os.path.join(torch.__path__[0], "lib"), os.environ.get("LD_LIBRARY_PATH")]
        self.environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(filter(None, libraries))}
        self.path, self.device, self.limit = path, device, limit
        # The warnings of the binary about faster operations that its own checks found wrong.
        self.not_used = set()

    def lines(self, *arguments):
        """The JSON lines that a command of the binary prints."""
        return [json.loads(line) for line in self.run([self.path, *arguments, "--device", self.device]).splitlines()]

    def run(self, command, **options):
        """What a command prints to stdout. It raises `Failed` if the command fails or hangs."""
        with self.started(command, **options) as running:
            return running.output(self.limit)

    @contextlib.contextmanager
    def started(self, command, environment=None, **options):
        """A command that runs, and is killed in the end."""
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
            process = subprocess.Popen(list(map(str, command)), env={**self.environment, **(environment or {})},
                                       stdout=out, stderr=errors, start_new_session=True, **options)
            running = Running(process, out, errors)
            try:
                yield running
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                self.not_used |= {line.split(" WARN ")[-1].strip() for line in running.stderr().splitlines()
                                  if " is not used: " in line}


class Running:
    def __init__(self, process, out, errors):
        self.process, self.files = process, (out, errors)

    def stdout(self):
        return self.read(self.files[0])

    def stderr(self):
        return self.read(self.files[1])

    @staticmethod
    def read(file):
        return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode(errors="replace")

    def output(self, limit):
        try:
            code = self.process.wait(limit)
        except subprocess.TimeoutExpired:
            raise Failed(f"still ran after {limit:.0f} s; {last_error(self.stderr())}") from None
        if code:
            raise Failed(last_error(self.stderr()) or f"ended with {code}")
        return self.stdout()


def give_back():
    """Gives the memory that PyTorch holds back, for other processes."""
    gc.collect()
    # After an error PyTorch cannot use the device any more, but other processes may.
    with contextlib.suppress(RuntimeError):
        torch.cuda.empty_cache()


def last_error(stderr):
    """The last message of the binary, in one line."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    start = max((at for at, line in enumerate(lines) if line.startswith("error: ")), default=-3)
    return "; ".join(lines[start:]).removeprefix("error: ")[:700]


def in_one_line(error):
    """The text of an exception."""
    text = " ".join(str(error).split())
    return text[:700] if isinstance(error, Failed) else f"{type(error).__name__}: {text}"[:400]


def commas(numbers):
    return ",".join(map(str, numbers))


def add_tokenizer(folder, tokens, unused):
    """Adds a tokenizer whose words are t0, t1 and so on, and a stop token that should not occur."""
    words = {f"t{token}": token for token in range(tokens)}
    tokenizer = dict(version="1.0", added_tokens=[], model=dict(type="WordLevel", vocab=words, unk_token="t0"),
                     pre_tokenizer=dict(type="WhitespaceSplit"))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "chat_template.jinja").write_text("{{ messages[0].content }}")
    (folder / "generation_config.json").write_text(json.dumps(dict(eos_token_id=unused)))


def words(tokens):
    return " ".join(f"t{token}" for token in tokens)


def random_checkpoint(folder, config, device, sharp=1.0):
    """Writes a model with random weights in bfloat16. A larger `sharp` makes its predictions less uniform."""
    from transformers import Qwen2Config, Qwen2ForCausalLM
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device(device):
            model = Qwen2ForCausalLM(Qwen2Config(**config))
    finally:
        torch.set_default_dtype(torch.float32)
    with torch.no_grad():
        model.model.norm.weight.mul_(sharp)
    model.save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps(config | dict(dtype="bfloat16")))
    add_tokenizer(folder, config["vocab_size"], config["eos_token_id"])
    return folder
