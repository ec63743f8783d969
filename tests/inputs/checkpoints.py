"""Checkpoints: chat templates, tokenizers, weights and adapters."""
import base64
import itertools
import json
import random
import struct
from math import prod
from typing import Any, Callable, Iterator

from inputs import BEYOND, Input, MB, PIPE, Place, deep, encoded, nested, of

H, V, MARKS = 16, 259, ["<|pad|>", "<|im_start|>", "<|im_end|>"]
CONFIG = {
    "model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "vocab_size": V, "hidden_size": H,
    "intermediate_size": H, "num_hidden_layers": 1, "num_attention_heads": 2, "max_position_embeddings": 256,
    "tie_word_embeddings": True,
}
TEMPLATE = """{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
FIRST = "model.embed_tokens.weight"
MODULES = [f"self_attn.{name}_proj" for name in "qkvo"] + [f"mlp.{name}_proj" for name in ("gate", "up", "down")]


def shapes(layers: int = 1) -> dict[str, list[int]]:
    found = {FIRST: [V, H], "model.norm.weight": [H]}
    for part in (f"model.layers.{layer}." for layer in range(layers)):
        found |= {f"{part}{module}.weight": [H, H] for module in MODULES}
        found |= {f"{part}self_attn.{name}_proj.bias": [H] for name in "qkv"}
        found |= {f"{part}{name}_layernorm.weight": [H] for name in ("input", "post_attention")}
    return found


def tensors(sizes: dict[str, list[int]], change: Callable[[dict[str, Any]], Any] = lambda header: header) -> bytes:
    """A file of safetensors with another header."""
    header, end, draw = {}, 0, random.Random(5)
    for name, shape in sizes.items():
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [end, end + 4 * prod(shape)]}
        end += 4 * prod(shape)
    text = encoded(change(header))
    numbers = (draw.gauss(0, 0.02) for _ in range(end // 4))
    return struct.pack("<Q", len(text)) + text + struct.pack(f"<{end // 4}f", *numbers)


def tokenizer(**changes: Any) -> dict[str, Any]:
    """A tokenizer with a token for each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    chars = {byte: chr(byte) for byte in plain} | {byte: chr(256 + at) for at, byte in enumerate(others)}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    vocab = {text: at for at, text in enumerate([*MARKS, *(chars[byte] for byte in range(256))])}
    model = {"type": "BPE", "unk_token": None, "fuse_unk": False, "byte_fallback": False, "vocab": vocab, "merges": []}
    whole = {
        "version": "1.0", "added_tokens": added(MARKS, 0), "normalizer": None, "pre_tokenizer": level,
        "post_processor": None, "decoder": level,
    }
    return {**whole, **changes, "model": {**model, **changes.get("model", {})}}


def added(texts: list[str], first: int) -> list[dict[str, Any]]:
    plain = dict.fromkeys(["single_word", "lstrip", "rstrip", "normalized"], False)
    return [{"id": first + at, "content": text, "special": True, **plain} for at, text in enumerate(texts)]


def checkpoint(**changes: Any) -> dict[str, Any]:
    """The files of a checkpoint, some of them changed."""
    files = {
        "config": CONFIG, "model": lambda: tensors(shapes()), "tokenizer": tokenizer,
        "tokenizer_config": {"eos_token": MARKS[2], "pad_token": MARKS[0], "chat_template": TEMPLATE}, **changes,
    }
    ending = {"chat_template": "jinja", "model": "safetensors"}
    return {f"m/{name}.{ending.get(name, 'json')}": content for name, content in files.items()}


def asked(name: str, files: dict[str, Any], says: str, model: str = "m", prompt: str = "a") -> Input:
    return Input(name, files, ["generate", "-m", model, "--chat", "--prompt", prompt, "--max-tokens", "2"], says)


def looped(body: str, times: int = 100) -> str:
    start = "{% set n = namespace(s='xx', l=['x'], d={}) %}{% set s = 'x' * 60000 %}{% set l = range(90000)|list %}"
    return f"{start}{{% for i in range({times}) %}}{body}{{% endfor %}}"


TEMPLATES = {
    "a filter that doubles": looped("{% set n.s = n.s|replace('x', 'xx')|lower %}"),
    "many long texts": looped("{% set n.l = n.l + ['x' * 16000000 ~ i] %}", 900),
    "a macro that calls itself twice":
        "{% macro m(k) %}{% if k %}{{ m(k - 1) }}{{ m(k - 1) }}{% endif %}{% endmacro %}{{ m(90) }}",
    "callers of callers":
        "{% macro m() %}{{ caller() }}{{ caller() }}{% endmacro %}" + "{% call m() %}" * 60 + "{% endcall %}" * 60,
    "loops in loops": "{% for i in range(9) %}" * 100 + "x" + "{% endfor %}" * 100,
    "tags in tags": "{% if 1 %}" * 2000 + "{% endif %}" * 2000,
    "a map that doubles": looped("{% set n.d = {'a': n.d, 'b': n.d} %}") + "{{ n.d == n.d }}{{ n.d|tojson }}",
    "the most of a list, often": looped("{% if l|max %}{% endif %}", 90_000),
    "capitals, often": looped("{% if s|upper|lower|upper %}{% endif %}", 30_000),
    "JSON with a wide indent": "{{ range(400)|list|tojson(indent=10000000) }}",
    "a long joint": "{{ range(90000)|join('" + "x" * 60_000 + "') }}",
    "the longest range": "{{ range(-9223372036854775807, 9223372036854775807)|list }}",
    "an odd slice": "{{ 'abc'[-9223372036854775808::-9223372036854775808] }}",
    "letters that grow": "{{ (('ﬁ' * 5000000)|title)|upper|lower }}",
    "a long refusal": "{{ raise_exception('x' * 10000000) }}", "four megabytes": of("x", 4 * MB),
    "titles, often": looped("{% if s|title %}{% endif %}", 3000),
    "slices, often": looped("{% if s[5:] %}{% endif %}", 30_000),
    "lists that are kept, often": looped("{% set k = l %}", 90_000),
    "a search that nearly finds": looped("{% if ('x' * 30000) ~ 'y' in s %}{% endif %}", 30_000),
    "capitals in a list": looped("{% if [('é' * 30000)]|string|lower %}{% endif %}", 30_000),
    "wide fields": "{{ ('{0:9999}' * 100000).format(1) }}",
    "a text in each field": "{{ ('%(a)s' * 9000)|format(a='x' * 900000) }}",
    "JSON with a wide gap": "{{ range(9000)|list|tojson(separators=('x' * 9000000, ':')) }}",
    "a text of all that is compared": "{{ messages == 'x' * 90000000 or ['x' * 90000000] in messages }}",
    "many arguments": looped("{% if 'a'|format(*l) %}{% endif %}", 900),
    "a date of dates": "{{ strftime_now('%c' * 4000000) }}",
    "all names of all": looped("{% if l|map(attribute='a.' * 30000)|list %}{% endif %}"),
}
SETTINGS: dict[str, Any] = {
    "a number": 5, "no templates": [{"name": "default"}],
    "many": [{"name": f"n{at}", "template": "{{ x }}"} for at in range(3000)],
}


def template_inputs(place: Place) -> Iterator[Input]:
    for name, source in TEMPLATES.items():
        yield asked(name, checkpoint(chat_template=source), r"chat_template\.jinja|prompt")
    for name, value in SETTINGS.items():
        changed = checkpoint(tokenizer_config={"eos_token": MARKS[2], "chat_template": value})
        yield asked(f"a setting of {name}", changed, "tokenizer_config")
    yield asked("a further pipe", {**checkpoint(), "m/additional_chat_templates/x.jinja": PIPE}, r"x\.jinja")


def steps(kind: str, *parts: Any) -> dict[str, Any]:
    return {"type": "Sequence", kind: list(parts)}


def charsmap(*numbers: int) -> dict[str, Any]:
    """SentencePiece's table of characters: a trie after its length, and texts."""
    table = struct.pack(f"<{len(numbers)}I", *numbers) + b"a\0" * 9
    return {"normalizer": {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(table).decode()}}


def split(pattern: str) -> dict[str, Any]:
    return {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}}


def unigram(*pieces: tuple[str, float]) -> dict[str, Any]:
    return {"model": {"type": "Unigram", "unk_id": 0, "vocab": [("<unk>", 0.0), *pieces], "byte_fallback": False}}


TOKENIZERS: dict[str, Any] = {
    "a pattern that goes back": split("(a+)+b"), "a deep pattern": split(deep(60_000, "a", "(", ")")),
    "a pattern that counts": split("a{900}{900}{900}"),
    "a text of nothing": {"normalizer": {"type": "Replace", "pattern": {"String": ""}, "content": "x"}},
    "deep steps": {"normalizer": nested(400, lambda inner: steps("normalizers", inner), {"type": "NFC"})},
    "growth": {"normalizer": steps("normalizers", *[{"type": "NFKD"}] * 4)}, "a table of nothing": charsmap(0),
    "a table of all": charsmap(2**32 - 1, 97),
    "a table of itself": charsmap(1024, *(0x80000000 | at for at in range(256))),
    "many added": lambda: {"added_tokens": added([*MARKS, *(f"{at:018}" for at in range(100_000))], 0)},
    "added alike": lambda: {"added_tokens": added([*MARKS, *("a" * at for at in range(1, 2500))], 0)},
    "an id beyond all": {"added_tokens": added(["x"], 2**32 - 1)},
    "a vocabulary beyond all": lambda: {"model": {"vocab": {**tokenizer()["model"]["vocab"], "zz": 2**32 - 2}}},
    "no vocabulary": {"model": {"vocab": {}}}, "merges of nothing": {"model": {"merges": [["", ""]] * 9}},
    "odd scores": unigram(("a", -1e308), ("aa", 1e308), ("", 0.0)),
    "long pieces": lambda: unigram(*(("a" * at, -float(at)) for at in range(1, 1500))),
    "a decoder that strips": {"decoder": steps("decoders", {"type": "Fuse"},
        {"type": "Strip", "content": "a", "start": 10**9, "stop": 10**9})},
    "another kind": {"model": {"type": "Magic"}},
    "a text that goes back": {"normalizer": {"type": "Replace", "pattern": {"Regex": "(a|aa)+(a|aa)+(a|aa)+!"},
        "content": "x"}},
    "an unknown piece beyond all": {"model": {"type": "Unigram", "unk_id": 10**9, "vocab": [("<unk>", 0.0)]}},
    "a template of no token": {"post_processor": {"type": "TemplateProcessing", "pair": [], "special_tokens": {},
        "single": [{"SpecialToken": {"id": "zz", "type_id": 0}}]}},
    "a dropout of 2": {"model": {"dropout": 2.0}}, "an added token of nothing": {"added_tokens": added([""], 300)},
    "bytes of odd names": lambda: {"decoder": {"type": "ByteFallback"}, "model": {"byte_fallback": True,
        "vocab": {f"<0x{at:X}>": at for at in range(259)}}},
    "much padding": {"padding": {"strategy": {"Fixed": 1 << 40}, "direction": "Left", "pad_to_multiple_of": None,
        "pad_id": 0, "pad_type_id": 0, "pad_token": "zz"}},
    "a truncation": {"truncation": {"max_length": 0, "stride": 99, "strategy": "LongestFirst", "direction": "Left"}},
}
ENDS: dict[str, Any] = {"no token": {"eos_token": "zz"}, "a long text": {"eos_token": "z" * MB}, "nothing": {}}


def tokenizer_inputs(place: Place) -> Iterator[Input]:
    for name, change in TOKENIZERS.items():
        made = lambda change=change: tokenizer(**(change() if callable(change) else change))
        prompt = "a" * 60 + " ﷺ 世界 " + "ab" * 9
        yield asked(name, checkpoint(tokenizer=made), r"tokenizer\.json|prompt|config", prompt=prompt)
    for name, settings in ENDS.items():
        changed = checkpoint(tokenizer_config={"chat_template": TEMPLATE, **settings})
        yield asked(f"an end of {name}", changed, "tokenizer_config")


CONFIGS: dict[str, dict[str, Any]] = {
    "no layers": {"num_hidden_layers": 0}, "layers beyond all": {"num_hidden_layers": 2**63 - 1},
    "a thousand layers": {"num_hidden_layers": 1000},
    "a wide model": {"hidden_size": 1 << 22, "intermediate_size": 1 << 22}, "a large vocabulary": {"vocab_size": 10**9},
    "the most positions": {"max_position_embeddings": 2**31 - 1}, "one position": {"max_position_embeddings": 1},
    "many layer types": {"layer_types": ["full_attention"] * 100_000}, "no angle": {"rope_theta": 5e-324},
    "a factor of almost nothing": {"rope_scaling": {"rope_type": "linear", "factor": 5e-324}},
    "another rotation": {"rope_scaling": {"rope_type": "magic" * 20_000}},
    "many ends": {"eos_token_id": list(range(20_000))}, "a long family": {"model_type": "m" * MB},
    "many labels": {"architectures": ["Qwen2ForSequenceClassification"], "num_labels": 1 << 22},
    "a number of text": {"hidden_size": "16"}, "no heads": {"num_attention_heads": 0}, "odd heads": {"head_dim": 7},
    "a wide head": {"head_dim": 1 << 40}, "a window of nothing": {"use_sliding_window": True, "sliding_window": 0},
    "a rotation beyond all": {"rope_scaling": {"rope_type": "yarn", "factor": 1e308,
        "original_max_position_embeddings": 1 << 62}},
}
DRAWING = {"temperature": -1.0, "top_p": 7.5, "max_new_tokens": 2**63, "eos_token_id": [-1, -(2**63)]}


def first(**more: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Changes the first tensor of a header."""
    return lambda header: {**header, FIRST: {**header[FIRST], **more}}


def beside(*names: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda header: header | {name: {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for name in names}


HEADERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "offsets that overlap": lambda header: {name: each | {"data_offsets": [0, 64]} for name, each in header.items()},
    "offsets beyond the file": first(data_offsets=[1 << 62, (1 << 62) + 4 * V * H]),
    "offsets below 0": first(data_offsets=[-4 * V * H, 0]),
    "a shape that overflows": first(shape=[1 << 62, 1 << 62, 4]), "a long shape": first(shape=[1] * 100_000 + [V, H]),
    "a long type": first(dtype="X" * 100_000),
    "a tensor twice": lambda header: json.dumps(header)[:-1] + ", " + json.dumps(header)[1:],
    "much metadata": lambda header: {"__metadata__": {str(at): "x" for at in range(200_000)}, **header},
    "a long name": lambda header: beside("n" * MB)(header), "an escape in a name": beside("\x1b[2J\n"),
    "no dimensions": first(shape=[]), "a small type": first(dtype="F8_E4M3"),
    "many tensors": lambda header: beside(*(f"x{at}" for at in range(200_000)))(header),
    "a deep header": lambda header: deep(100_000),
}
WEIGHTS: dict[str, Any] = {
    "nothing": b"", "no header": bytes(8), "a header of zeros": lambda: struct.pack("<Q", 90 * MB) + bytes(90 * MB),
    "a length beyond all": b"\xff" * 8 + b"{}", "cut": lambda: tensors(shapes())[:-1],
    "spaces": lambda: struct.pack("<Q", 90 * MB) + b" " * (90 * MB),
    "no numbers": lambda: tensors(shapes())[:-4 * V * H] + b"\xff\xff\xff\x7f" * (V * H),
}
SHARDS = {
    "above": {FIRST: "../m/x"}, "elsewhere": {FIRST: "/etc/passwd"},
    "the index": {FIRST: "model.safetensors.index.json"},
    "many": {str(at): f"{at}.safetensors" for at in range(20_000)},
}
ADAPTER = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": "m", "r": 2, "lora_alpha": 4}
QUERY = "base_model.model.model.layers.{}.self_attn.q_proj.lora_{}.weight"
QUERY_SIZES = {QUERY.format(0, "A"): [2, H], QUERY.format(0, "B"): [H, 2]}
SIZES = {
    "a high rank": {QUERY.format(0, "A"): [1 << 20, 0]}, "no rank": {QUERY.format(0, "A"): [0, H]},
    "one half": {QUERY.format(0, "A"): [2, H]}, "halves of two ranks": {**QUERY_SIZES, QUERY.format(0, "B"): [H, 3]},
    "a layer beyond all": {QUERY.format(BEYOND, "A"): [2, H]},
}
ADAPTERS: dict[str, dict[str, Any]] = {
    "itself as base": {"base_model_name_or_path": "a"}, "a device as base": {"base_model_name_or_path": "/dev/zero"},
    "a long base": {"base_model_name_or_path": "m/" * 50_000}, "a large alpha": {"lora_alpha": 1e308},
    "a long kind": {"peft_type": "X" * 100_000},
    "many alphas": {"alpha_pattern": {f"m{at}": 1 for at in range(100_000)}},
    "many saved modules": {"modules_to_save": ["score"] * 100_000},
}


def weight_inputs(place: Place) -> Iterator[Input]:
    says = r"config\.json|safetensors|weights|prompt"
    for name, change in CONFIGS.items():
        yield asked(name, checkpoint(config={**CONFIG, **change}), says)
    for name, value in DRAWING.items():
        yield asked(f"{name} {value}", checkpoint(generation_config={name: value}), rf"generation_config\.json|{name}")
    for name, change in HEADERS.items():
        yield asked(name, checkpoint(model=lambda change=change: tensors(shapes(), change)), says)
    for name, content in WEIGHTS.items():
        yield asked(f"weights: {name}", checkpoint(model=content), says)
    for name, places in SHARDS.items():
        index = {"m/model.safetensors.index.json": {"weight_map": places}}
        yield asked(f"shards: {name}", checkpoint(model=None) | index, says)


def adapter_inputs(place: Place) -> Iterator[Input]:
    def adapter(name: str, config: Any, sizes: dict[str, list[int]], base: dict[str, Any]) -> Input:
        own = {"a/adapter_config.json": config, "a/adapter_model.safetensors": lambda: tensors(sizes)}
        return asked(name, {**base, **own}, r"\ba/|\bm/|weights", model="a")

    parts = itertools.product(range(64), MODULES)
    columns = {QUERY.format(layer, "A").replace("self_attn.q_proj", module): [1 << 16, 0] for layer, module in parts}
    large = checkpoint(config={**CONFIG, "num_hidden_layers": 64}, model=lambda: tensors(shapes(64)))
    yield adapter("ranks without columns", ADAPTER, columns, large)
    for name, sizes in SIZES.items():
        yield adapter(name, ADAPTER, sizes, checkpoint())
    for name, change in ADAPTERS.items():
        yield adapter(name, {**ADAPTER, **change}, QUERY_SIZES, checkpoint())
